"""Files of an attacker, in short; `python -m tests.security.fuzz` is the long form."""

import io
import tarfile

import pytest

from model_deploy.inputs.files import archives
from tests.security import fuzz

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("name", fuzz.READERS)
def test_known_attacks(name):
    """Each is read, or refused in a line: no code runs, and no memory is filled."""
    for content in fuzz.READERS[name][0]:
        fuzz.check(name, content)


@pytest.mark.parametrize("name", fuzz.READERS)
def test_what_is_near_them(name):
    """So is whatever is drawn near a known attack."""
    fuzz.fuzz(name, 30)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_fills_the_memory(kind, tmp_path):
    """A tar archive whose header says that it has a gigabyte is refused before that is read."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 1 << 30
    path = tmp_path / "a.tar"
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(io.DEFAULT_BUFFER_SIZE))
    with pytest.raises(ValueError, match=r"a\.tar: must be a whole .*headers must have at most"):
        archives.extract(path, tmp_path / "target")

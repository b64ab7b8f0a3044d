"""Small JSON files with a checksum: whichever bit is flipped, they are refused or say the same."""

import json

import pytest

from model_deploy.commands import read_checked, write_checked
from tests.checkpoints.damages import damage

pytestmark = pytest.mark.one_mode

VALUES = {"step": 12, "accuracy": 0.75, "values": [[3, None]]}


def test_any_flipped_bit(tmp_path):
    """Each of all bits: an error names the file, or, in the last newline, nothing has changed."""
    file = tmp_path / "best.json"
    write_checked(file, VALUES)
    content = file.read_bytes()
    assert read_checked(file) == VALUES
    for place in range(len(content)):
        for bit in range(8):
            file.write_bytes(content)
            damage(file, "flip", place, bit)
            if place == len(content) - 1 or file.read_bytes()[place : place + 1].isspace():
                continue  # what stands between values
            with pytest.raises(ValueError, match=f"^{file} must"):
                read_checked(file)


def test_any_lost_end(tmp_path):
    """A file that is cut short is refused, but where the newline alone is lost."""
    file = tmp_path / "best.json"
    write_checked(file, VALUES)
    content = file.read_bytes()
    for size in range(len(content) - 1):
        file.write_bytes(content[:size])
        with pytest.raises(ValueError, match=f"^{file} must be JSON"):
            read_checked(file)


def test_files_of_earlier_versions(tmp_path):
    """Without a checksum values are taken as they are; what is no object is refused."""
    file = tmp_path / "best.json"
    file.write_text(json.dumps(VALUES))
    assert read_checked(file) == VALUES
    file.write_text("12\n")
    with pytest.raises(ValueError, match=r"must be a JSON object, got 12"):
        read_checked(file)

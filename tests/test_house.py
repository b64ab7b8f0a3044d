"""The spine reads alone: few files, few imports, each setting at home in one place."""

import re

import pytest

from tests import house

pytestmark = pytest.mark.one_mode


def test_the_spine_is_small():
    """At most 22 files lie side by side in `model_deploy/`."""
    assert len(house.spine()) <= 22, house.spine()


def test_clones_stand_on_little():
    """The file that builds clones imports at most 35 files, directly and not, and no feature."""
    reached = house.reached("clones.py")
    assert len(reached) <= 35, reached
    assert not [
        name for name in reached if name.startswith(("rewrites", "copying", "keras_layers"))
    ]


@pytest.mark.parametrize("setting", house.settings())
def test_a_setting_has_few_readers(setting):
    """At most 4 files read a setting outside of its feature, way, group and checks."""
    assert len(house.readers(setting)) <= 4, house.readers(setting)


def test_readers_are_found():
    """What reads a setting counts, whatever the config is called; its own feature does not."""
    assert "describing/notes.py" in house.readers("accumulate_steps")
    assert house.readers("xla") == []
    assert "rewrites/compilation.py" in {
        name for name, reads in house.reads_by_file().items() if "xla" in reads
    }


def _path_of_a_step():
    """The names in the picture of docs/architecture.md: depth, name, and file of each."""
    document = (house.ROOT / "docs" / "architecture.md").read_text()
    [picture] = re.findall(r"```text\n(deploy .*?)```", document, re.DOTALL)
    rows = re.findall(r"^( *)(\w+) +(\S+)$", picture, re.MULTILINE)
    return [(len(indent) // 4, name, file) for indent, name, file in rows]


def test_the_picture_of_a_step_is_that_of_the_code():
    """Each name in the picture is defined in its file, and used in the file of the one above it."""
    above = {}
    for depth, name, file in _path_of_a_step():
        source = (house.LIBRARY / file).read_text()
        assert re.search(rf"^ *(def|class) {name}\b", source, re.MULTILINE), (name, file)
        above[depth] = file
        if depth:
            user = (house.LIBRARY / above[depth - 1]).read_text()
            assert re.search(rf"\b{name}\b", user), (name, above[depth - 1])
    assert len(above) == 5

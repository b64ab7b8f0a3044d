"""The spine reads alone: few files, few imports, each setting at home in one place."""

import pytest

from tests import house


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

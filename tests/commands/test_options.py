"""Option classes: every field is checked by its rule, and becomes a flag."""

import dataclasses

import pytest
from absl import flags

from model_deploy.commands.options import Options, define_flags, option

pytestmark = pytest.mark.one_mode


@dataclasses.dataclass(frozen=True)
class Sample(Options):
    """One field of each kind."""

    count: int = option(1, "a count", minimum=1, maximum=9)
    rate: float = option(0.5, "a rate", above=0, below=1)
    name: str = option("a", "a name", choices=("a", "b"))
    flag: bool = option(False, "a switch")
    limit: int | None = option(None, "a limit", minimum=1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"count": 10}, "count must be at most 9, got 10"),
        ({"count": 1.5}, "count must be an integer, got 1.5"),
        ({"count": True}, "count must be an integer, got True"),
        ({"count": None}, "count must be an integer, got None"),
        ({"rate": 0}, "rate must be more than 0, got 0"),
        ({"rate": 1.0}, "rate must be less than 1, got 1.0"),
        ({"rate": float("nan")}, "rate must be finite, got nan"),
        ({"rate": float("inf")}, "rate must be finite, got inf"),
        ({"rate": "0.5"}, "rate must be a number, got '0.5'"),
        ({"name": "c"}, "name must be one of a, b, got 'c'"),
        ({"name": 3}, "name must be a string, got 3"),
        ({"flag": 1}, "flag must be True or False, got 1"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
    ],
)
def test_rejects(values, message):
    """A value that breaks a rule names field, rule and value."""
    with pytest.raises(ValueError, match=message):
        Sample(**values)


def test_values_and_flags():
    """Values within their bounds are kept as they are. Flags have the fields' names, types,
    defaults and help.
    """
    sample = Sample(count=9, rate=0.1, name="b", flag=True, limit=3)
    assert dataclasses.astuple(sample) == (9, 0.1, "b", True, 3)
    assert Sample(limit=None).limit is None
    values = flags.FlagValues()
    define_flags(Sample, values)
    values(["program"])
    names = ("count", "rate", "name", "flag", "limit")
    assert Sample(*(getattr(values, name) for name in names)) == Sample()
    assert values["name"].help == "a name (one of: a, b)"

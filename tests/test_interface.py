"""What users rely on stays: names, arguments, flags, variables; see `tests/interface.py`."""

import dataclasses
import re
from pathlib import Path

import pytest

from tests import interface

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]
KEPT = interface.kept_pages()
# Pages for users: those about the code itself are for its authors.
_PAGES_FOR_USERS = [
    ROOT / "README.md",
    *(page for page in (ROOT / "docs").glob("*.md") if page.stem not in ("architecture", "nets")),
    *(ROOT / "examples").glob("*.py"),
]
_TEXT = "\n".join(page.read_text() for page in _PAGES_FOR_USERS)


@pytest.mark.parametrize("page", sorted({*KEPT, *interface.PAGES}))
def test_what_users_rely_on_is_kept(page):
    """Each name, argument, flag and variable of a page is as it is kept, and no other is there."""
    found = interface.PAGES[page]() if page in interface.PAGES else {}
    lines = interface.differences(KEPT.get(page, {}), found)
    advice = "where that is meant, `python -m tests.interface --write` keeps it"
    assert not lines, "\n".join([f"{page}:", *lines, advice])


def test_names_that_pages_import_are_kept():
    """What README, pages and examples import from the library is among the kept names."""
    imports = re.findall(r"^ *from (model_deploy\S*) import (\([^)]*\)|.+)$", _TEXT, re.MULTILINE)
    api = re.findall(r"^::: (\S+)$", _TEXT, re.MULTILINE)
    named = {f"{module}.{name}" for module, names in imports for name in re.findall(r"\w+", names)}
    kept = {*interface.ROOMS, *KEPT["single names"], "nets.nets_factory"}
    kept |= {f"{room}.{name}" for room in interface.ROOMS for name in KEPT[f"names of {room}"]}
    assert {*named, *api} - kept == set()


def test_commands_that_pages_name_are_kept():
    """Each command of README, pages and examples is among those whose flags are kept."""
    modules = re.findall(r"python -m ((?:model_deploy|nets)[\w.]*\w)", _TEXT)
    assert {*modules} - {*interface.COMMANDS} == set()


@dataclasses.dataclass(frozen=True)
class _Base:
    first: int = 1


@dataclasses.dataclass(frozen=True)
class _Settings(_Base):
    second: str = dataclasses.field(default="a", kw_only=True)
    third: int = 3

    def method(self, argument: int, *rest: int, named: bool = True) -> int:
        """Is listed."""

    @property
    def value(self) -> int:
        """Is listed."""

    def _private(self):
        """Is not listed."""


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        pytest.param(re, {"x": "module"}, id="module"),
        pytest.param((1, "a"), {"x": "(1, 'a')"}, id="constant"),
        pytest.param({1: 2}, {"x": "a dict of 1"}, id="table"),
        pytest.param(
            lambda a, /, b=len, *, c=None: a, {"x": "(a, /, b=len, *, c=None)"}, id="call"
        ),
        pytest.param(
            _Settings,
            {
                "x": "class(first=1, third=3, *, second='a')",
                "x fields": "first, second, third",
                "x.method": "(self, argument, *rest, named=True)",
                "x.value": "property",
            },
            id="class",
        ),
    ],
)
def test_lines_of_a_name(monkeypatch, value, lines):
    """A name is kept with the arguments, fields and public members that it has."""
    monkeypatch.setattr(interface, "OURS", (__name__.partition(".")[0],))
    assert dict(interface.lines_of("x", value)) == lines


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        pytest.param({"f": "(a)"}, [], id="same"),
        pytest.param({}, ["gone: f: (a)"], id="gone"),
        pytest.param({"f": "(a)", "g": "()"}, ["new: g: ()"], id="new"),
        pytest.param({"f": "(b)"}, ["changed: f\n  kept:  (a)\n  found: (b)"], id="changed"),
    ],
)
def test_differences_say_names(found, lines):
    """What is gone, new or changed is told by its name."""
    assert interface.differences({"f": "(a)"}, found) == lines

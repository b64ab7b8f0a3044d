"""The rooms of `model_deploy` and `nets` are those of docs/architecture.md; imports point down."""

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text()
PACKAGES = ("model_deploy", "nets")
# Programs, which import from the top of the rooms, too.
_PROGRAMS = [
    *ROOT.glob("*.py"),
    *(ROOT / "examples").glob("*.py"),
    *(ROOT / "benchmarks").glob("*"),
]
# Rooms whose modules users import by their own names, as TF-Slim's.
_OPEN_ROOMS = ("nets",)


def _module(path):
    """The name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


FILES = {
    _module(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
}
ROOMS = {
    name
    for name, path in FILES.items()
    if path.name == "__init__.py" and name.count(".") == 1 and name.startswith("model_deploy.")
}


@functools.cache
def _imports(path):
    """What a file imports of the packages here: pairs of a module and a name in it, or None.

    What only type checkers import counts as well; `model_deploy/__init__.py` lists there what it
    imports when it is asked for.
    """
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module, alias.name) for alias in node.names]
    return [(module, name) for module, name in found if module.split(".")[0] in PACKAGES]


def _used_modules(name):
    """The modules that a module imports."""
    used = {
        f"{module}.{item}" if f"{module}.{item}" in FILES else module
        for module, item in _imports(FILES[name])
    }
    # `model_deploy/__init__.py` imports nothing but `slim` before it is asked.
    return used - {name, "model_deploy", "nets"}


def _room(name):
    """The room that a module is in, or the module itself where it is in none."""
    return next((room for room in ROOMS if f"{name}.".startswith(f"{room}.")), name)


def _rows():
    """Paths in the first column of the tables, in order."""
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \|", DOCUMENT, re.MULTILINE)
    return [path for row in rows for path in re.findall(r"`([^`]+)`", row)]


def test_every_file_and_room_has_its_row():
    """Each module of the spine and each room has one row, and each row its file."""
    rows = [row for row in _rows() if "/" in row or row.endswith(".py")]
    assert [row for row in rows if not (ROOT / row).exists()] == []
    assert len(set(rows)) == len(rows)
    spine = [
        f"{name.replace('.', '/')}.py"
        for name in FILES
        if re.fullmatch(r"model_deploy\.\w+", name) and name not in ROOMS
    ]
    folders = [f"{room.replace('.', '/')}/" for room in ROOMS]
    assert {*spine, *folders} <= set(rows)


def test_imports_point_upwards():
    """A file imports only from files and rooms whose row stands above its own."""
    names = [row.removesuffix(".py").rstrip("/").replace("/", ".") for row in _rows()]
    order = {name: place for place, name in enumerate(names)}
    wrong = [
        f"{name} imports {used}"
        for name in FILES
        if name.startswith("model_deploy.")
        for used in _used_modules(name)
        if not used.startswith("nets.")  # of scripts, see below
        and _room(used) != _room(name)
        and order[_room(used)] > order[_room(name)]
    ]
    assert wrong == []


def test_nets_and_model_deploy_meet_in_the_scripts():
    """The library takes nothing of `nets`, and `nets` nothing of the library but `slim`.

    `python -m nets` and `python -m model_deploy.plan` are such scripts, and so are those that
    TF-Slim had in `nets/`.
    """
    scripts = ("nets.__main__", "nets.mobilenet_v1_train", "nets.mobilenet_v1_eval")
    for name, path in FILES.items():
        if name in (*scripts, "model_deploy.plan.__main__"):
            continue
        for module, item in _imports(path):
            if name.startswith("model_deploy"):
                assert not module.startswith("nets"), name
            elif module.startswith("model_deploy"):
                assert (module, item) == ("model_deploy", "slim"), name


def test_no_import_comes_back():
    """No file needs itself, by whatever way, the rooms' own `__init__` included."""
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, " -> ".join([*open_[open_.index(name) :], name])
        if name in done:
            return
        open_.append(name)
        for used in sorted(_used_modules(name)):
            visit(used)
        open_.pop()
        done.add(name)

    for name in FILES:
        if name not in PACKAGES:
            visit(name)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_says_what_it_is(room):
    """A room has a sentence of its own, and a list of what others use that is all there."""
    module = importlib.import_module(room)
    assert re.match(r"[A-Z`].+[.`]$", module.__doc__.splitlines()[0])
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name), name


@pytest.mark.parametrize(
    "path",
    [*FILES.values(), *(path for path in _PROGRAMS if path.suffix == ".py")],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_others_import_from_the_room(path):
    """Outside of a room what is used of it comes from its `__init__`, and is listed there."""
    own = _room(_module(path))
    for module, name in _imports(path):
        if module in FILES and _room(module) == own:
            continue
        assert _room(module) == module or module.startswith(_OPEN_ROOMS), module
        if module in ROOMS:
            assert name in importlib.import_module(module).__all__, f"{module}.{name}"

"""How large the spine is, and how far its files reach: `python -m tests.house` prints the figures.

They are read from the code by its imports and names; `tests/test_house.py` holds them to bounds.
"""

import ast
import dataclasses
import functools
from pathlib import Path

from model_deploy import DeploymentConfig

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "model_deploy"

# Files in which a setting is at home: where it is declared, checked, and made of others.
_OF_CONFIG = ("config.py", "config_checks.py", "settings/")
# Settings that are one feature's or one way's, and the file of it.
HOMES = {
    "accumulate_steps": "accumulation.py",
    "all_reduce": "ways/",
    "asynchronous": "ways/",
    "copy_clones": "copying/",
    "data_format": "rewrites/layouts/",
    "global_parts": "ways/",
    "precision": "rewrites/precision/",
    "replicas_to_aggregate": "ways/",
    "sync_batch_norm": "rewrites/batch_norm/",
    "xla": "rewrites/compilation.py",
}


def spine():
    """The files that lie side by side in `model_deploy/`."""
    return sorted(path.name for path in LIBRARY.glob("*.py"))


@functools.cache
def _imports(path):
    """The files of the library that a file imports, its rooms as wholes by their `__init__`.

    Of a room whose names are imported when they are used, those that the file uses.
    """
    found = set()
    tree = ast.parse(path.read_text())
    waiting = {name for block in _for_type_checkers(tree) for name in ast.walk(block)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node not in waiting:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"model_deploy.{node.value.id}.{node.attr}"]  # of a room, if it is one
            names = [name for name in names if _waiting_file(name)]
        for name in names:
            found |= {file for file in _files_of(name) if file != LIBRARY / "__init__.py"}
    return found - {path}


def _for_type_checkers(tree):
    """What a room imports under `if TYPE_CHECKING:`, which its names are imported by when used."""
    is_waiting = "import_when_used(__name__)" in ast.unparse(tree)
    return [each for each in tree.body if isinstance(each, ast.If)] if is_waiting else []


def _waiting_file(name):
    """The module of a room's name that is imported when it is used, or None."""
    room, _, last = name.rpartition(".")
    init = ROOT.joinpath(*room.split("."), "__init__.py")
    if not init.exists():
        return None
    places = {
        alias.asname or alias.name: statement.module
        for block in _for_type_checkers(ast.parse(init.read_text()))
        for statement in block.body
        for alias in statement.names
    }
    return places.get(last)


def _files_of(name):
    """The file of a module of the library, or that of a room's name; or none."""
    if name.split(".")[0] != "model_deploy":
        return []
    base = ROOT.joinpath(*(_waiting_file(name) or name).split("."))
    return [file for file in (base.with_suffix(".py"), base / "__init__.py") if file.exists()]


def reached(name):
    """The files that a file of the library imports, directly or not."""
    found, waiting = set(), [LIBRARY / name]
    while waiting:
        for file in _imports(waiting.pop()):
            if file not in found:
                found.add(file)
                waiting.append(file)
    return sorted(file.relative_to(LIBRARY).as_posix() for file in found)


def settings():
    """The fields of a `DeploymentConfig` beside the seven of TF-Slim, and the lists of them."""
    return [field.name for field in dataclasses.fields(DeploymentConfig) if field.kw_only]


@functools.cache
def reads_by_file():
    """For each file of the library the names that it reads of something called a config."""
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        reads = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute)
            and ast.unparse(node.value).rpartition(".")[2] in ("config", "_config", "deployment")
        }
        found[path.relative_to(LIBRARY).as_posix()] = reads
    return found


def readers(setting):
    """The files that read a setting of a config outside of its feature, way, group and checks."""
    homes = (*_OF_CONFIG, HOMES.get(setting, "config.py"))
    return [
        name
        for name, reads in reads_by_file().items()
        if setting in reads
        if not name.startswith(homes)
    ]


def lines(folder):
    """Lines of the Python files in a folder of the repository, its subfolders included."""
    return sum(len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py"))


def main():
    """Prints all figures."""
    print(f"files side by side in model_deploy/: {len(spine())}")
    for name in ("clones.py", "deployment.py"):
        files = reached(name)
        size = sum(len((LIBRARY / file).read_text().splitlines()) for file in files)
        print(f"{name} imports, directly and not: {len(files)} files, {size:,} lines")
    for setting in settings():
        print(f"{setting}: {len(readers(setting))} {', '.join(readers(setting))}")
    for folder in ("model_deploy", "tests"):
        print(f"{folder}/: {lines(folder):,} lines")


if __name__ == "__main__":
    main()

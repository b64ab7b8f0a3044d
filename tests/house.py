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
    """The files of the library that a file imports, its rooms as wholes by their `__init__`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            found |= {file for file in _files_of(name) if file != LIBRARY / "__init__.py"}
    return found - {path}


def _files_of(module):
    """The file of a module of the library, or none."""
    parts = module.split(".")
    if parts[0] != "model_deploy":
        return []
    base = ROOT.joinpath(*parts)
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

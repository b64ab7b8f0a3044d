"""Names that packages import when they are used are those that type checkers see."""

import ast
import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]
# Packages that call `import_when_used`.
PACKAGES = {
    ".".join(path.parent.relative_to(ROOT).parts): path
    for path in sorted((ROOT / "model_deploy").rglob("__init__.py"))
    if "import_when_used(__name__)" in path.read_text()
}


def _imports(package):
    """Name -> module and the name there, as `if TYPE_CHECKING:` of a package's file has them."""
    (block,) = (
        each for each in ast.parse(PACKAGES[package].read_text()).body if isinstance(each, ast.If)
    )
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for statement in block.body
        for alias in statement.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_those_of_the_imports(package):
    """A program gets the objects that type checkers and the documentation see, and no others."""
    imports, module = _imports(package), importlib.import_module(package)
    own = {"slim"} if package == "model_deploy" else set()
    assert sorted({*imports, *own}) == sorted(module.__all__)
    for name, (source, there) in imports.items():
        expected = getattr(importlib.import_module(source), there)
        assert getattr(module, name) is expected, name


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_that_of_another_file(package):
    """Importing a file of a package takes no name from the package."""
    folder = PACKAGES[package].parent
    files = {path.stem for path in folder.glob("*.py")}
    files |= {path.parent.name for path in folder.glob("*/__init__.py")}
    own = {name for name, (source, _) in _imports(package).items() if source == package}
    assert files & _imports(package).keys() <= own


def test_a_package_of_ones_own(tmp_path):
    """Names, files and errors of a package whose names wait, before and after they are used."""
    folder = tmp_path / "waiting"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from model_deploy.importing import import_when_used\n"
        "if TYPE_CHECKING:\n"
        "    from waiting.numbers import SEVEN as LUCKY\n"
        "    from waiting import below\n"
        "import_when_used(__name__)\n"
    )
    (folder / "numbers.py").write_text("SEVEN = 7\n")
    (folder / "below.py").write_text("")
    (folder / "broken.py").write_text("import no_such_package\n")
    program = """
        import sys, waiting
        assert "LUCKY" in dir(waiting) and "waiting.numbers" not in sys.modules
        assert waiting.LUCKY == 7 and vars(waiting)["LUCKY"] == 7
        assert waiting.below.__name__ == "waiting.below"
        from waiting import LUCKY, numbers
        assert not hasattr(waiting, "__wrapped__")
        for name in ("no_such_name", "broken"):
            try:
                getattr(waiting, name)
            except (AttributeError, ModuleNotFoundError) as error:
                print(error)
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert said == [
        "module 'waiting' has no attribute 'no_such_name'",
        "No module named 'no_such_package'",
    ]


def test_compiled_files_alone(tmp_path):
    """A package without its source says what is missing."""
    program = """
        import importlib.util, sys, types
        from model_deploy.importing import import_when_used
        module = types.ModuleType("bare")
        module.__loader__ = type("Loader", (), {"get_source": lambda self, name: None})()
        module.__file__ = "bare.pyc"
        sys.modules["bare"] = module
        import_when_used("bare")
        try:
            module.name
        except ImportError as error:
            print(error)
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert said == "the source of bare must be there, got bare.pyc\n"

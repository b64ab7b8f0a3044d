"""Names of a package that are imported when they are first used.

TensorFlow takes seconds to import, and most rooms need it; but the options of a command, its help
and its refusals do not.  So a room imports what it offers under `if TYPE_CHECKING:`, as type
checkers and the documentation read it, and calls `import_when_used`.  PEP 562 has the means,
`lazy_loader` of Scientific Python does the same for a package's own files: rooms also offer names
of other rooms.
"""

import ast
import functools
import importlib
import sys
import types
from typing import Any, NamedTuple


class _Place(NamedTuple):
    """Where a name comes from: `from module import name`."""

    module: str
    name: str


def import_when_used(package: str) -> None:
    """Lets a package import each name that it imports for type checkers at its first use.

    A file or folder of the package is imported at its first use, too, as `package.file`.  To type
    checkers the package has no names but those that it imports.

    Args:
      package: `__name__` of the package, whose file calls this function.  No name that it offers
        may be that of one of its files, other than the file itself.
    """
    module = sys.modules[package]
    places = functools.cache(functools.partial(_places, module))

    def get(name: str) -> Any:
        if name.startswith("__"):  # `__wrapped__`, `__file__` and the like are no modules
            raise _no_attribute(package, name)
        place = places().get(name)
        if place is None or place.module == package:
            return _own_module(package, name)
        value = getattr(importlib.import_module(place.module), place.name)
        setattr(module, name, value)
        return value

    vars(module).update(__getattr__=get, __dir__=lambda: sorted({*vars(module), *places()}))


def _own_module(package: str, name: str) -> types.ModuleType:
    path = f"{package}.{name}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:  # the module exists, but one that it imports is missing
            raise
        raise _no_attribute(package, name) from None


def _no_attribute(package: str, name: str) -> AttributeError:
    return AttributeError(f"module {package!r} has no attribute {name!r}")


def _places(module: types.ModuleType) -> dict[str, _Place]:
    """Reads what a package imports under `if TYPE_CHECKING:` from its source."""
    loader: Any = module.__loader__
    source = loader.get_source(module.__name__)
    if source is None:  # only compiled files
        raise ImportError(f"the source of {module.__name__} must be there, got {module.__file__}")
    return {
        alias.asname or alias.name: _Place(statement.module, alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module is not None
        for alias in statement.names
    }

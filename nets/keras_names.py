"""Names of the classifiers of `keras.applications`, from the source of the Keras that is installed.

Keras takes seconds to import, as it imports TensorFlow.
"""

import ast
import functools
import importlib.util
import pathlib

PREFIX = "keras/"
# Where versions of Keras have the file that imports all classifiers.
_FILES = ("applications/__init__.py", "api/applications/__init__.py")


@functools.cache
def names() -> list[str]:
    """Returns the names of the networks that the installed Keras has, sorted.

    Raises:
      ImportError: if there is no Keras, or none whose file of classifiers is known.
    """
    spec = importlib.util.find_spec("keras")
    folders = [] if spec is None else spec.submodule_search_locations or []
    paths = [pathlib.Path(folder, file) for folder in folders for file in _FILES]
    source = next((path for path in paths if path.is_file()), None)
    if source is None:
        raise ImportError(f"keras must be of version 3, with {' or '.join(_FILES)}, got {spec}")
    imported = {
        alias.asname or alias.name
        for statement in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    return sorted(f"{PREFIX}{name}" for name in imported if name[0].isupper())

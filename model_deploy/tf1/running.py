"""Runs a program of TensorFlow 1 as it is."""

import importlib.util
import os
import re
import sys
import tokenize
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.tf1 import names
from model_deploy.tf1.importing import OldProgram
from model_deploy.tf1.old_module import GoneError
from model_deploy.tf1.old_source import compiled

# What `gone.advice` says, and a module that is refused.
_GONE = re.compile(
    r" is gone since TensorFlow | is in no release of TensorFlow | is not for TensorFlow: "
)
# What only Python 2 has: names, methods, modules, lists in place of views and iterators.
_PYTHON_2 = re.compile(
    r"name '(basestring|cmp|execfile|file|long|raw_input|reduce|reload|unichr|unicode|xrange)' is"
    r"|has no attribute 'next'"
    r"|for >>: 'builtin_function|argument 'cmp'|'cmp' is an invalid keyword"
    r"|'(dict_\w+|filter|map|range|zip)' object (has no attribute '(append|sort)'|is not subscript)"
    r"|of type '(filter|map|zip)' has no len|for \+: '(dict_\w+|filter|map|range|zip)' and"
    r"|module '(itertools|os|string|sys|types)' has no attribute '(i(filter|map|zip)|getcwdu|join"
    r"|izip_longest|letters|lowercase|uppercase|maketrans|maxint|setdefaultencoding"
    r"|(String|List|Int|Float|Dict)Type)'"
    r"|No module named '(ConfigParser|Queue|StringIO|Tkinter|__builtin__|cPickle|cStringIO"
    r"|commands|copy_reg|httplib|thread|urllib2|urlparse)'"
)
# How many of the names that a program got stand in the line about it.
_MOST_NAMES = 12


class ProgramError(Exception):
    """Why a program cannot go on, in one line that names its file and line."""


class Program(NamedTuple):
    """What is run: a file, or a module of a package.

    Attributes:
      name: path of the file, or name of the module.
      is_module: which of the two.
      arguments: what the program gets.
      paths: more folders of the program.
      resource_variables: whether variables are resource variables.
    """

    name: str
    is_module: bool
    arguments: Sequence[str]
    paths: Sequence[str] = ()
    resource_variables: bool = False


def as_in_tensorflow_1(resource_variables: bool = False) -> None:
    """Lets this process be as TensorFlow 1 was: graphs, old shapes, control flow, variables.

    Args:
      resource_variables: whether variables are resource variables in spite of that.
    """
    internals.hide_deprecations()
    # tf-keras, of what an old program has to call.
    old = "is deprecated|will be removed in a future version|is considered legacy"
    warnings.filterwarnings("ignore", f"(?s).*({old})", UserWarning)
    deprecated = r"`tf\.(nn\.rnn_cell|layers)\.\w+` is deprecated"
    logger = tf.get_logger()
    logger.addFilter(lambda record: not re.match(deprecated, record.getMessage()))
    logger.propagate = False  # else absl, which `tf.app.run` starts, would log each line again
    tf.disable_v2_behavior()
    if resource_variables:
        tf.enable_resource_variables()


def run(program: Program, say: Callable[[str], Any]) -> None:
    """Runs a program as `__main__`, to its end.

    Args:
      program: what to run.
      say: gets one line: what the program got from here.

    Raises:
      ProgramError: where it needs what is nowhere, or Python 2.
      SystemExit: if the program says so.
      Exception: as the program raises it.
    """
    as_in_tensorflow_1(program.resource_variables)
    folder = os.getcwd() if program.is_module else os.path.dirname(os.path.abspath(program.name))
    old = OldProgram([folder, *program.paths])
    said = False

    def tell() -> None:
        nonlocal said
        if not said:
            said = True
            kind = "resource" if program.resource_variables else "reference"
            say(
                f"{program.name} runs as a program of TensorFlow 1, with {kind} variables; it gets "
                f"{_listed(old.supplied) or 'nothing but tensorflow'}"
            )

    with old, names.calling_before_main(tell):
        try:
            _run_main(program, old)
        except (SyntaxError, ImportError, NameError, AttributeError, TypeError) as error:
            _explain(error, old)
            raise
        finally:
            tell()


def _listed(supplied: Sequence[str]) -> str:
    """The first names, and how many others there are: large programs import hundreds."""
    more = len(supplied) - _MOST_NAMES
    return ", ".join([*supplied[:_MOST_NAMES], *([f"and {more} more"] if more > 0 else [])])


def _run_main(program: Program, old: OldProgram) -> None:
    spec = None
    if program.is_module:
        spec = importlib.util.find_spec(program.name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{program.name}.__main__")
        if spec is None or spec.origin is None:
            raise ProgramError(f"module must be one that can be imported, got {program.name!r}")
    path = program.name if spec is None else str(spec.origin)
    if not os.path.isfile(path):
        raise ProgramError(f"program must be a file of Python, got {path!r}")
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __spec__=spec, __package__=spec.parent if spec else None)
    old.prepare(main)
    with tokenize.open(path) as file:
        code = compiled(file.read(), path)
    before = sys.argv, sys.modules["__main__"]
    sys.argv, sys.modules["__main__"] = [path, *program.arguments], main
    try:
        exec(code, main.__dict__)
    finally:
        sys.argv, sys.modules["__main__"] = before


def _explain(error: BaseException, old: OldProgram) -> None:
    """Raises a `ProgramError` for what has one line to say.

    Raises:
      ProgramError: for a name that is gone, and for Python 2.
    """
    if isinstance(error, SyntaxError):
        if old.holds(error.filename):
            raise ProgramError(
                f"{error.filename}, line {error.lineno}: Python 2 is not run, and this is no "
                f"Python 3: {error.msg}"
            ) from error
        return
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if old.holds(each.filename)
    ]
    if not frames:
        return
    place = f"{frames[-1].filename}, line {frames[-1].lineno}"
    if _PYTHON_2.search(str(error)):
        raise ProgramError(f"{place}: Python 2 is not run: {error}") from error
    if isinstance(error, GoneError) or _GONE.search(str(error)):
        raise ProgramError(f"{place}: {error}") from error

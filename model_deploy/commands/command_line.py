"""Runs a command: flags and a YAML file become options; a user's mistake becomes one line.

A flag overrides a line of the `--config` file, which overrides a default.  `--name=` takes back a
line with a text, if there need be none.
`--config=recipes/NAME.yaml` finds a recipe of the package unless there is a file at that path.
"""

import atexit
import dataclasses
import gc
import os
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from model_deploy import file_systems
from model_deploy.commands.help_text import help_text
from model_deploy.commands.naming import line_of, message_of, named_as
from model_deploy.commands.notices import tell, without_tensorflow_notices
from model_deploy.commands.options import Options, define_flags
from model_deploy.commands.replacing import replaced_file

OPTIONS_FILE = "options.yaml"
# Exit status of a run whose last steps could not be saved: `EX_IOERR` of sysexits.h.
NOT_SAVED = 74
# That of a process that is to be started again: TensorFlow has refused a step of it, or it keeps
# too many servers of worlds that are over.  The run goes on: `EX_TEMPFAIL`.
REFUSED = 75
_RECIPES = "recipes"
_PACKAGED = os.path.join(os.path.dirname(os.path.dirname(__file__)), _RECIPES)


def run_command(
    argv: Sequence[str],
    options_class: type[Options],
    function: Callable[[Any], object],
    text: str | None,
    saved_in: str | None = None,
    *,
    check: Callable[[Any], object] | None = None,
) -> int:
    """Calls `function` with the options of a command line, in TensorFlow's graph mode.

    Args:
      argv: the program's name and its arguments.
      options_class: the options; with a boolean field `debug` set, errors keep their traceback.
      function: runs the command with the options.
      text: what `--help` prints before the flags.
      saved_in: see `parse_options`.
      check: called with the options before TensorFlow is imported, which takes seconds; what it
        raises is treated as what `function` raises.

    Returns:
      The exit code: 0, 1 for an error while running, 2 for a bad command line, 74 for a run whose
      last steps could not be saved, 75 for one to be started again, 130 for Ctrl-C; or the code of
      a `SystemExit` raised by `function`.
    """
    # Otherwise the last garbage collection, over all of TensorFlow's objects, takes a second.
    atexit.register(gc.freeze)
    try:
        options = parse_options(argv, options_class, text, saved_in)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options is None:
        return 0
    try:
        if check is not None:
            check(options)
    except (ValueError, OSError) as error:
        if getattr(options, "debug", False):
            raise
        print(f"error: {message_of(error)}", file=sys.stderr)
        return 1
    return _run(function, options)


def _run(function: Callable[[Any], object], options: Any) -> int:
    """Calls a command's function in graph mode; returns the exit code."""
    # Here, as options, their help and their checks need none of the seconds that it takes.
    with without_tensorflow_notices():
        import tensorflow.compat.v1 as tf  # noqa: PLC0415

    tf.disable_eager_execution()
    # `==` then compares variables by identity: slim does so for each new one with all before,
    # which takes most of the time to build a deep network.
    tf.disable_tensor_equality()
    tf.get_logger().setLevel("ERROR")
    try:
        function(options)
    except (ValueError, OSError, FloatingPointError, MemoryError, tf.errors.OpError) as error:
        if getattr(options, "debug", False):
            raise
        text = line_of(error) if isinstance(error, tf.errors.OpError) else message_of(error)
        message, code = f"error: {text}", getattr(error, "exit_code", 1)
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    except SystemExit as ending:  # of a parameter server, or by a signal
        if isinstance(ending.code, str):  # an error of its own
            raise
        return ending.code or 0
    else:
        return 0
    tell(message)  # other threads may still print
    return code


def parse_options(
    argv: Sequence[str],
    options_class: type[Any],
    text: str | None = None,
    saved_in: str | None = None,
) -> Any:
    """Returns an object of `options_class`, or None after printing the help that `argv` asks for.

    Args:
      argv: the program's name and its arguments.
      options_class: a subclass of `Options`; each field is a flag.
      text: what `--help` prints before the flags.
      saved_in: a field that names a folder, whose `options.yaml`, if it exists, replaces
        `--config`; see `saved_options`.

    Raises:
      ValueError: for an unknown option or recipe, or an invalid value.
      OSError: if the file of `--config` cannot be read.
    """
    values = flags.FlagValues()
    flags.DEFINE_boolean("help", False, "print this help", values, short_name="h")
    flags.DEFINE_boolean("helpfull", False, "print the help with all flags", values)
    flags.DEFINE_string("config", None, "YAML file with these options", values)
    define_flags(options_class, values)
    try:
        rest = values(list(argv))[1:]
    except flags.Error as error:
        raise ValueError(str(error)) from error
    if rest:
        raise ValueError(f"arguments must be flags such as --train_dir=DIR, got {' '.join(rest)}")
    if values.help or values.helpfull:
        print(help_text(options_class, text, full=values.helpfull), end="")
        return None
    names = [field.name for field in dataclasses.fields(options_class)]
    given = {name: getattr(values, name) for name in names if values[name].present}
    read: dict[str, Any] = {}
    if values.config is not None:
        path = find_config(values.config)
        if path != values.config:
            print(f"settings of the packaged {values.config}")
        read = read_options(path)
        unknown = next((name for name in read if name not in names), None)
        if unknown is not None:
            raise ValueError(f"config must hold names of flags, got {unknown!r} in {values.config}")
    elif saved_in is not None:
        with named_as(config=f"{saved_in}/{OPTIONS_FILE}"):
            read = saved_options(options_class, getattr(values, saved_in))
    defaults = {name: getattr(values, name) for name in names}
    for name in given.keys() & read.keys():
        if given[name] == "" and values[name].default is None:
            given[name] = None  # takes back a text of the file
    return options_class(**{**defaults, **read, **given})


def find_config(path: str) -> str:
    """Returns the file that `--config` names: an existing path, or else a recipe of this package.

    Args:
      path: path of any file, or `recipes/NAME.yaml`.

    Raises:
      ValueError: for an unknown recipe.
    """
    folder, name = os.path.split(path)
    if folder != _RECIPES or file_systems.exists(path):
        return path
    names = file_systems.names_in(_PACKAGED, "*.yaml")
    if name not in names:
        known = ", ".join(f"{_RECIPES}/{each}" for each in names)
        raise ValueError(f"config must be a file, or a recipe of {known}, got {path}")
    return os.path.join(_PACKAGED, name)


def read_options(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads options from a YAML file, a mapping of names to plain values.

    Raises:
      ValueError: if the file is not such a mapping, or not what `write_options` wrote.
      OSError: if it cannot be read.
    """
    # Here, as `train` from Python has no such file, and PyYAML is a fifth of what it imports.
    from model_deploy.commands.yaml_values import check_size, parse_yaml  # noqa: PLC0415

    try:
        check_size(file_systems.facts_of(path).size)
        text = file_systems.read_text(path)
        _check_sum(text)
        read = parse_yaml(text)
    except ValueError as error:  # of what is not UTF-8, too
        raise ValueError(f"config must be a YAML file, got {path}: {error}") from error
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise ValueError(
            f"config must be a mapping of options, got {type(read).__name__} in {path}"
        )
    other = next((name for name in read if not isinstance(name, str)), None)
    if other is not None:
        raise ValueError(f"config must hold names of flags, got {other!r} in {path}")
    return read


def saved_options(options_class: type[Any], folder: str | None) -> dict[str, Any]:
    """Reads options of another command from the `options.yaml` of a folder.

    Args:
      options_class: a subclass of `Options`; options that it lacks, or that are in its
        `not_reused`, are left out.
      folder: folder of a run; None or a folder without the file gives no options.

    Raises:
      ValueError: as `read_options`.
      OSError: if the file cannot be read.
    """
    path = os.path.join(folder, OPTIONS_FILE) if folder else ""
    if not (path and file_systems.is_file(path)):
        return {}
    names = {field.name for field in dataclasses.fields(options_class)}
    reused = names - set(options_class.not_reused)
    found = read_options(path)
    if not found:
        raise ValueError(f"config must have the options of a run, got none in {path}")
    return {name: value for name, value in found.items() if name in reused}


def write_options(options: Options, folder: str | os.PathLike[str]) -> str:
    """Writes `options.yaml` into a folder, replacing it as a whole; returns its path.

    Its first line, a comment, has the checksum of the others; who edits the file removes it.
    """
    from model_deploy.commands.yaml_values import yaml_of  # noqa: PLC0415 - as in `read_options`

    path = os.path.join(folder, OPTIONS_FILE)
    text = yaml_of(dataclasses.asdict(options))
    with replaced_file(path) as file:
        file.write(f"{_first_line(text)}\n{text}")
    return path


def _check_sum(text: str) -> None:
    """Checks the lines below the first one, if that has their checksum."""
    first, _, rest = text.partition("\n")
    has_sum = "crc32" in first or "remove this line" in first
    if has_sum and first != _first_line(rest):
        raise ValueError(
            "its lines must have the crc32 that its first line names, got those of "
            f"{_sum(rest)}; after an edit remove the first line"
        )


def _first_line(text: str) -> str:
    return f"# crc32 {_sum(text)} of the lines below; remove this line to edit them"


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"

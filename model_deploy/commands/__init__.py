"""Commands: options from flags and YAML, one-line errors, files replaced as a whole."""

from model_deploy.commands.checked_json import read_checked, write_checked
from model_deploy.commands.command_line import (
    NOT_SAVED,
    OPTIONS_FILE,
    REFUSED,
    parse_options,
    read_options,
    run_command,
    saved_options,
    write_options,
)
from model_deploy.commands.naming import line_of, make_folder, named_as
from model_deploy.commands.notices import tell, without_font_notices, without_tensorflow_notices
from model_deploy.commands.options import Options, option
from model_deploy.commands.plain_values import parse_json, shortened
from model_deploy.commands.replacing import replaced_file
from model_deploy.commands.tables import aligned

__all__ = [
    "NOT_SAVED",
    "OPTIONS_FILE",
    "REFUSED",
    "Options",
    "aligned",
    "line_of",
    "make_folder",
    "named_as",
    "option",
    "parse_json",
    "parse_options",
    "read_checked",
    "read_options",
    "replaced_file",
    "run_command",
    "saved_options",
    "shortened",
    "tell",
    "without_font_notices",
    "without_tensorflow_notices",
    "write_checked",
    "write_options",
]

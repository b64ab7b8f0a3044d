"""Options as frozen dataclasses: each field has a help text and a rule, checked at construction.

    @dataclasses.dataclass(frozen=True)
    class MyOptions(Options):
        rate: float = option(0.1, "learning rate", above=0)

`MyOptions(rate=-1)` raises `ValueError: rate must be more than 0, got -1`.  Command-line
flags are made from the same fields, see `define_flags`.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

_FLAG_KINDS: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
_TYPE_NAMES = {bool: "True or False", int: "an integer", float: "a number", str: "a string"}


def option(
    default: Any,
    text: str,
    *,
    choices: Sequence[str] | None = None,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
    topic: str | None = None,
    common: bool = False,
) -> Any:
    """Returns a dataclass field with a help text and a rule.

    Args:
      default: default value; None where the field's type allows it.
      text: help, one line.
      choices: the valid names.
      minimum: least value.
      above: the value must be more than this.
      maximum: largest value.
      below: the value must be less than this.
      topic: section of `--help`, one of `help_text.TOPICS`; by default that of the class.
      common: whether most runs need the flag, so that a short `--help` shows it, see
        `Options.short_help`.
    """
    bounds = {"minimum": minimum, "above": above, "maximum": maximum, "below": below}
    metadata = {"help": text, "choices": choices, "topic": topic, "common": common, **bounds}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Options:
    """Base of option classes: checks every field when an object is made.

    Attributes:
      topic: section of `--help` for the class's own fields, one of `help_text.TOPICS`; not
        inherited.
      short_help: whether `--help` shows only common flags; `--helpfull` always shows all.
      not_reused: fields that mean something else in another command's `options.yaml`, and are
        not taken from it, see `saved_options`.

    Raises:
      ValueError: naming field, rule and value.
    """

    topic: typing.ClassVar[str] = "run"
    short_help: typing.ClassVar[bool] = False
    not_reused: typing.ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            if field.metadata:
                _check(field, hints[field.name], getattr(self, field.name))

    def part(self, options_class: "type[Options]") -> dict[str, Any]:
        """Returns the values of the fields that `options_class` has as well, by name."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(options_class)}


def define_flags(options_class: type[Options], flag_values: flags.FlagValues) -> None:
    """Defines one absl flag per field of `options_class`, with its default and help."""
    hints = typing.get_type_hints(options_class)
    for field in dataclasses.fields(options_class):
        kind, _ = kind_of(hints[field.name])
        text = field.metadata["help"]
        if field.metadata["choices"]:
            text += f" (one of: {', '.join(field.metadata['choices'])})"
        _FLAG_KINDS[kind](field.name, field.default, text, flag_values=flag_values)


def kind_of(hint: Any) -> tuple[type, bool]:
    """Returns the plain type of a type hint, and whether None is allowed."""
    if isinstance(hint, types.UnionType):
        (kind,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return kind, True
    return hint, False


def _check(field: dataclasses.Field[Any], hint: Any, value: Any) -> None:
    """Checks the type and the rule of a field's value."""
    kind, may_be_none = kind_of(hint)
    if value is None and may_be_none:
        return
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{field.name} must be {_TYPE_NAMES[kind]}, got {value!r}")
    rule = _broken_rule(field.metadata, value)
    if rule:
        raise ValueError(f"{field.name} must be {rule}, got {value!r}")


def _broken_rule(rules: types.MappingProxyType[Any, Any], value: Any) -> str | None:
    """Returns in words the rule that a value breaks; None if it breaks none."""
    choices = rules["choices"]
    if choices is not None and value not in choices:
        return f"one of {', '.join(choices)}"
    if isinstance(value, float) and not math.isfinite(value):
        return "finite"
    checks = {
        "at least": (rules["minimum"], lambda limit: value >= limit),
        "more than": (rules["above"], lambda limit: value > limit),
        "at most": (rules["maximum"], lambda limit: value <= limit),
        "less than": (rules["below"], lambda limit: value < limit),
    }
    for words, (limit, holds) in checks.items():
        if limit is not None and not holds(limit):
            return f"{words} {limit}"
    return None

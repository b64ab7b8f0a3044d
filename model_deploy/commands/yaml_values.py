"""Plain values from YAML that anybody may have written: bounded depth, size and numbers.

The parser runs no code.  But a few bytes can nest deeper than Python's stack, and a few lines can
stand for more values than any memory holds.
"""

import re
from typing import Any

import yaml

# An options file has some thousand bytes; of text without bounds the parser takes seconds per MB.
_MAX_YAML_BYTES = 1 << 18
_MAX_DEPTH = 32
# Of PyYAML's, for `!!bool x`, `!!timestamp x` and the like.
_OF_CONSTRUCTORS = (ArithmeticError, AttributeError, LookupError, TypeError)
_MAX_DIGITS = 20  # of any 64-bit number, with its sign


class _Loader(yaml.SafeLoader):
    """Loads plain YAML values only; `1e-4` is a number, as in YAML 1.2."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Composes a node; an alias, which lets values grow without bound, is an error."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"aliases are not allowed, got *{self.peek_event().anchor}")
        if self.depth >= _MAX_DEPTH:
            raise yaml.YAMLError(f"values must not nest deeper than {_MAX_DEPTH}")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_scalar(self, node: Any) -> Any:
        """Returns the text of a scalar; numbers longer than any of 64 bits are an error."""
        text = super().construct_scalar(node)
        if node.tag.endswith(":int") and len(text) > _MAX_DIGITS:
            raise yaml.YAMLError(f"integers must fit into 64 bits, got {text[:_MAX_DIGITS]}...")
        return text


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def check_size(size: int) -> None:
    """Raises ValueError if a YAML text is of more bytes than any settings need."""
    if size > _MAX_YAML_BYTES:
        raise ValueError(f"it must have at most {_MAX_YAML_BYTES} bytes, got {size}")


def parse_yaml(text: str) -> Any:
    """Returns the value of a YAML text, of plain values without aliases.

    Raises:
      ValueError: if it is not such a text, or breaks a bound.
    """
    check_size(len(text))
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except (yaml.YAMLError, RecursionError, *_OF_CONSTRUCTORS) as error:
        raise ValueError(" ".join(str(error).split())) from error


def yaml_of(values: dict[str, Any]) -> str:
    """Returns the YAML text of plain values by name, in their order."""
    return yaml.safe_dump(values, sort_keys=False)

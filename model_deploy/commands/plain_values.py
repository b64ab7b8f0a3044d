"""Plain values from JSON that anybody may have written: of bounded depth; texts for messages."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Returns the value of a JSON text.

    Raises:
      ValueError: if it is not JSON, is not UTF-8, or nests too deep.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON must not nest deeper than Python's stack") from error


def shortened(text: str, most: int = 200) -> str:
    """Returns a text for a message: in one line, cut off after so many characters.

    >>> shortened("ab\\n  cdef", 4)
    'ab c...'
    """
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}..."

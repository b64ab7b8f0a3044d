"""Examples in docstrings as blocks of code on the site; Markdown takes `>>>` for quotations."""

import re
from typing import Any

import griffe

# A line that starts with `>>>`, and all up to the next empty line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FencedExamples(griffe.Extension):
    """Puts each example into a fenced block."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for each module, class and function that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

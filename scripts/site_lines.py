"""Where lines of the site may break: a hook of mkdocs, called when a page is complete.

>>> may_break("<td>MonitoredTrainingSession of <code>max_steps</code></td>")
'<td>Monitored<wbr>Training<wbr>Session of <code>max_<wbr>steps</code></td>'
>>> keep_flags("<code>train --max_steps=5</code>")
'<code>train <span class="flag">--m</span>ax_steps=5</code>'
"""

import re
from typing import Any

_CELL = re.compile(r"(?<=<t[dh])\b.*?(?=</t[dh]>)", re.DOTALL)
_CODE = re.compile(r"(?<=<code).*?(?=</code>)", re.DOTALL)
# Between tags; the rest of a tag that begins before the text is left alone.
_TEXT = re.compile(r"(?<=>)[^<]+")
# Before a second word in CamelCase, and behind signs that join words.
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[_/=(.,])(?=[A-Za-z_\"]{2})")
_FLAG = re.compile(r"--\w")


def on_post_page(output: str, **kwargs: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    return keep_flags(may_break(output))


def may_break(html: str) -> str:
    """Lets long names in the cells of tables go on in the next line, between their words."""
    return _CELL.sub(
        lambda cell: _TEXT.sub(lambda text: _JOINT.sub("<wbr>", text[0]), cell[0]), html
    )


def keep_flags(html: str) -> str:
    """Keeps browsers from ending a line between the dashes of a flag and its name."""

    def joined(text: re.Match[str]) -> str:
        return _FLAG.sub(r'<span class="flag">\g<0></span>', text[0])

    return _CODE.sub(lambda code: _TEXT.sub(joined, code[0]), html)

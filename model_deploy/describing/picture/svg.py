"""Elements of an SVG picture, in the colors of the pictures in docs/, light and dark."""

from xml.sax.saxutils import escape

# (light, dark) style by CSS selector; tests of the site check the contrast.
_COLORS = {
    "text": ("fill: #17212b", "fill: #e6ebf1"),
    ".page": ("fill: #ffffff", "fill: #1b2028"),
    ".process": ("fill: #eef1f5; stroke: #5a6775", "fill: #262d37; stroke: #9aa7b5"),
    ".device": ("fill: #ffffff; stroke: #5a6775", "fill: #1b2028; stroke: #9aa7b5"),
    ".variables": ("fill: #d9e7fd; stroke: #1f5fbf", "fill: #1c355c; stroke: #7fb0ff"),
    ".clone": ("fill: #dcf2de; stroke: #2a7d3c", "fill: #1b4023; stroke: #7ccf8c"),
    ".update": ("fill: #fde6d5; stroke: #b4460f", "fill: #55290f; stroke: #ff9d66"),
    ".value": ("stroke: #1f5fbf", "stroke: #7fb0ff"),
    ".gradient": ("stroke: #b4460f", "stroke: #ff9d66"),
    ".call": ("stroke: #2a7d3c", "stroke: #7ccf8c"),
    ".value-head": ("fill: #1f5fbf", "fill: #7fb0ff"),
    ".gradient-head": ("fill: #b4460f", "fill: #ff9d66"),
    ".call-head": ("fill: #2a7d3c", "fill: #7ccf8c"),
}
_FONTS = """    text { font-family: system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
    text { font-size: 15px; }
    .small { font-size: 13px; }
    .strong { font-weight: 600; }
    .process { stroke-dasharray: 6 4; }
    .value, .gradient, .call { fill: none; stroke-width: 2.5; }
"""


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Returns a box with round corners."""
    return (
        f'  <rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
    )


def text_at(words: str, x: float, y: float, kind: str, ends_there: bool = False) -> str:
    """Returns words that begin at a position, or end there."""
    anchor = ' text-anchor="end"' if ends_there else ""
    return f'  <text class="{kind}" x="{x:g}" y="{y:g}"{anchor}>{escape(words)}</text>'


def style() -> str:
    """Returns the style sheet for light and dark pages."""

    def rules(night: int, indent: str) -> str:
        return "".join(f"{indent}{name} {{ {both[night]}; }}\n" for name, both in _COLORS.items())

    return (
        f"  <style>\n{_FONTS}{rules(0, '    ')}"
        f"    @media (prefers-color-scheme: dark) {{\n{rules(1, '      ')}    }}\n  </style>"
    )


def arrow_heads() -> str:
    """Returns the heads of the three kinds of arrows, named `url(#kind)` in paths."""
    marks = "".join(
        f'    <marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" '
        'markerHeight="11" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="{kind}-head" d="M0 0 L10 5 L0 10 z"/></marker>\n'
        for kind in ("value", "gradient", "call")
    )
    return f"  <defs>\n{marks}  </defs>"

"""One picture of all ratios in docs/benchmarks.md, a row for each benchmark.

    python -m benchmarks.picture

draws it anew from the tables of the page and measures nothing; `python -m benchmarks` does so, too,
when it has written them.
"""

import argparse
import hashlib
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "images" / "benchmarks.png"

# What a contender is, by the beginning of its name; anything else is this project.
_KINDS = {
    "TF-Slim": ("slim.", "TF-Slim"),
    "TensorFlow": ("MonitoredTraining", "towers", "ParameterServerStrategy", "plain", "tf.data"),
    "Keras": ("Keras", "keras_cifar10.py, Keras"),
    "PyTorch": ("PyTorch",),
    "a limit": (
        *("bare loop", "one constant batch", "gRPC copy", "rows touched", "whole table"),
        "computation, or transfer",
    ),
}
_OURS = "this project, set differently"
_MARKERS = dict(zip((*_KINDS, _OURS), "sD^vXo", strict=True))
_BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
_TITLE = {"fontsize": 7.5, "zorder": 1, "bbox": _BEHIND}
_GOAL = re.compile(
    r"^- (?P<quantity>.+?): (?P<contender>.+?) is to be at (?P<side>least|most) \S+ times "
    r"(?P<other>.+); it is (?P<ratio>[\d.e+-]+) times: (?P<verdict>reached|short)$",
    re.MULTILINE,
)
_TABLE = re.compile(
    r"^\| contender +\| +(?P<quantity>[^|]+?) +\| +lowest \| +highest \|"
    r" +times (?P<other>[^|]+?) \|\n.*\n(?P<rows>(?:\|.*\n?)+)",
    re.MULTILINE,
)


class Ratio(NamedTuple):
    """How much better one contender is than another one.

    Attributes:
      times: above 1 if it is better: more of a rate, less of a time or a size.
      kind: what the other one is, a key of `_MARKERS`.
      reached: whether it is as good as it was meant to be; also where no goal was set.
    """

    times: float
    kind: str
    reached: bool


def read_ratios(document: str) -> dict[str, list[Ratio]]:
    """The ratios of each benchmark in the page, by title.

    These are the ratios of its goals or, where it has none, those of its tables: of this project
    to the contender that the others are compared with.
    """
    sections = re.split(r"^## ", document, flags=re.MULTILINE)[1:]
    found = {}
    for section in sections:
        title, _, body = section.partition("\n")
        ratios = [_ratio_of_goal(match) for match in _GOAL.finditer(body)]
        ratios = ratios or [each for match in _TABLE.finditer(body) for each in _of_table(match)]
        if ratios:
            found[title] = ratios
    return found


def _ratio_of_goal(goal: re.Match[str]) -> Ratio:
    ratio = float(goal["ratio"])
    times = 1 / ratio if goal["side"] == "most" else ratio
    return Ratio(times, kind_of(goal["other"]), goal["verdict"] == "reached")


def _of_table(table: re.Match[str]) -> Iterator[Ratio]:
    more_is_better = bool(re.search(r"/s|per CPU second|accuracy", table["quantity"]))
    for row in table["rows"].splitlines():
        name, *_, ratio = (cell.strip() for cell in row.strip("|").split(" | "))
        if name == table["other"] or kind_of(name) != _OURS or not re.fullmatch(r"[\d.]+", ratio):
            continue
        if times := float(ratio):
            yield Ratio(times if more_is_better else 1 / times, kind_of(table["other"]), True)


def kind_of(contender: str) -> str:
    """What a contender of this name is.

    >>> kind_of("Keras fit"), kind_of("train, 2")
    ('Keras', 'this project, set differently')
    """
    return next((kind for kind, names in _KINDS.items() if contender.startswith(names)), _OURS)


def fingerprint(ratios: dict[str, list[Ratio]]) -> str:
    """Stands in the picture, so that a test can see of which ratios it is."""
    return hashlib.sha256(repr(sorted(ratios.items())).encode()).hexdigest()


def draw(ratios: dict[str, list[Ratio]], measured: str, path: pathlib.Path) -> None:
    """Draws a row for each benchmark, with a mark for each ratio.

    Args:
      ratios: by title.
      measured: when and on what, for the line below.
      path: the file, a PNG.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - half a second

    figure = Figure(figsize=(5.4, 1.3 + 0.36 * len(ratios)), layout="constrained")
    axis = figure.subplots()
    for row, (title, each) in enumerate(ratios.items()):
        axis.axhline(-row, color="0.9", linewidth=0.8, zorder=0)
        axis.text(0.01, -row + 0.18, title, transform=axis.get_yaxis_transform(), **_TITLE)
        for ratio in each:
            axis.plot(ratio.times, -row, **_style(ratio))
    axis.axvline(1, color="0.3", linewidth=1, zorder=0)
    axis.set_xscale("log")
    ticks = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_yticks([])
    axis.set_ylim(-len(ratios) + 0.4, 0.8)
    axis.tick_params(labelsize=8, labeltop=True, top=True)
    axis.set_xlabel(f"times as good; right of 1 this project is ahead\n{measured}", fontsize=8)
    axis.spines[["left", "right"]].set_visible(False)
    kinds = {ratio.kind for each in ratios.values() for ratio in each}
    _draw_legend(figure, [kind for kind in _MARKERS if kind in kinds])
    figure.savefig(path, format="png", dpi=180, metadata={"Description": fingerprint(ratios)})


def _style(ratio: Ratio) -> dict[str, Any]:
    """Color and mark say to what the ratio is, a hollow mark that a goal was missed."""
    color = f"C{list(_MARKERS).index(ratio.kind)}"
    return {
        "marker": _MARKERS[ratio.kind],
        "color": color,
        "markerfacecolor": color if ratio.reached else "white",
        "markersize": 5,
        "linestyle": "none",
        "alpha": 0.85,
    }


def _draw_legend(figure: Any, kinds: Sequence[str]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - see draw

    marks = {kind: Ratio(1, kind, True) for kind in kinds} | {"goal missed": Ratio(1, _OURS, False)}
    lines = [Line2D([], [], **_style(mark)) for mark in marks.values()]
    figure.legend(
        lines, marks, loc="outside upper left", ncols=3, frameon=False, fontsize=8,
        title="against", title_fontsize=8, alignment="left",
    )  # fmt: skip


def draw_page(document: str) -> None:
    """Draws the picture that the page shows, of the results in the page."""
    _, _, results = document.partition("\n## Results\n")
    processor = re.search(r"^- processor: (.+)$", results, re.MULTILINE)
    days = sorted(set(re.findall(r"\d{4}-\d\d-\d\d", results)))
    first_and_last = " to ".join(days[:1] + days[1:][-1:])
    measured = "; ".join([*([processor[1]] if processor else []), first_and_last])
    draw(read_ratios(document), measured, PICTURE)
    print(f"drew {PICTURE}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws the picture of the page."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(arguments)
    draw_page(DOCUMENT.read_text())


if __name__ == "__main__":
    main()

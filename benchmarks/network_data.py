"""The measurements over slow links that are kept, and how far plans are from them.

    python -m benchmarks.network_data

prints both for each row, and draws docs/images/plan_and_measured.png.
"""

import dataclasses
import pathlib
import statistics
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.kept import read_rows, stamped, write_rows
from benchmarks.network_grid import Group, Measured
from model_deploy import plan

DATA = pathlib.Path(__file__).parent / "data" / "slow_network.json"
PICTURE = pathlib.Path(__file__).parents[1] / "docs" / "images" / "plan_and_measured.png"


def read(path: pathlib.Path = DATA) -> list[Measured]:
    """What was measured."""
    names = [field.name for field in dataclasses.fields(Measured)]
    kept = [{name: row[name] for name in names} for row in read_rows(path)]
    return [Measured(**{**row, "seconds": tuple(row["seconds"])}) for row in kept]


def write(measured: Measured, path: pathlib.Path = DATA) -> None:
    """Puts a measurement into the file, in the place of an earlier one of the same row."""
    row = stamped(dataclasses.asdict(measured))
    same = [field.name for field in dataclasses.fields(Group)] + ["megabits"]

    def key(each: Mapping[str, object]) -> tuple[object, ...]:
        return (*(each[name] for name in same), bool(each["computation_secs"]))

    rows = [each for each in read_rows(path) if key(each) != key(row)]
    write_rows([*rows, row], path)


def errors(rows: Iterable[Measured]) -> list[float]:
    """How far the plan is from each measurement, as a share of it; less is negative."""
    return [row.planned.secs / row.typical - 1 for row in rows]


def summary(rows: Sequence[Measured]) -> str:
    """The error in the median and at worst."""
    found = [abs(error) for error in errors(rows)]
    return (
        f"{len(rows)} measurements: the plan is within {statistics.median(found):.1%} in the "
        f"median, {max(found):.1%} at worst"
    )


def draw(rows: Sequence[Measured], path: pathlib.Path = PICTURE) -> None:
    """Draws what was planned over what was measured, and lines at 10% and 25%."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(6.5, 6.0), layout="constrained")
    axis = figure.subplots()
    markers = dict(zip(plan.WAYS, "o^sv", strict=True))
    for name, marker in markers.items():
        for computes in (False, True):
            some = [r for r in rows if r.way == name and bool(r.computation_secs) == computes]
            axis.scatter(
                [row.typical for row in some],
                [row.planned.secs for row in some],
                marker=marker,
                facecolors="none" if computes else None,
                edgecolors=f"C{plan.WAYS.index(name)}",
                label=f"{name.replace('_', '-')}, {'computing' if computes else 'wire alone'}",
            )
    ends = [min(row.typical for row in rows) * 0.8, max(row.typical for row in rows) * 1.25]
    for share, style in ((1.0, "-"), (1.1, "--"), (1 / 1.1, "--"), (1.25, ":"), (0.75, ":")):
        axis.plot(ends, [share * end for end in ends], style, color="gray", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("measured, seconds per step")
    axis.set_ylabel("planned, seconds per step")
    axis.set_title("dashed: 10% off, dotted: 25% off", fontsize=9)
    axis.legend(fontsize=8)
    figure.savefig(path, format="png", dpi=110)


if __name__ == "__main__":
    kept = read()
    print("\n".join(map(str, kept)))
    print(summary(kept))
    draw(kept)

"""A plan as a table and as a picture."""

import os

from model_deploy.commands import aligned, replaced_file, without_font_notices
from model_deploy.plan.planning import Plan, Row

_HEADER = (
    "workers",
    "way",
    "s/step",
    "images/s",
    "efficiency",
    "MB/step worker",
    "MB/step ps",
    "limit",
    "GB/device",
    "GB/ps",
)


def table(plan: Plan) -> str:
    """Formats all rows, a `*` at each choice, and below them the reasons."""
    chosen = [row for row, _ in plan.choices]
    cells: list[tuple[str, ...]] = [_HEADER]
    cells += [_cells(row, is_chosen=row in chosen) for row in plan.rows]
    lines = aligned(cells, left=(1, 7))
    lines.insert(1, "-" * len(lines[0]))
    lines.append("")
    lines += [f"{row.way.workers} workers: {row.name} ({why})" for row, why in plan.choices]
    intervals = sorted({round(r.save_interval) for r, _ in plan.choices if r.save_interval})
    if intervals:
        lines.append(f"save every {', '.join(map(str, intervals))} s")
    return "\n".join(lines)


def _cells(row: Row, *, is_chosen: bool) -> tuple[str, ...]:
    step = row.step
    return (
        str(row.way.workers),
        f"{'*' if is_chosen else ' '} {row.name}",
        f"{step.secs:.3f}",
        f"{row.images_per_sec:,.0f}",
        f"{row.efficiency:.0%}",
        f"{step.worker_bytes / 1e6:,.1f}",
        f"{step.ps_bytes / 1e6:,.1f}" if row.way.ps else "-",
        step.link,
        f"{row.worker_memory / 1e9:.2f}",
        f"{row.ps_memory / 1e9:.2f}" if row.way.ps else "-",
    )


@without_font_notices()
def draw(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Draws images/s over the number of workers, one line per way, as PNG or SVG by the file name.

    Raises:
      ValueError: if the file name has another suffix.
    """
    kind = os.path.splitext(path)[1].removeprefix(".")
    if kind not in ("png", "svg"):
        raise ValueError(f"picture must end in .png or .svg, got {os.fspath(path)}")
    # Imported here, as it takes half a second; not pyplot, which would keep state and windows.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axis = figure.subplots()
    lines: dict[str, list[Row]] = {}
    for row in plan.rows:
        lines.setdefault(row.name, []).append(row)
    styles = {"all_reduce": "-", "rotated": "-.", "synchronous": "--", "asynchronous": ":"}
    for name, rows in lines.items():
        workers = [row.way.workers for row in rows]
        rates = [row.images_per_sec for row in rows]
        axis.plot(workers, rates, styles[rows[0].way.name], marker="o", markersize=3, label=name)
    ideal = {row.way.workers: row.images_per_sec / row.efficiency for row in plan.rows}
    axis.plot(list(ideal), list(ideal.values()), color="black", linewidth=0.7, label="no network")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.set_xlabel("workers")
    axis.set_ylabel("images/s")
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize=7, ncols=2)
    with replaced_file(path, "wb") as file:
        figure.savefig(file, format=kind, dpi=110)

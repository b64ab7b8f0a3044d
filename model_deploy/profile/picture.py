"""Draws a step: which ops run on which device, and when."""

import os
from collections.abc import Sequence

from model_deploy.commands import replaced_file, without_font_notices
from model_deploy.profile.kinds import KINDS
from model_deploy.profile.summary import step_spans
from model_deploy.profile.traces import OpTime, in_lanes

_COLORS = dict(zip(KINDS, ("tab:blue", "tab:green", "tab:orange", "tab:red"), strict=True))
_LANE = 0.18  # inches


@without_font_notices()
def plot_step(ops: Sequence[OpTime], path: str | os.PathLike[str]) -> int:
    """Draws the step of median length as a PNG; returns its number.

    Args:
      ops: the ops of at least one step.
      path: the file to write.

    Raises:
      OSError: if it cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes half a second
    from matplotlib.patches import Patch  # noqa: PLC0415

    spans = step_spans(ops)
    step = sorted(spans, key=lambda each: spans[each][1] - spans[each][0])[len(spans) // 2]
    began = spans[step][0]
    shown = [op for op in ops if op.step == step]
    devices = sorted({op.device for op in shown})
    lanes = {each: list(in_lanes(op for op in shown if op.device == each)) for each in devices}
    heights = [1 + max(lane for _, lane in each) for each in lanes.values()]
    size = (10.0, 1.2 + _LANE * sum(heights) + 0.4 * len(devices))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(
        len(devices), 1, sharex=True, squeeze=False, height_ratios=[each + 1 for each in heights]
    )[:, 0]
    for axis, device, height in zip(axes, devices, heights, strict=True):
        for kind in KINDS:
            for lane in range(height):
                bars = [
                    ((op.begin_usec - began) / 1000, op.usec / 1000)
                    for op, its in lanes[device]
                    if its == lane and op.kind == kind
                ]
                axis.broken_barh(
                    bars,
                    (lane + 0.05, 0.9),
                    facecolors=_COLORS[kind],
                    edgecolor="white",
                    linewidth=0.3,
                )
        axis.set_ylim(height, 0)
        axis.set_yticks([])
        axis.set_title(device, fontsize=8, loc="left")
    axes[-1].set_xlabel(f"ms since the start of step {step}; each bar is an op")
    figure.legend(
        handles=[Patch(color=_COLORS[kind], label=kind) for kind in KINDS],
        loc="outside upper right",
        ncols=len(KINDS),
        fontsize=8,
    )
    with replaced_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=110)
    return step

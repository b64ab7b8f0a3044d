"""The picture of a run is drawn while it goes on."""

import copy
import json
import os
import subprocess
import sys

import pytest

from model_deploy.checkpoints import Storage
from model_deploy.training.shown import plots

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("secs", "at"),
    [(0.25, [60.0, 120.25, 180.5]), (2.0, [60.0, 262.0, 464.0])],
    ids=["short", "long"],
)
def test_drawings_take_a_hundredth_of_the_time(secs, at, tmp_path, monkeypatch):
    """A drawing begins 60 s after the last one ended, or after 100 times what that took."""
    now, drawn = [0.0], []

    def draw(train_dir, unit):
        drawn.append(now[0])
        now[0] += secs

    monkeypatch.setattr(plots, "plot_training", draw)
    monkeypatch.setattr(plots.time, "monotonic", lambda: now[0])
    plot = plots.TrainingPlot(str(tmp_path), "images", Storage())
    while len(drawn) < 3:
        plot.draw_now_and_then()
        plot._thread.wait()
        now[0] += 0.25
    assert drawn == at


_DRAW = """
from model_deploy.training.shown.plots import plot_training
plot_training({folder!r})
"""
_DRAW_BY_MATPLOTLIB = """
from matplotlib.figure import Figure
Figure().subplots().text(0, 0, "$10^{{-1}}$").figure.savefig({folder!r} + "/training.png")
"""


@pytest.mark.parametrize(
    ("program", "says"), [(_DRAW, False), (_DRAW_BY_MATPLOTLIB, True)], ids=["run", "matplotlib"]
)
def test_picture_with_a_broken_list_of_fonts(program, says, tmp_path):
    """matplotlib tells of each font that its list lacks; the picture of a run says none of it."""
    from matplotlib import font_manager  # noqa: PLC0415 - half a second

    fonts = copy.copy(font_manager.fontManager)
    fonts.ttflist = [font for font in fonts.ttflist if font.name == "DejaVu Sans"]
    font_manager.json_dump(fonts, tmp_path / f"fontlist-v{fonts.__version__}.json")
    (tmp_path / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": step, "loss": 10.0**-step}) + "\n" for step in range(5))
    )
    result = subprocess.run(
        [sys.executable, "-c", program.format(folder=str(tmp_path))],
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("findfont" in result.stderr) == says, result.stderr
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")

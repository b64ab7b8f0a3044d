"""The picture of a run is drawn while it goes on."""

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

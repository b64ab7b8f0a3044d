"""`Progress`: a progress bar on a terminal or in a notebook, plain lines elsewhere."""

import datetime
import math
import shutil
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from tqdm import tqdm

from model_deploy.commands import tell
from model_deploy.training.steps.report import StepReport

# What the names of metrics in training begin with, in log entries.
METRIC = "train_"


class Progress:
    """Shows loss, learning rate, throughput and time waiting for data; use it in a `with` block.

    Args:
      first_step: number of steps made before this session.
      max_steps: number of the last step; None for no end.
      images_per_step: images per step, over all clones.
      unit: name of the examples, in place of images.
      shares_steps: whether other workers update the same variables: then the number of this
        process's steps and the staleness of gradients are shown, too.
      stream: where to write; a bar on a terminal or in the output of a notebook's cell, else lines.

    Attributes:
      max_steps: as given.
      unit: as given.
    """

    def __init__(
        self,
        first_step: int,
        max_steps: int | None,
        images_per_step: int,
        *,
        unit: str = "images",
        shares_steps: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._stream = stream or sys.stderr
        self._images_per_step = images_per_step
        self._shares_steps = shares_steps
        self.max_steps = max_steps
        self.unit = unit
        self._shown = first_step
        self._times = [time.perf_counter()]
        self._waited = 0.0
        self._stale: list[int] = []
        self._local_steps = 0
        self._bar: Any = None
        if _redraws(self._stream):
            # Some terminals report a width of 0, for which tqdm would show nothing.
            width = shutil.get_terminal_size().columns
            self._bar = tqdm(
                total=max_steps, initial=first_step, unit="step", ncols=width, file=self._stream
            )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def leave_out(self, secs: float) -> None:
        """Excludes time spent on something other than training from the rates."""
        self._times = [each + secs for each in self._times]

    def add(self, report: StepReport) -> None:
        """Counts a step; called after each step."""
        made_at = time.perf_counter() if math.isnan(report.made_at) else report.made_at
        self._times.append(made_at)
        self._waited += report.wait_secs
        self._stale.append(report.staleness)
        self._local_steps += 1

    def show(
        self, report: StepReport, metrics: Mapping[str, float] | None = None
    ) -> dict[str, Any]:
        """Shows the state after a step, with rates since the previous call, and returns it.

        Args:
          report: the report of the step.
          metrics: the model's metrics since the previous call, by name; NaN for undefined ones.

        Returns:
          `step`, `loss`, `learning_rate`, `images_per_sec` (for any unit) with its spread (1.4826
          times the median absolute deviation over steps, a robust standard deviation),
          `secs_per_batch`, `waiting` (fraction of the time), `secs_left`, and `time` (UTC); unknown
          values are NaN.  If steps are shared also `local_step`, the number of this process's
          steps, and `staleness_median` and `staleness_max`, in updates by others during a step.
          With loss scaling also `loss_scale` and `left_out`, the number of skipped updates so far.
          A metric has its name behind `train_`.
        """
        entry = {"step": report.step, "loss": report.loss, "learning_rate": report.learning_rate}
        entry |= self._rates(report.step)
        if self._shares_steps:
            entry |= {
                "local_step": self._local_steps,
                "staleness_median": statistics.median(self._stale or [0]),
                "staleness_max": max(self._stale, default=0),
            }
        if not math.isnan(report.loss_scale):
            entry |= {"loss_scale": report.loss_scale, "left_out": report.num_left_out}
        entry |= {f"{METRIC}{name}": value for name, value in (metrics or {}).items()}
        self._stale = []
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(_words(entry, self.unit)), refresh=False)
            self._bar.update(report.step - self._shown)
        else:
            of = f"/{self.max_steps}" if self.max_steps is not None else ""
            left = entry["secs_left"]
            ends = [] if math.isnan(left) else [f"{datetime.timedelta(seconds=round(left))} left"]
            self.line("  ".join([f"step {report.step}{of}", *_words(entry, self.unit), *ends]))
        self._shown = report.step
        return entry | {"time": datetime.datetime.now(datetime.timezone.utc).isoformat()}

    def line(self, text: str) -> None:
        """Prints a line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            tell(text, self._stream)

    def _rates(self, step: int) -> dict[str, float]:
        secs = [after - before for before, after in zip(self._times, self._times[1:], strict=False)]
        total, waited = sum(secs), self._waited
        self._times, self._waited = self._times[-1:], 0.0
        rates = [self._images_per_step / each for each in secs if each > 0]
        middle = statistics.median(rates)
        spread = 1.4826 * statistics.median([abs(rate - middle) for rate in rates])
        mean = total / len(secs)
        left = math.nan if self.max_steps is None else max(0, self.max_steps - step) * mean
        return {
            "images_per_sec": self._images_per_step / mean,
            "images_per_sec_spread": spread,
            "secs_per_batch": mean,
            "waiting": min(1.0, waited / total) if not math.isnan(waited) else math.nan,
            "secs_left": left,
        }


def _redraws(stream: TextIO) -> bool:
    """Whether a line can be redrawn: on a terminal, and in the output of a notebook's cell."""
    kernel = sys.modules.get("ipykernel.iostream")
    return stream.isatty() or (kernel is not None and isinstance(stream, kernel.OutStream))


def _words(entry: dict[str, Any], unit: str) -> list[str]:
    facts = [f"loss {entry['loss']:.4f}"]
    # Early, as a bar on a terminal of 80 columns has no room for all.
    for key in (key for key in entry if key.startswith(METRIC)):
        value = "undefined" if math.isnan(entry[key]) else f"{entry[key]:.4f}"
        facts.append(f"{key.removeprefix(METRIC)} {value}")
    if not math.isnan(entry["learning_rate"]):
        facts.append(f"rate {entry['learning_rate']:.4g}")
    if not math.isnan(entry["images_per_sec"]):
        rate, spread = entry["images_per_sec"], entry["images_per_sec_spread"]
        facts.append(f"{rate:,.0f} ± {spread:,.0f} {unit}/s")
        facts.append(f"{entry['secs_per_batch']:.4f} s/batch")
    if not math.isnan(entry["waiting"]):
        facts.append(f"{entry['waiting']:.0%} waiting for data")
    if "local_step" in entry:
        median, largest = entry["staleness_median"], entry["staleness_max"]
        facts.append(f"local step {entry['local_step']}")
        facts.append(f"staleness {median:g} (at most {largest})")
    if "loss_scale" in entry:
        facts.append(f"loss scale {entry['loss_scale']:g} ({entry['left_out']} left out)")
    return facts

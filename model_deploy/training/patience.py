"""`Patience`: ends a run that does not get better, counted over all sessions of the run."""

import math
import os

from model_deploy import file_systems
from model_deploy.checkpoints import BEST_DIR, BEST_FILE, say_once
from model_deploy.commands import read_checked, write_checked
from model_deploy.training.loop_options import LoopOptions

_FILE = "evaluations.json"
# Of these metrics lower values are better.
_FALLING = ("loss", "error")


def is_falling(metric: str, direction: str) -> bool:
    """Whether lower values of a metric are better.

    >>> is_falling("log_loss", "auto"), is_falling("auc", "auto"), is_falling("auc", "min")
    (True, False, True)

    Args:
      metric: name of the metric.
      direction: `max`, `min`, or `auto`: lower ones are for names with `loss` or `error`.
    """
    if direction == "auto":
        return any(word in metric for word in _FALLING)
    return direction == "min"


class Improvements:
    """Values of evaluations by their steps, and which of them are better than all before.

    Args:
      falls: whether lower values are better.

    Attributes:
      falls: as given.
      values: the value of each step.
    """

    def __init__(self, *, falls: bool) -> None:
        self.falls = falls
        self.values: dict[int, float] = {}

    def improvements(self, min_delta: float) -> list[bool]:
        """Returns of each evaluation, in order, whether it was better than all before it.

        Args:
          min_delta: by more than this; the first number is an improvement in any case.
        """
        found, best = [], -math.inf
        for _, value in sorted(self.values.items()):
            number = -value if self.falls else value
            improved = number > best + min_delta or (best == -math.inf and number > best)
            best = number if improved else best
            found.append(improved)
        return found

    def reaches(self, value: float, stop_at: float | None) -> bool:
        """Whether a value is as good as the one at which a run ends, or better."""
        if stop_at is None:
            return False
        return value <= stop_at if self.falls else value >= stop_at

    def waited(self, min_delta: float) -> int:
        """Returns the number of evaluations since the last improvement; of all, without one."""
        improvements = self.improvements(min_delta)
        return improvements[::-1].index(True) if any(improvements) else len(improvements)

    def described(self, metric: str, min_delta: float) -> str:
        """Says for how long a metric has not improved."""
        waited, steps = self.waited(min_delta), sorted(self.values)
        best = "none was a number"
        if waited < len(steps):
            best = f"the best is of step {steps[-1 - waited]}"
        return f"{metric} has not improved in {waited} evaluations ({best})"


class Patience(Improvements):
    """Counts evaluations without improvement.

    The values of all evaluations are in a file beside the best checkpoint, so that the count goes
    on where a run does that was killed.  What was evaluated after the step at which the run goes on
    is forgotten.

    Args:
      train_dir: the folder of the run.
      metric: name of the metric.
      falls: whether lower values are better.
      most: number of evaluations in a row without improvement that end the run; None for no end.
      min_delta: an improvement is more than this.
      first_step: number of steps made before.
    """

    def __init__(
        self,
        train_dir: str,
        metric: str,
        *,
        falls: bool,
        most: int | None,
        min_delta: float = 0.0,
        first_step: int = 0,
    ) -> None:
        super().__init__(falls=falls)
        self._metric = metric
        self._most = most
        self._min_delta = min_delta
        self._path = os.path.join(train_dir, BEST_DIR, _FILE)
        if file_systems.is_file(self._path):
            known = [(step, value) for step, value in self._noted() if step <= first_step]
            self.values = {step: math.nan if value is None else value for step, value in known}
        elif file_systems.is_file(os.path.join(train_dir, BEST_DIR, BEST_FILE)):
            say_once(f"{self._path} is missing: evaluations are counted from here")

    def add(self, step: int, value: float) -> None:
        """Counts an evaluation; NaN is no improvement.

        Raises:
          OSError: if the file cannot be written.
        """
        self.values[step] = value
        file_systems.make_folders(os.path.dirname(self._path))
        values = [
            [step, value if math.isfinite(value) else None]
            for step, value in sorted(self.values.items())
        ]
        write_checked(self._path, {"metric": self._metric, "values": values})

    def _noted(self) -> list[tuple[int, float | None]]:
        """Returns the steps and values of earlier sessions that are in the file.

        Raises:
          ValueError: naming the file, if it is damaged and the run may end by it.
        """
        try:
            found = read_checked(self._path)
            return found["values"] if found["metric"] == self._metric else []
        except (ValueError, KeyError) as error:
            if self._most is not None:
                raise ValueError(
                    f"{error}; without {self._path} evaluations are counted from here"
                ) from error
            say_once(f"{error}: evaluations are counted from here")
            return []

    def lacks(self, step: int) -> bool:
        """Whether the evaluation of a step is not there."""
        return step not in self.values

    @property
    def is_over(self) -> bool:
        """Whether the run is to end."""
        return self._most is not None and self.waited(self._min_delta) >= self._most

    def __str__(self) -> str:
        """Says why the run ends."""
        return self.described(self._metric, self._min_delta)


def patience_of(train_dir: str, metric: str, options: LoopOptions, first_step: int) -> Patience:
    """Returns the patience that options ask for, of a metric, where a session begins."""
    return Patience(
        train_dir,
        metric,
        falls=is_falling(metric, options.stop_direction),
        most=options.stop_patience,
        min_delta=options.stop_min_delta,
        first_step=first_step,
    )

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


class Patience:
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

    Attributes:
      falls: as given.
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
        self.falls = falls
        self._metric = metric
        self._sign = -1 if falls else 1
        self._most = most
        self._min_delta = min_delta
        self._path = os.path.join(train_dir, BEST_DIR, _FILE)
        self._values: dict[int, float] = {}
        if file_systems.is_file(self._path):
            known = [(step, value) for step, value in self._noted() if step <= first_step]
            self._values = {step: math.nan if value is None else value for step, value in known}
        elif file_systems.is_file(os.path.join(train_dir, BEST_DIR, BEST_FILE)):
            say_once(f"{self._path} is missing: evaluations are counted from here")

    def add(self, step: int, value: float) -> None:
        """Counts an evaluation; NaN is no improvement.

        Raises:
          OSError: if the file cannot be written.
        """
        self._values[step] = value
        file_systems.make_folders(os.path.dirname(self._path))
        values = [
            [step, value if math.isfinite(value) else None]
            for step, value in sorted(self._values.items())
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
        return step not in self._values

    def improvements(self, min_delta: float) -> list[bool]:
        """Returns of each evaluation whether it was better than all before it.

        Args:
          min_delta: by more than this; the first number is an improvement in any case.
        """
        found, best = [], -math.inf
        for _, value in sorted(self._values.items()):
            number = -math.inf if math.isnan(value) else self._sign * value
            improved = number > best + min_delta or (best == -math.inf and number > best)
            best = number if improved else best
            found.append(improved)
        return found

    @property
    def is_over(self) -> bool:
        """Whether the run is to end."""
        return self._most is not None and self._waited()[0] >= self._most

    def __str__(self) -> str:
        """Says why the run ends."""
        waited, step = self._waited()
        best = f"the best is of step {step}" if step is not None else "none was a number"
        return f"{self._metric} has not improved in {waited} evaluations ({best})"

    def _waited(self) -> tuple[int, int | None]:
        """Returns the number of evaluations since the last improvement, and that one's step."""
        steps, improvements = sorted(self._values), self.improvements(self._min_delta)
        if True not in improvements:
            return len(steps), None
        waited = improvements[::-1].index(True)
        return waited, steps[-1 - waited]


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

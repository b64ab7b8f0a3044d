"""The options of the training loop."""

import dataclasses
from typing import ClassVar

from model_deploy.commands import Options, option
from model_deploy.profile import parse_steps
from model_deploy.trackers import check_names


@dataclasses.dataclass(frozen=True)
class LoopOptions(Options):
    """When the loop logs, saves, evaluates and ends.

    Raises:
      ValueError: as `Options`; for an `on_corruption` without `verify_every_n_steps`, a
        `stop_at_metric` or `stop_patience` without `eval_every_n_steps` or `stop_by`, a `stop_by`
        with `eval_every_n_steps` or without either, or a `stop_min_delta` without
        `stop_patience`; for invalid `profile_steps`; for a `tracker` that is unknown, or whose
        package is not installed.
    """

    topic: ClassVar[str] = "loop"

    log_every_n_steps: int = option(10, "steps between updates of the progress shown", minimum=1)
    save_interval_secs: float = option(
        600, "seconds between checkpoints", minimum=0, topic="checkpoints"
    )
    save_interval_steps: int | None = option(
        None, "steps between checkpoints, besides those by seconds", minimum=1, topic="checkpoints"
    )
    save_summaries_secs: float = option(600, "seconds between summaries", minimum=0)
    save_summaries_steps: int | None = option(
        None, "steps between summaries, besides those by seconds", minimum=1
    )
    keep_checkpoints: int = option(
        5, "how many checkpoints of this run to keep", minimum=1, topic="checkpoints"
    )
    checkpoint_increments: int = option(
        0,
        "how many checkpoints after a whole one hold, of tables that grow, only the rows that "
        "changed since; at intervals only",
        minimum=0,
        topic="checkpoints",
    )
    checkpoints_by_servers: bool = option(
        False,
        "each parameter server writes and reads its own variables, in train_dir, which it must "
        "see; else the chief does all",
        topic="checkpoints",
    )
    save_in_background: bool = option(
        True,
        "checkpoints at intervals are copied in memory and written while steps go on; else steps "
        "wait",
        topic="checkpoints",
    )
    wait_for_storage_secs: float = option(
        0.0,
        "seconds to wait at the end of the run, if its checkpoint cannot be written, until it can",
        minimum=0,
        topic="checkpoints",
    )
    eval_every_n_steps: int | None = option(
        None,
        "steps between evaluations while training; default: none",
        minimum=1,
        topic="evaluation",
        common=True,
    )
    stop_metric: str | None = option(
        None,
        "metric of evaluations while training that tells the best checkpoint and ends the run; "
        "default: accuracy",
        topic="evaluation",
    )
    stop_direction: str = option(
        "auto",
        "whether stop_metric is best at its max or min; auto: min for names with loss or error",
        choices=("auto", "max", "min"),
        topic="evaluation",
    )
    stop_at_metric: float | None = option(
        None,
        "value of stop_metric in an evaluation while training at which the run ends",
        topic="evaluation",
    )
    stop_patience: int | None = option(
        None,
        "evaluations in a row without improvement of stop_metric after which the run ends",
        minimum=1,
        topic="evaluation",
    )
    stop_min_delta: float = option(
        0.0, "an improvement is more than this, for stop_patience", minimum=0, topic="evaluation"
    )
    stop_by: str | None = option(
        None,
        "folder in train_dir, such as eval_test, of the cluster's evaluator, whose evaluations end "
        "the run; default: those of the chief, every eval_every_n_steps",
        topic="evaluation",
    )
    check_numerics: bool = option(
        False, "name the first op that gives NaN or Inf; makes steps slower"
    )
    copies_check_every_n_steps: int | None = option(
        None,
        "steps between checks that all copies of the variables are equal, with all-reduce; "
        "default: none",
        minimum=1,
        topic="deployment",
    )
    verify_every_n_steps: int | None = option(
        None,
        "steps between steps that are made twice and compared bit for bit, and so are all copies "
        "with all-reduce; those before evaluations and saves, and the last one, are, too; "
        "default: none",
        minimum=1,
    )
    on_corruption: str = option(
        "go_back",
        "what a run does when verify_every_n_steps finds a difference: go back to the newest "
        "checkpoint, which only verified steps write, or end",
        choices=("go_back", "end"),
    )
    stall_timeout: float = option(
        600.0,
        "seconds without a step after which stacks of all threads are printed, and a task of the "
        "cluster that is missing ends the run",
        above=0,
        topic="cluster",
    )
    profile_steps: str | None = option(
        None,
        "first and last step of a profile, such as 100,105; see python -m model_deploy.profile",
    )
    tracker: str | None = option(
        None,
        "trackers that get options, metrics, pictures and models: mlflow, wandb or aim, or several "
        "with commas between them",
    )
    resume: str = option(
        "auto",
        "auto: go on from the newest checkpoint in train_dir; never: start anew, without "
        "any there; or the path of a checkpoint to go on from",
        topic="checkpoints",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tracker is not None:
            check_names(self.tracker)
        if self.profile_steps is not None:
            parse_steps(self.profile_steps)
        for name in ("stop_at_metric", "stop_patience"):
            value = getattr(self, name)
            alone = self.eval_every_n_steps is None and self.stop_by is None
            if value is not None and alone:
                raise ValueError(f"{name} must go with eval_every_n_steps, got {value} alone")
        if self.stop_by is not None:
            self._check_stop_by()
        if self.on_corruption != "go_back" and self.verify_every_n_steps is None:
            raise ValueError(
                f"on_corruption must go with verify_every_n_steps, got {self.on_corruption} alone"
            )
        if self.stop_min_delta and self.stop_patience is None:
            raise ValueError(
                f"stop_min_delta must go with stop_patience, got {self.stop_min_delta} alone"
            )

    def _check_stop_by(self) -> None:
        if self.eval_every_n_steps is not None:
            raise ValueError(
                f"stop_by must be None with eval_every_n_steps, got {self.stop_by!r} with "
                f"{self.eval_every_n_steps}"
            )
        if self.stop_at_metric is None and self.stop_patience is None:
            raise ValueError(
                f"stop_by must go with stop_at_metric or stop_patience, got {self.stop_by!r} alone"
            )

"""`RunParts`: what a run is made of, before it has a session."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from model_deploy.checkpoints import CheckpointWriter
from model_deploy.optimization import Plateau
from model_deploy.rotation import Rest
from model_deploy.trackers import Tracking
from model_deploy.training.ledger import Ledger
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.pace.pace import Pace
from model_deploy.training.replicas.agreed_saves import AgreedSaves
from model_deploy.training.replicas.early_end import EarlyEnd
from model_deploy.training.replicas.replicas import Replicas
from model_deploy.training.replicas.streamed_metrics import StreamedMetrics
from model_deploy.training.steps.numeric_checks import NumericChecks
from model_deploy.verification import Verification


@dataclasses.dataclass(frozen=True)
class RunParts:
    """What `train` was asked for and has made of it, independent of a session.

    Attributes:
      options: the settings.
      train_dir: folder of the run's files.
      report: the result of `report_op`, a float64 vector, or for asynchronous clones that of
        `clone_report_ops`, a list of vectors.
      checks: the checks of `check_numerics`, or None.
      summary_op: all summaries, a serialized string scalar, or None.
      writer: the chief's writer of checkpoints; None in other workers, which write no files.
      hooks: the user's hooks.
      max_steps: number of the last step, or None.
      images_per_step: images per step over all clones.
      unit: name of the examples, in place of images.
      evaluate: function of a checkpoint's path that returns metrics by name, or None.
      metric: name of the metric for the best checkpoint and the end of the run.
      shares_steps: whether other workers independently update the same variables.
      copies_difference: the model's, a float64 scalar to check at intervals; or None.
      replicas: the other processes of the cluster; None without a cluster.
      early_end: how all workers end where the chief ends the run early.
      streamed: the model's metrics in training; None without metrics.
      pace: where the time of steps goes, here and in other processes.
      ledger: what the time of this process is spent on.
      verification: makes steps twice at intervals; None if none is.
      agreed_saves: which steps may be saved, where replicas have values of their own; else None.
      rest: what a rotated step leaves to the next one; or None.
      plateau: the learning rate that follows the evaluations, or None.
      tracking: the trackers of the run, on the chief; or None.
    """

    options: LoopOptions
    train_dir: str
    report: Any
    checks: NumericChecks | None
    summary_op: Any
    writer: CheckpointWriter | None
    hooks: Sequence[Any]
    max_steps: int | None
    images_per_step: int
    unit: str
    evaluate: Callable[[str], Mapping[str, float]] | None
    metric: str
    shares_steps: bool
    pace: Pace
    copies_difference: Any = None
    replicas: Replicas | None = None
    early_end: EarlyEnd = dataclasses.field(default_factory=EarlyEnd)
    streamed: StreamedMetrics | None = None
    ledger: Ledger = dataclasses.field(default_factory=Ledger)
    verification: Verification | None = None
    agreed_saves: AgreedSaves | None = None
    rest: Rest | None = None
    plateau: Plateau | None = None
    tracking: Tracking | None = None

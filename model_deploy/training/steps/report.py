"""The report of a step: its numbers, fetched as one tensor."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.clones import collect_members
from model_deploy.deployment import DeployedModel
from model_deploy.parts import parts_by_clone
from model_deploy.training.pace.marks import Marks, marks_of

_NUM_MARKS = len(Marks._fields)
# (places of clones or parts, whether the step was left out) -> an op.
Count = Callable[[Sequence[int], Any], Any]


class StepReport(NamedTuple):
    """The numbers that each step reports.

    Attributes:
      step: number of the step, counted from 1.
      loss: the total loss, before the update.
      learning_rate: the learning rate of the update; NaN if `train` was given none.
      wait_secs: seconds of waiting for data; NaN if `train` was given none.
      first_bad: number of the first op with a value that is not finite, see `NumericChecks`; -1
        if there is none, and without checks.
      staleness: how many updates others made between the start of the step and its own update.
      clone_losses: the losses of each clone's own `model_fn`.
      loss_scale: the loss scale of the next step; NaN without loss scaling.
      num_left_out: number of updates skipped so far because of gradients that were not finite.
      was_left_out: whether this step's update was skipped.
      made_at: when the step was made, by `time.perf_counter`, if it is reported later, while other
        steps are made; else NaN.
      made_between: when the step began and ended, by `time.time`, for one that is reported later;
        else None.
      marks: the step's `Marks`, in seconds; () without any.
    """

    step: int
    loss: float
    learning_rate: float
    wait_secs: float
    first_bad: int
    staleness: int
    clone_losses: tuple[float, ...]
    loss_scale: float = math.nan
    num_left_out: int = 0
    was_left_out: bool = False
    made_at: float = math.nan
    made_between: tuple[float, float] | None = None
    marks: tuple[float, ...] = ()


def report_op(
    model: DeployedModel,
    learning_rate: Any,
    wait_secs: Any,
    first_bad: Any = None,
    count: Count | None = None,
) -> Any:
    """Returns an op that makes a step and returns its report, float64 [13 + clones].

    The report is one small tensor, as each fetch costs more than the ops that pack it.

    Args:
      model: what `deploy` returned, with an optimizer.
      learning_rate: a float scalar tensor or number, or None.
      wait_secs: seconds, a float scalar tensor, or None.
      first_bad: an integer scalar tensor, or None.
      count: makes an op that counts the examples of a step in metrics; or None.
    """
    clone_losses = _clone_losses(model)
    global_step = tf.train.get_global_step()
    with tf.device(model.train_op.device):
        # Outside of the control dependency: TensorFlow then computes constants only once.
        known = _numbers(learning_rate, wait_secs, -1 if first_bad is None else first_bad)
        marks = marks_of(model, model.computed, model.exchanged, times_batches=wait_secs is None)
        each_loss = _numbers(*marks, *clone_losses)
        staleness = 0 if model.staleness is None else model.staleness
        with tf.control_dependencies([model.train_op]):
            step = tf.identity(global_step if model.global_step is None else model.global_step)
            own = _numbers(step, model.train_op)
            scale = _scale_state(model)
            counted = [] if count is None else [count(range(len(model.clones)), scale[2])]
        state = _numbers(staleness, *scale)
        with tf.control_dependencies(counted):
            return tf.stack([*own, *known, *state, *each_loss], name="step_report")


def clone_report_ops(
    model: DeployedModel, learning_rate: Any, wait_secs: Any, count: Count | None = None
) -> list[Any]:
    """Returns for each asynchronous clone an op that makes and reports a step.

    Args:
      model: what `deploy` returned, with an optimizer, for asynchronous clones.
      learning_rate: a float scalar tensor or number, or None.
      wait_secs: seconds, a list of float scalar tensors, one for each clone, or None.
      count: as for `report_op`.

    Returns:
      float64 [14] for each clone, as `report_op` returns for a model with one clone.
    """
    reports = []
    groups = parts_by_clone(model.clones)
    for i, (group, update) in enumerate(zip(groups, model.clone_updates, strict=True)):
        clone = model.clones[group[0]]
        waited = None if wait_secs is None else wait_secs[i]
        with tf.device(clone.device), tf.control_dependencies([update.train_op]):
            loss = tf.identity(update.train_op)
            scale = _scale_state(model)
            counted = [] if count is None else [count(group, scale[2])]
        with tf.device(update.global_step.device), tf.control_dependencies(counted):
            parts = [update.global_step, loss, learning_rate, waited, -1, update.staleness]
            marks = marks_of(model, model.clone_computed[i], times_batches=waited is None)
            parts += [*scale, *marks, loss]
            reports.append(tf.stack(_numbers(*parts), name="step_report"))
    return reports


def _scale_state(model: DeployedModel) -> tuple[Any, Any, Any]:
    """Returns `LossScale.state`, or constants without loss scaling."""
    return (math.nan, 0, 0) if model.loss_scale is None else model.loss_scale.state()


def _clone_losses(model: DeployedModel) -> list[Any]:
    """Returns each clone's sum of losses, averaged over parts; None for one without loss."""
    losses = collect_members(tf.GraphKeys.LOSSES, model.clones).clones
    found = []
    for group in parts_by_clone(model.clones):
        own = [loss for i in group for loss in losses[i]]
        total = tf.add_n(own) if own else None
        found.append(total if total is None or len(group) == 1 else total / len(group))
    return found


def _numbers(*values: Any) -> list[Any]:
    return [tf.cast(math.nan if value is None else value, tf.float64) for value in values]


def read_report(values: Any) -> StepReport:
    """Parses an array that `report_op` returned, float64 [13 + clones]."""
    step, loss, learning_rate, wait_secs, first_bad, staleness, *others = values.tolist()
    scale, num_left_out, was_left_out, *others = others
    return StepReport(
        step=int(step),
        loss=loss,
        learning_rate=learning_rate,
        wait_secs=wait_secs,
        first_bad=int(first_bad),
        staleness=int(staleness),
        clone_losses=tuple(others[_NUM_MARKS:]),
        loss_scale=scale,
        num_left_out=int(num_left_out),
        was_left_out=bool(was_left_out),
        marks=tuple(others[:_NUM_MARKS]),
    )


class StepContext(tf.train.SessionRunContext):
    """The context that hooks get in `before_run` and `after_run`.

    Attributes:
      report: in `after_run`, the `StepReport` of the step.
    """

    report: StepReport


class NonFiniteLoss(FloatingPointError):  # noqa: N818 - reads better where it is raised
    """The loss of a step is NaN or infinite; the variables are lost.

    Attributes:
      report: the report of the step.
    """

    def __init__(self, report: StepReport) -> None:
        self.report = report
        super().__init__(describe_loss(report))


def checked_report(values: Any) -> StepReport:
    """Parses an array that `report_op` returned, and checks that the loss is finite.

    Args:
      values: an array that `report_op` returned, float64 [13 + clones].

    Raises:
      NonFiniteLoss: if the loss or another checked value is not finite, and the variables were
        updated.
    """
    report = read_report(values)
    is_bad = not math.isfinite(report.loss) or report.first_bad >= 0
    if is_bad and not report.was_left_out:
        raise NonFiniteLoss(report)
    return report


def describe_loss(report: StepReport) -> str:
    """Returns one line that names step, clones and learning rate of a bad loss."""
    bad = [i for i, loss in enumerate(report.clone_losses) if not math.isfinite(loss)]
    where = ""
    if len(report.clone_losses) > 1:
        where = f", in clone {', '.join(map(str, bad))}" if bad else ", in no clone's own losses"
    rate = "" if math.isnan(report.learning_rate) else f", learning rate {report.learning_rate:g}"
    return f"the loss must be finite, got {report.loss} at step {report.step}{where}{rate}"

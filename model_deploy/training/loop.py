"""`train`: runs a deployed model to its last step, with checkpoints, summaries and evaluations."""

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import gpus
from model_deploy.checkpoints import (
    mark_end,
)
from model_deploy.checks import check_at_least
from model_deploy.cluster import Cluster
from model_deploy.deployment import DeployedModel
from model_deploy.hooks import session_hooks
from model_deploy.trackers import Tracker, check_names, tracking
from model_deploy.training.chief_start import chief_start
from model_deploy.training.ledger import Ledger
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.pace.pace import pace_of
from model_deploy.training.patience import patience_of
from model_deploy.training.plateaus import plateau_of
from model_deploy.training.recovery import run_in_sessions
from model_deploy.training.replicas.agreed_saves import agreed_saves_of
from model_deploy.training.replicas.early_end import early_end_of
from model_deploy.training.replicas.joining import Place, started
from model_deploy.training.replicas.replicas import Replicas, say
from model_deploy.training.replicas.streamed_metrics import StreamedMetrics, streamed_metrics_of
from model_deploy.training.run import TrainingRun, TrainResult
from model_deploy.training.session import SessionOpener, Start
from model_deploy.training.steps.numeric_checks import NumericChecks
from model_deploy.training.steps.report import clone_report_ops, report_op
from model_deploy.training.stopping import StopSignals
from model_deploy.training.verifying import verification_of


def train(
    model: DeployedModel,
    train_dir: str | os.PathLike[str],
    *,
    max_steps: int | None = None,
    images_per_step: int = 1,
    unit: str = "images",
    learning_rate: Any = None,
    wait_secs: Any = None,
    hooks: Sequence[Any] = (),
    init_fn: Callable[[Any], None] | None = None,
    evaluate: Callable[[str], Mapping[str, float]] | None = None,
    metric: str = "accuracy",
    master: str = "",
    is_chief: bool = True,
    session_config: Any = None,
    cluster: Cluster | None = None,
    start_timeout: float = 300.0,
    place: Place | None = None,
    trackers: Sequence[Tracker] = (),
    **settings: Any,
) -> TrainResult:
    """Trains `model` in the default graph, starting from its newest checkpoint.

    Checkpoints `model.ckpt-<step>`, TensorBoard events, `metrics.jsonl` and `training.png` go to
    `train_dir`.  Existing files are not deleted; of the checkpoints of this run the newest
    `keep_checkpoints` are kept, and in the folder `best` the one with the best metric.  SIGTERM
    and SIGINT end the run after the step, with a checkpoint; a second signal ends it at once.

    Args:
      model: what `deploy` returned, with an optimizer.
      train_dir: folder of the run; made if missing.
      max_steps: number of the last step, counted over all runs in the folder; None to train until
        the inputs end or a hook asks to stop.
      images_per_step: images per step over all clones, for the displayed rate.
      unit: name of the examples, in place of images.
      learning_rate: a float scalar tensor or number, to be displayed.
      wait_secs: seconds that a step has waited for data, a float scalar tensor such as
        `inputs.train_batches` has, displayed as a fraction of the time.  With asynchronous
        clones a list with one for each clone.
      hooks: `tf.train.SessionRunHook`s.  A hook that also has a method `due(step)` takes part only
        in steps for which it returns True; steps without hooks are faster.  In `after_run` the
        context's `report` is the `StepReport`.
      init_fn: called with the session after variables were initialized, but not when they were
        restored from a checkpoint of the run.
      evaluate: function of a checkpoint's path that returns metrics by name; called by the
        chief every `eval_every_n_steps` and at the last step.
      metric: the metric of the best checkpoint, `stop_at_metric` and `stop_patience`, unless the
        option `stop_metric` names another one.
      master: address of a TensorFlow server; '' for a session in this process.
      is_chief: whether this process initializes the variables and writes files.
      session_config: a `tf.ConfigProto`; soft placement if not given.
      cluster: the cluster in which this process is a worker, with its server at `master`.  Then
        worker 0 is the chief, lost connections are re-established (see docs/cluster.md), the run
        ends at exactly `max_steps`, and the parameter servers end with it.
      start_timeout: seconds to wait for other tasks of the cluster at the start.
      place: the result of `training.join_cluster`, which replaces the last five arguments.
      trackers: objects with the methods of `trackers.Tracker`, besides those that the option
        `tracker` names; the chief tells them what it writes to `metrics.jsonl`.
      **settings: fields of `LoopOptions`.

    Returns:
      A `TrainResult`.

    Raises:
      ValueError: if the model has no train op, a number is out of range, or the checkpoint is
        of another model.
      OSError: if `train_dir` cannot be written at the start.
      NotSavedError: an `OSError`, if the last checkpoint cannot be written.
      FloatingPointError: if the loss becomes NaN or infinite; with `verify_every_n_steps` a
        `verification.CorruptionError` if a step that is made twice gives two results, and
        `on_corruption` is `end`, or the run has gone back three times.
      MemoryError: if a step needs more memory than a device has; the message says what to try.
      TimeoutError: naming required tasks of the cluster that did not start in time.
      ConnectionError: with all-reduce, naming a worker that was lost.
      SystemExit: with 128 + the number of the signal that ended the run; with 75 if TensorFlow has
        refused a worker's part of a step by all-reduce, see docs/cluster.md.
    """
    options = LoopOptions(**settings)
    if place is None:
        place = Place(master, session_config, cluster, start_timeout)
        is_chief = is_chief if cluster is None else cluster.is_chief
    else:
        _check_alone(master=master, session_config=session_config, cluster=cluster)
        is_chief = place.is_chief and is_chief
    _check(model, max_steps, options)
    if is_chief:
        _check_evaluation(options, evaluate)
    place = started(place, model.config)
    if model.config is not None and not model.config.clone_on_cpu:
        gpus.use_tf32(model.config)
    folder = os.fspath(train_dir)
    replicas = _replicas(place, model, options)
    streamed = streamed_metrics_of(model, place.cluster)
    metric = options.stop_metric or metric
    evaluations = functools.partial(patience_of, folder, metric, options)
    plateau = plateau_of(options, evaluations, is_chief=is_chief)
    early_end = early_end_of(
        model, place.cluster, options, has_metrics=streamed is not None, plateau=plateau
    )
    checks = NumericChecks(model.train_op) if options.check_numerics else None
    report = _report(model, learning_rate, wait_secs, checks, streamed)
    _warn_of_hooks(model, hooks)
    verification = verification_of(model, report, options, max_steps)
    agreed_saves = agreed_saves_of(model, options, max_steps)
    start = _start(model, replicas)
    if is_chief:
        shares = replicas is not None and replicas.shares_steps
        num_replicas = model.config.num_replicas if model.config and shares else 1
        start = chief_start(start, folder, options, init_fn, place, num_replicas=num_replicas)
    run = TrainingRun(
        options=options,
        train_dir=folder,
        report=report,
        checks=checks,
        summary_op=model.summary_op,
        writer=start.writer,
        hooks=hooks,
        max_steps=max_steps,
        images_per_step=images_per_step,
        unit=unit,
        evaluate=evaluate if options.eval_every_n_steps else None,
        metric=metric,
        shares_steps=bool(model.clone_updates) or (replicas is not None and replicas.shares_steps),
        copies_difference=model.copies_difference if options.copies_check_every_n_steps else None,
        replicas=replicas,
        early_end=early_end,
        streamed=streamed,
        pace=pace_of(model, place.cluster, folder, is_chief=is_chief, max_steps=max_steps),
        ledger=place.ledger or Ledger(),
        verification=verification,
        agreed_saves=agreed_saves,
        rest=model.rest,
        plateau=plateau,
    )
    run.ledger.keep_in(folder if is_chief else None)
    with (
        _tracking(run, trackers) as run,
        gpus.device_errors_explained(_clone_batch(model, images_per_step), os.getpid()),
    ):
        result = _make_steps(run, SessionOpener(place.master, place.session_config, start))
    if start.writer is not None:
        with start.writer.storage.trying("the note that the run has ended"):
            mark_end(folder, result.global_step)
    return result


@contextlib.contextmanager
def _tracking(run: TrainingRun, trackers: Sequence[Tracker]) -> Iterator[TrainingRun]:
    """Opens the trackers of a run, on the chief; yields the run with them."""
    options = run.options
    named = [] if options.tracker is None else check_names(options.tracker)
    if run.writer is None or not (trackers or named):
        yield run
        return
    settings = dataclasses.asdict(options) | {"max_steps": run.max_steps}
    is_new = options.resume == "never"
    with tracking(run.train_dir, [*named, *trackers], settings, is_new=is_new) as opened:
        yield dataclasses.replace(run, tracking=opened)


def _clone_batch(model: DeployedModel, images_per_step: int) -> int | None:
    """Returns the examples per batch of a clone; None if `images_per_step` was not given."""
    if model.config is None or images_per_step == 1:
        return None
    updates = max(1, len(model.clone_updates))
    return images_per_step * updates // model.config.batches_per_step


def _make_steps(run: TrainingRun, opener: SessionOpener) -> TrainResult:
    """Makes all steps of a run; a signal that ends the run also ends the program."""
    for hook in (*opener.hooks, *run.hooks):
        hook.begin()
    with StopSignals() as signals:
        result = run_in_sessions(run, opener, signals)
    if run.writer is not None:
        say(str(run.ledger.close(has_ended=signals.received is None)))
    if signals.received is not None:
        print(f"stopped by {signals.received.name} at step {result.global_step}", file=sys.stderr)
        raise SystemExit(128 + signals.received)
    return result


def _replicas(place: Place, model: DeployedModel, options: LoopOptions) -> Replicas | None:
    """Returns the other processes of the cluster; None without a cluster."""
    if place.cluster is None:
        return None
    return Replicas(
        place.cluster,
        model,
        start_timeout=place.start_timeout,
        stall_timeout=options.stall_timeout,
        watch=place.watch,
    )


def _report(
    model: DeployedModel,
    learning_rate: Any,
    wait_secs: Any,
    checks: NumericChecks | None,
    streamed: StreamedMetrics | None,
) -> Any:
    """Returns the op that makes and reports a step; for asynchronous clones one op per clone."""
    count = None if streamed is None else streamed.add
    if model.clone_updates:
        return clone_report_ops(model, learning_rate, wait_secs, count)
    first_bad = None if checks is None else checks.first_bad
    report = report_op(model, learning_rate, wait_secs, first_bad, count)
    if model.rest is None:
        return report
    with tf.device(report.device):
        return tf.concat([report, [model.rest.asked]], axis=0)


def _start(model: DeployedModel, replicas: Replicas | None) -> Start:
    """Returns how a process other than the chief gets its variables."""
    start = Start(is_chief=False, owns_variables=model.owns_variables, hooks=session_hooks())
    if replicas is None:
        return start
    return start._replace(
        shared=replicas.shared,
        new_wait=replicas.waiting_for_chief,
        watch=replicas.watching_start,
    )


def _check(model: DeployedModel, max_steps: int | None, options: LoopOptions) -> None:
    if model.train_op is None:
        raise ValueError("model must have a train op, got one deployed without an optimizer")
    check_at_least("max_steps", max_steps, 1)
    if model.config is not None and model.config.rotate_steps:
        for name, unset in (("check_numerics", False), ("verify_every_n_steps", None)):
            if (value := getattr(options, name)) != unset:
                raise ValueError(f"{name} must be {unset} with rotate_steps=True, got {value!r}")
    if options.profile_steps is not None and model.clone_updates:
        raise ValueError(
            "profile_steps must be None with asynchronous clones, whose steps are not one after "
            f"the other, got {options.profile_steps!r}"
        )


def _warn_of_hooks(model: DeployedModel, hooks: Sequence[Any]) -> None:
    """Says which hooks, if any, let no step leave a rest to the next one."""
    always = [type(hook).__name__ for hook in hooks if not hasattr(hook, "due")]
    if model.rest is not None and always:
        logging.warning(
            "rotate_steps gains nothing: %s takes part in every step, without a method due(step)",
            ", ".join(always),
        )


def _check_evaluation(
    options: LoopOptions, evaluate: Callable[[str], Mapping[str, float]] | None
) -> None:
    """Checks, in the chief, that `evaluate` is given if the options need it."""
    if options.eval_every_n_steps is not None and evaluate is None:
        raise ValueError(
            "eval_every_n_steps must go with a function `evaluate`, "
            f"got {options.eval_every_n_steps} without"
        )


def _check_alone(**others: Any) -> None:
    """Checks that arguments which `place` replaces are not given as well."""
    for name, value in others.items():
        if value:
            raise ValueError(f"{name} must not be given together with place, got {value!r}")

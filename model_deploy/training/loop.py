"""`train`: runs a deployed model to its last step, with checkpoints and summaries."""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from model_deploy.checkpoints import (
    CheckpointWriter,
    check_fits,
    checkpoint_to_resume,
    clear_end,
    mark_end,
    report_unfinished,
)
from model_deploy.checks import check_at_least
from model_deploy.cluster import Cluster
from model_deploy.deployment import DeployedModel
from model_deploy.hooks import session_hooks
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.numerics import NumericChecks
from model_deploy.training.recovery import run_in_sessions
from model_deploy.training.replicas import Replicas
from model_deploy.training.run import Run, TrainResult
from model_deploy.training.session import SessionOpener, Start
from model_deploy.training.step import clone_report_ops, report_op
from model_deploy.training.stopping import StopSignals


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
    **settings: Any,
) -> TrainResult:
    """Trains `model` in the default graph, from its newest checkpoint on.

    Checkpoints `model.ckpt-<step>`, TensorBoard events, `metrics.jsonl` and
    `training.png` go to `train_dir`.  Nothing that was there before is deleted; of the
    checkpoints of this run, the newest `keep_checkpoints` are kept, and in `best` the
    one with the highest metric.  SIGTERM and SIGINT end the run after the step, with a
    checkpoint; a second signal ends it at once.

    Args:
      model: what `deploy` returned, with an optimizer.
      train_dir: folder; made if it does not exist.
      max_steps: number of the last step, counted from the first run on; None to go
        on until the inputs end or a hook asks to stop.
      images_per_step: images in a step over all clones, for the rate that is shown.
      unit: what is counted in place of images, as it is shown.
      learning_rate: a float scalar tensor or number, to be shown.
      wait_secs: how many seconds a step has waited for its data, a float scalar tensor
        such as that of `inputs.train_batches`; its share of the time is shown.  With
        asynchronous clones a list, one for each clone.
      hooks: `tf.train.SessionRunHook`s.  One that has a method `due(step)`, too, is asked
        before each step and called only where it returns True; steps in which no hook
        takes part are faster.  In `after_run` the context's `report` is the
        `StepReport`.
      init_fn: called with the session once the variables were initialized; not when
        a run goes on from a checkpoint.
      evaluate: function of a checkpoint's path that returns metrics by name; called
        every `eval_every_n_steps` and at the last step.
      metric: the metric of the best checkpoint and of `stop_at_metric`.
      master: address of a TensorFlow server; '' for a session in this process.
      is_chief: whether this process initializes the variables and writes files.
      session_config: a `tf.ConfigProto`; soft placement if not given.
      cluster: the cluster whose worker this process is, with its server at `master`.  Then
        worker 0 is the chief; lost connections are found again, see docs/cluster.md; the
        run ends at exactly `max_steps`, and with it end the parameter servers.
      start_timeout: seconds to wait for other tasks of the cluster at the start.
      **settings: fields of `LoopOptions`.

    Returns:
      A `TrainResult`.

    Raises:
      ValueError: if the model has no train op, a number is out of its range, or the
        checkpoint is one of another model.
      OSError: if `train_dir` or the last checkpoint cannot be written.
      FloatingPointError: if the loss becomes NaN or infinite.
      TimeoutError: naming tasks of the cluster that were needed and did not come.
      ConnectionError: naming a worker that was lost, with all-reduce.
      SystemExit: with 128 + the number of the signal that has ended the run.
    """
    options = LoopOptions(**settings)
    _check(model, max_steps, options, evaluate)
    folder = os.fspath(train_dir)
    checks = NumericChecks(model.train_op) if options.check_numerics else None
    replicas = None
    if cluster is not None:
        is_chief = cluster.is_chief
        replicas = Replicas(
            cluster, model, start_timeout=start_timeout, stall_timeout=options.stall_timeout
        )
    others_update = replicas is not None and replicas.shares_steps
    if model.clone_updates:
        report = clone_report_ops(model, learning_rate, wait_secs)
    else:
        first_bad = None if checks is None else checks.first_bad
        report = report_op(model, learning_rate, wait_secs, first_bad)
    start = Start(is_chief=False)
    if is_chief:
        start = _chief_start(folder, options, init_fn, cluster.own.device if cluster else "")
    start = start._replace(owns_variables=model.owns_variables, hooks=session_hooks())
    run = Run(
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
        shares_steps=bool(model.clone_updates) or others_update,
        copies_difference=model.copies_difference if options.copies_check_every_n_steps else None,
        replicas=replicas,
    )
    if replicas is not None:
        start = start._replace(shared=replicas.shared, new_wait=replicas.waiting_for_chief)
    for hook in (*start.hooks, *hooks):
        hook.begin()
    with StopSignals() as signals:
        result = run_in_sessions(run, SessionOpener(master, session_config, start), signals)
    if signals.received is not None:
        print(f"stopped by {signals.received.name} at step {result.global_step}", file=sys.stderr)
        raise SystemExit(128 + signals.received)
    if is_chief:
        mark_end(folder, result.global_step)
    return result


def _chief_start(
    folder: str, options: LoopOptions, init_fn: Callable[[Any], None] | None, device: str
) -> Start:
    """The chief's files are checked before a session is opened."""
    check_writable(folder)
    report_unfinished(folder)
    checkpoint = checkpoint_to_resume(folder, options.resume)
    if checkpoint is not None:
        check_fits(checkpoint)
    clear_end(folder)
    device = device and f"{device}/device:CPU:0"
    writer = CheckpointWriter(folder, options.keep_checkpoints, device)
    return Start(True, writer, checkpoint, init_fn)


def check_writable(train_dir: str | os.PathLike[str]) -> None:
    """Makes the folder if needed and tries a file in it.

    Raises:
      OSError: naming the folder, if it cannot be made or written.
    """
    try:
        os.makedirs(train_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=train_dir):
            pass
    except OSError as error:
        raise OSError(
            f"train_dir must be a folder that can be written, got {train_dir}: {error}"
        ) from error


def _check(
    model: DeployedModel,
    max_steps: int | None,
    options: LoopOptions,
    evaluate: Callable[[str], Mapping[str, float]] | None,
) -> None:
    if model.train_op is None:
        raise ValueError("model must have a train op, got one deployed without an optimizer")
    check_at_least("max_steps", max_steps, 1)
    if options.eval_every_n_steps is not None and evaluate is None:
        raise ValueError("evaluate must be given with eval_every_n_steps, got None")

"""`Evaluator`: evaluates checkpoints, every example counted once.

with Evaluator(predict, batches) as evaluator:
    for checkpoint in checkpoints:
        print(evaluator.evaluate(checkpoint).accuracy)
"""

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.checkpoints import Restorer, find_checkpoint
from model_deploy.checks import check_at_least
from model_deploy.config import DeploymentConfig
from model_deploy.evaluation.graph import Predict, build_evaluation
from model_deploy.evaluation.results import Evaluation, Predictions
from model_deploy.optimization import averages_to_restore

# Sessions of a server share variables of the same container; this one keeps evaluation apart.
_CONTAINER = "evaluation"
_LOSS = "weighted_loss"


class Evaluator:
    """Evaluates one checkpoint after another in its own graph and session.

    The graph is built once, when the object is made.  No variable of other graphs or sessions is
    touched, even on a shared `master`: a training run may evaluate itself between two steps.  Use
    the object in a `with` block, which opens the session.

    Args:
      predict: called once per clone; builds the model on a part of a batch; returns logits, float
        [n, classes], and labels, int [n].  Losses that it adds make the total loss, as in training.
      batches: builds the inputs; returns tensors of shape [n, ...], which are run from the start
        to the end of the data for each evaluation, see `inputs.eval_batches`.  "index", int [n],
        in a mapping numbers the examples.
      config: the clones that share each batch, all in this process or on the `master`; by
        default one clone, on a GPU if there is one.
      use_averages: whether to evaluate moving averages, see `moving_average_update`.
      max_num_batches: number of batches after which to stop; None for all.
      master: address of a TensorFlow server; '' for a session in this process.
      session_config: a `tf.ConfigProto`; by default that of `gpus.session_config` with soft
        placement.

    Raises:
      ValueError: if `max_num_batches` is less than 1, or the number of classes is not known.
    """

    def __init__(
        self,
        predict: Predict,
        batches: Callable[[], Any],
        *,
        config: DeploymentConfig | None = None,
        use_averages: bool = False,
        max_num_batches: int | None = None,
        master: str = "",
        session_config: Any = None,
    ) -> None:
        check_at_least("max_num_batches", max_num_batches, 1)
        self._max_num_batches = max_num_batches
        self._master = master
        config = config or DeploymentConfig()
        self._session_config = session_config or gpus.session_config(
            config,
            on_cpu=config.clone_on_cpu,
            base=tf.ConfigProto(allow_soft_placement=True),
        )
        if not config.clone_on_cpu:
            gpus.use_tf32(config)
        self._session: Any = None
        self._graph = tf.Graph()
        with self._graph.as_default(), self._graph.container(_CONTAINER):
            # Deterministic ops need a seed, here for initial values that are never computed.
            tf.set_random_seed(0)
            # Not copied: each clone takes its part of a batch in its call of `predict`.
            config = dataclasses.replace(config, copy_clones=False)
            self._built = build_evaluation(predict, batches, config)
            self._restorer = Restorer(
                averages_to_restore()
                if use_averages
                else {variable.op.name: variable for variable in tf.global_variables()}
            )
            self._initializer = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        self._graph.finalize()
        self._fetches = dict(self._built.columns)
        if self._built.weighted_loss is not None:
            self._fetches[_LOSS] = self._built.weighted_loss

    def __enter__(self) -> "Evaluator":
        self._session = tf.Session(self._master, self._graph, self._session_config)
        # A callable, as `Session.run` would take most of the time for small batches.
        self._run_batch = self._session.make_callable(list(self._fetches.values()))
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._session = None

    def evaluate(self, checkpoint: str | os.PathLike[str]) -> Evaluation:
        """Evaluates a checkpoint.

        Args:
          checkpoint: path of a checkpoint, or of a folder, for its newest one.

        Raises:
          ValueError: if there is no such checkpoint, it is of another model, the inputs are
            empty, or a label is not a class.
          FloatingPointError: if a prediction is not finite.
          MemoryError: if a batch does not fit into the memory of a device.
          RuntimeError: outside of a `with` block.
        """
        if self._session is None:
            raise RuntimeError("evaluate must be called within `with Evaluator(...) as evaluator:`")
        start = time.perf_counter()
        path = find_checkpoint(os.fspath(checkpoint))
        step = self._restorer.restore(self._session, path)
        self._session.run(self._initializer)
        with gpus.device_errors_explained(own_pid=os.getpid()):
            columns, losses = self._run_batches()
        predictions = Predictions(**columns)
        return Evaluation(
            checkpoint=path,
            global_step=step,
            num_classes=self._built.num_classes,
            predictions=predictions,
            total_loss=float(np.sum(losses) / len(predictions.label)) if len(losses) else None,
            seconds=time.perf_counter() - start,
        )

    def _run_batches(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Runs all batches; returns the columns of predictions and the batches' weighted losses."""
        runs: list[list[np.ndarray]] = []
        while self._max_num_batches is None or len(runs) < self._max_num_batches:
            try:
                runs.append(self._run_batch())
            except tf.errors.OutOfRangeError:
                break
        if not any(len(run[0]) for run in runs):
            raise ValueError("batches must give at least one example, got none")
        values = dict(zip(self._fetches, zip(*runs, strict=True), strict=True))
        losses = np.array(values.pop(_LOSS, ()))
        columns = {name: np.concatenate(arrays) for name, arrays in values.items()}
        columns.setdefault("index", np.arange(len(columns["label"])))
        return columns, losses


def evaluate(
    predict: Predict,
    batches: Callable[[], Any],
    checkpoint: str | os.PathLike[str],
    **options: Any,
) -> Evaluation:
    """Evaluates one checkpoint; to evaluate several, use `Evaluator`, which builds its graph once.

    Args:
      predict: as for `Evaluator`: returns logits, float [n, classes], and labels, int [n].
      batches: as for `Evaluator`: returns tensors of shape [n, ...].
      checkpoint: path of a checkpoint, or of a folder, for its newest one.
      **options: more arguments of `Evaluator`.

    Raises:
      ValueError: as `Evaluator` and `Evaluator.evaluate`.
      FloatingPointError: if a prediction is not finite.
    """
    with Evaluator(predict, batches, **options) as evaluator:
        return evaluator.evaluate(checkpoint)

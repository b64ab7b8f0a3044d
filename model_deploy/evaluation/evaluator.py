"""`Evaluator`: evaluates checkpoints, every example counted once.

with Evaluator(predict, batches) as evaluator:
    for checkpoint in checkpoints:
        print(evaluator.evaluate(checkpoint).accuracy)
"""

import dataclasses
import functools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from model_deploy.config import DeploymentConfig
from model_deploy.evaluation.graph import Predict, build_evaluation
from model_deploy.evaluation.passes import Passes, check_has_examples
from model_deploy.evaluation.results import Evaluation, Predictions

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
        self._passes = Passes(
            functools.partial(self._build, predict, batches),
            config=config,
            use_averages=use_averages,
            max_num_batches=max_num_batches,
            master=master,
            session_config=session_config,
        )

    def __enter__(self) -> "Evaluator":
        self._passes.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._passes.close()

    def _build(
        self, predict: Predict, batches: Callable[[], Any], config: DeploymentConfig
    ) -> dict[str, Any]:
        built = build_evaluation(predict, batches, config)
        self._num_classes = built.num_classes
        self._metrics = built.metrics
        fetches = dict(built.columns)
        if built.weighted_loss is not None:
            fetches[_LOSS] = built.weighted_loss
        return fetches | built.metrics.fetches

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
        start = time.perf_counter()
        found = self._passes.run(checkpoint)
        check_has_examples(sum(map(len, found.runs["label"])))
        columns = {
            field.name: np.concatenate(found.runs[field.name])
            for field in dataclasses.fields(Predictions)
            if field.name in found.runs
        }
        columns.setdefault("index", np.arange(len(columns["label"])))
        losses = found.runs.get(_LOSS)
        return Evaluation(
            checkpoint=found.checkpoint,
            global_step=found.global_step,
            num_classes=self._num_classes,
            predictions=Predictions(**columns),
            total_loss=None if losses is None else float(np.sum(losses) / len(columns["label"])),
            metrics=self._metrics.values(found.runs),
            seconds=time.perf_counter() - start,
        )


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

"""`evaluate`: the accuracy of a checkpoint, every example counted once."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.training.averages import averages_to_restore


class Evaluation(NamedTuple):
    """What an evaluation found.

    Attributes:
      accuracy: share of examples whose most likely class is their label, in [0, 1].
      examples: number of examples seen.
      global_step: step of the checkpoint.
    """

    accuracy: float
    examples: int
    global_step: int


def evaluate(
    predict: Callable[[], tuple[Any, Any]],
    train_dir: str | os.PathLike[str],
    *,
    use_averages: bool = False,
    session_config: Any = None,
) -> Evaluation:
    """Evaluates the newest checkpoint in `train_dir`, in a graph of its own.

    Args:
      predict: builds inputs and network; returns logits, float [batch, classes], and
        labels, int [batch].  It is evaluated until its inputs end.
      train_dir: folder with checkpoints.
      use_averages: evaluate the moving averages of the variables, see
        `moving_average_update`.
      session_config: a `tf.ConfigProto`; soft placement if not given.

    Raises:
      ValueError: if there is no checkpoint, or the inputs are empty.
    """
    checkpoint = tf.train.latest_checkpoint(os.fspath(train_dir))
    if checkpoint is None:
        raise ValueError(f"train_dir must hold a checkpoint, got none in {train_dir}")
    config = session_config or tf.ConfigProto(allow_soft_placement=True)
    with tf.Graph().as_default():
        logits, labels = predict()
        global_step = tf.train.get_or_create_global_step()
        hits = tf.equal(tf.argmax(logits, axis=1), tf.cast(labels, tf.int64))
        counts = [tf.reduce_sum(tf.cast(hits, tf.int64)), tf.size(hits)]
        saver = tf.train.Saver(averages_to_restore() if use_averages else None)
        with tf.Session(config=config) as session:
            saver.restore(session, checkpoint)
            session.run([tf.local_variables_initializer(), tf.tables_initializer()])
            right, examples = _count(session, counts)
            step = int(session.run(global_step))
    if not examples:
        raise ValueError("predict must give at least one example, got none")
    return Evaluation(right / examples, examples, step)


def _count(session: Any, counts: list[Any]) -> tuple[int, int]:
    step_fn = session.make_callable(counts)
    right = examples = 0
    while True:
        try:
            hits, size = step_fn()
        except tf.errors.OutOfRangeError:
            return right, examples
        right, examples = right + int(hits), examples + int(size)

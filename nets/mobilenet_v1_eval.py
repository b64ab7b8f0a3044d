"""Evaluates MobileNet v1 on ImageNet, as TF-Slim's script: `python -m nets.mobilenet_v1_eval`.

The data is ImageNet's in TFRecords, as TF-Slim wrote them. The flags are in `FLAGS`, which is this
script's own: a program may set them and call the functions.
"""

import math
from typing import Any

import tensorflow.compat.v1 as tf
from absl import flags

from model_deploy import slim
from nets import mobilenet_v1
from nets.mobilenet_v1_train import define_shared_flags, read_imagenet, refuse_quantize, run_with

FLAGS = flags.FlagValues()


def _define_flags() -> None:
    define_shared_flags(FLAGS, batch_size=100)
    own: dict[str, Any] = {"flag_values": FLAGS}
    flags.DEFINE_integer("num_examples", 50_000, "images to evaluate", lower_bound=1, **own)
    flags.DEFINE_string("eval_dir", "", "folder for summaries", **own)
    FLAGS.mark_as_parsed()


_define_flags()


def imagenet_input(is_training: bool) -> tuple[Any, Any]:
    """Returns batches of ImageNet.

    Args:
      is_training: whether to take the train split, else the validation split.

    Returns:
      Images `[batch_size, image_size, image_size, 3]` float32, and labels `[batch_size]` int64.
    """
    return read_imagenet(FLAGS, is_training)


def metrics(logits: Any, labels: Any) -> list[Any]:
    """Adds accuracy and recall at 5, with summaries of both.

    Args:
      logits: `[batch, num_classes]` float32.
      labels: `[batch]` int64.

    Returns:
      The ops that count a batch.
    """
    labels = tf.reshape(labels, [-1])
    values, updates = slim.metrics.aggregate_metric_map(
        {
            "Accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1)),
            "Recall_5": tf.metrics.recall_at_k(labels, logits, 5),
        }
    )
    for name, value in values.items():
        slim.summaries.add_scalar_summary(value, name, prefix="eval", print_summary=True)
    return list(updates.values())


def build_model() -> tuple[Any, list[Any]]:
    """Builds network and metrics.

    Returns:
      The graph, and the ops that count a batch.

    Raises:
      ValueError: with `--quantize`.
    """
    refuse_quantize(FLAGS)
    graph = tf.Graph()
    with graph.as_default():
        images, labels = imagenet_input(is_training=False)
        with slim.arg_scope(mobilenet_v1.mobilenet_v1_arg_scope(is_training=False)):
            logits, _ = mobilenet_v1.mobilenet_v1(
                images,
                is_training=False,
                depth_multiplier=FLAGS.depth_multiplier,
                num_classes=FLAGS.num_classes,
            )
        return graph, metrics(logits, labels)


def eval_model() -> None:
    """Evaluates a checkpoint, or the newest one in a folder, as the flags say, once."""
    checkpoint = tf.train.latest_checkpoint(FLAGS.checkpoint_dir) or FLAGS.checkpoint_dir
    graph, eval_ops = build_model()
    with graph.as_default():
        slim.evaluation.evaluate_once(
            FLAGS.master,
            checkpoint,
            logdir=FLAGS.eval_dir,
            num_evals=math.ceil(FLAGS.num_examples / FLAGS.batch_size),
            eval_op=eval_ops,
        )


def main(unused_arg: Any) -> None:
    """Evaluates a checkpoint, or the newest one in a folder, as the flags say, once."""
    eval_model()


if __name__ == "__main__":
    run_with(main, FLAGS)

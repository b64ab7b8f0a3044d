"""Trains MobileNet v1 on ImageNet, as TF-Slim's script: `python -m nets.mobilenet_v1_train`.

The data is ImageNet's in TFRecords, as TF-Slim wrote them. The flags are in `FLAGS`, which is this
script's own: a program may set them and call the functions.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from absl import app, flags

from model_deploy import slim
from nets import mobilenet_v1

FLAGS = flags.FlagValues()


def define_shared_flags(flag_values: flags.FlagValues, batch_size: int) -> None:
    """Defines what training and evaluation have in common."""
    own: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("master", "", "address of the TensorFlow server", **own)
    flags.DEFINE_integer("batch_size", batch_size, "images in a batch", lower_bound=1, **own)
    flags.DEFINE_integer("num_classes", 1001, "number of classes", lower_bound=1, **own)
    flags.DEFINE_integer("image_size", 224, "height and width of images", lower_bound=1, **own)
    flags.DEFINE_float("depth_multiplier", 1.0, "scales the channels of all layers", **own)
    flags.DEFINE_bool("quantize", False, "was for TensorFlow 1's quantization", **own)
    flags.DEFINE_string("checkpoint_dir", "", "folder of checkpoints", **own)
    flags.DEFINE_string("dataset_dir", "", "folder of ImageNet's TFRecords", **own)


def _define_flags() -> None:
    define_shared_flags(FLAGS, batch_size=64)
    own: dict[str, Any] = {"flag_values": FLAGS}
    flags.DEFINE_integer("task", 0, "number of this worker; 0 is the chief", **own)
    flags.DEFINE_integer("ps_tasks", 0, "number of parameter servers", lower_bound=0, **own)
    flags.DEFINE_integer("number_of_steps", None, "steps to train; none: forever", **own)
    flags.DEFINE_string("fine_tune_checkpoint", "", "checkpoint to start from", **own)
    flags.DEFINE_integer("log_every_n_steps", 100, "steps between lines of the log", **own)
    flags.DEFINE_integer("save_summaries_secs", 100, "seconds between summaries", **own)
    flags.DEFINE_integer("save_interval_secs", 100, "seconds between checkpoints", **own)
    FLAGS.mark_as_parsed()


_define_flags()

# Images of the train split, as TF-Slim counted them.
_NUM_IMAGES = 1_271_167
_EPOCHS_PER_DECAY = 2.5
_LEARNING_RATE_DECAY_FACTOR = 0.94


def get_learning_rate() -> float:
    """Returns the learning rate of the first step: less from a checkpoint."""
    return 1e-4 if FLAGS.fine_tune_checkpoint else 0.045


def get_quant_delay() -> int:
    """Returns the step at which quantization may begin: at once from a checkpoint."""
    return 0 if FLAGS.fine_tune_checkpoint else 250_000


def read_imagenet(settings: flags.FlagValues, is_training: bool) -> tuple[Any, Any]:
    """Returns batches of the train or the validation split, through queues.

    Args:
      settings: flags of `define_shared_flags`.
      is_training: whether to take the train split, in random order and with changed images.

    Returns:
      Images `[batch_size, image_size, image_size, 3]` float32, and labels `[batch_size]` int64.
    """
    # Not before images are read: training may get them from elsewhere.
    from model_deploy.tf1 import dataset_factory, preprocessing_factory  # noqa: PLC0415

    split = "train" if is_training else "validation"
    dataset = dataset_factory.get_dataset("imagenet", split, settings.dataset_dir)
    provider = slim.dataset_data_provider.DatasetDataProvider(
        dataset,
        shuffle=is_training,
        common_queue_capacity=2 * settings.batch_size,
        common_queue_min=settings.batch_size,
    )
    image, label = provider.get(["image", "label"])
    prepare = preprocessing_factory.get_preprocessing("mobilenet_v1", is_training=is_training)
    image = prepare(image, settings.image_size, settings.image_size)
    return tf.train.batch(
        [image, label],
        batch_size=settings.batch_size,
        num_threads=4,
        capacity=5 * settings.batch_size,
    )


def refuse_quantize(settings: flags.FlagValues) -> None:
    """Raises ValueError where quantization is asked for."""
    if settings.quantize:
        raise ValueError("quantize must be False: TensorFlow 2 has no contrib.quantize, got True")


def imagenet_input(is_training: bool) -> tuple[Any, Any]:
    """Returns batches of ImageNet.

    Args:
      is_training: whether to take the train split, else the validation split.

    Returns:
      Images `[batch_size, image_size, image_size, 3]` float32, and one-hot labels
      `[batch_size, num_classes]` float32.
    """
    images, labels = read_imagenet(FLAGS, is_training)
    return images, slim.one_hot_encoding(labels, FLAGS.num_classes)


def build_model() -> tuple[Any, Any]:
    """Builds network, loss and train op.

    Returns:
      The graph, and the train op, which returns the loss.

    Raises:
      ValueError: with `--quantize`.
    """
    refuse_quantize(FLAGS)
    graph = tf.Graph()
    with graph.as_default(), tf.device(tf.train.replica_device_setter(FLAGS.ps_tasks)):
        images, labels = imagenet_input(is_training=True)
        with slim.arg_scope(mobilenet_v1.mobilenet_v1_arg_scope(is_training=True)):
            logits, _ = mobilenet_v1.mobilenet_v1(
                images,
                is_training=True,
                depth_multiplier=FLAGS.depth_multiplier,
                num_classes=FLAGS.num_classes,
            )
        tf.losses.softmax_cross_entropy(labels, logits)
        total_loss = tf.losses.get_total_loss(name="total_loss")
        learning_rate = tf.train.exponential_decay(
            get_learning_rate(),
            tf.train.get_or_create_global_step(),
            int(_NUM_IMAGES / FLAGS.batch_size * _EPOCHS_PER_DECAY),
            _LEARNING_RATE_DECAY_FACTOR,
            staircase=True,
        )
        optimizer = tf.train.GradientDescentOptimizer(learning_rate)
        train_op = slim.learning.create_train_op(total_loss, optimizer=optimizer)
        slim.summaries.add_scalar_summary(total_loss, "total_loss", "losses")
        slim.summaries.add_scalar_summary(learning_rate, "learning_rate", "training")
    return graph, train_op


def get_checkpoint_init_fn() -> Callable[[Any], None] | None:
    """Returns what restores `--fine_tune_checkpoint` in a session, at step 0; None without one.

    Variables that the checkpoint lacks keep their first values.
    """
    if not FLAGS.fine_tune_checkpoint:
        return None
    restore = slim.assign_from_checkpoint_fn(
        FLAGS.fine_tune_checkpoint, slim.get_variables_to_restore(), ignore_missing_vars=True
    )
    # The learning rate decays from the first step of this run.
    to_start = tf.assign(tf.train.get_or_create_global_step(), 0)

    def init_fn(sess: Any) -> None:
        restore(sess)
        sess.run(to_start)

    return init_fn


def train_model() -> None:
    """Trains MobileNet v1 as the flags say."""
    graph, train_op = build_model()
    with graph.as_default():
        slim.learning.train(
            train_op,
            FLAGS.checkpoint_dir,
            is_chief=FLAGS.task == 0,
            master=FLAGS.master,
            log_every_n_steps=FLAGS.log_every_n_steps,
            graph=graph,
            number_of_steps=FLAGS.number_of_steps,
            save_summaries_secs=FLAGS.save_summaries_secs,
            save_interval_secs=FLAGS.save_interval_secs,
            init_fn=get_checkpoint_init_fn(),
            global_step=tf.train.get_global_step(),
        )


def main(unused_arg: Any) -> None:
    """Trains MobileNet v1 as the flags say."""
    train_model()


def run_with(main_fn: Callable[[Any], None], flag_values: flags.FlagValues) -> None:
    """Runs a script whose flags are its own, beside those that every program has."""
    app.run(main_fn, flags_parser=lambda argv: flags.FLAGS(flag_values(argv, known_only=True)))


if __name__ == "__main__":
    run_with(main, FLAGS)

"""Tiny `model_fn`s of Estimator, each with a `train_op` of another style, and runs of them."""

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import estimator
from tests import devices

_RANDOM = np.random.RandomState(0)
INPUTS = _RANDOM.randn(48, 3).astype(np.float32)
TARGETS = (INPUTS @ [1.0, 2.0, 3.0] + 0.5).astype(np.float32)


def input_fn(batch_size, skip=0, repeat=None, is_size_known=False):
    """An `input_fn` of a dataset whose batches begin after some examples."""

    def read():
        examples = tf.data.Dataset.from_tensor_slices(({"x": INPUTS}, TARGETS))
        return examples.repeat(repeat).skip(skip).batch(batch_size, is_size_known)

    return read


def _minimize(optimizer, loss):
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def _clipped(optimizer, loss):
    pairs = optimizer.compute_gradients(loss)
    gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.3)
    pairs = zip(gradients, [variable for _, variable in pairs], strict=True)
    return optimizer.apply_gradients(pairs, global_step=tf.train.get_global_step())


def _scaled(optimizer, loss):
    """As by `tf.train.experimental.enable_mixed_precision_graph_rewrite`; the scale is doubled."""
    scale = tf.mixed_precision.DynamicLossScale(increment_period=2)
    return _clipped(tf.mixed_precision.MixedPrecisionLossScaleOptimizer(optimizer, scale), loss)


def _of_tf_gradients(optimizer, loss):
    variables, step = tf.trainable_variables(), tf.train.get_global_step()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.3)
    train_op = optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return tf.group(train_op, [step.assign(step + 1)])


def _counted_by_hand(optimizer, loss):
    with tf.control_dependencies([optimizer.minimize(loss)]):
        return tf.assign_add(tf.train.get_global_step(), 1)


def _averaged(optimizer, loss):
    averages = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([_minimize(optimizer, loss)]):
        return averages.apply(tf.trainable_variables())


def _by_two(optimizer, loss):
    bias = [each for each in tf.trainable_variables() if "bias" in each.op.name]
    others = [each for each in tf.trainable_variables() if "bias" not in each.op.name]
    other = tf.train.AdagradOptimizer(0.1)
    step = tf.train.get_global_step()
    return tf.group(
        optimizer.minimize(loss, var_list=others),
        other.minimize(loss, var_list=bias, global_step=step),
    )


def _of_two_losses(optimizer, loss):
    """As networks against each other are trained: one on the opposite of what the other one is."""
    last = [each for each in tf.trainable_variables() if "last" in each.op.name]
    others = [each for each in tf.trainable_variables() if "last" not in each.op.name]
    other = tf.train.GradientDescentOptimizer(0.01)
    gradients = tf.gradients(-2.0 * loss, others)
    clipped, _ = tf.clip_by_global_norm(gradients, 0.5)
    return tf.group(
        optimizer.minimize(loss, tf.train.get_global_step(), var_list=last),
        other.apply_gradients(zip(clipped, others, strict=True)),
    )


def _in_scopes(optimizer, loss):
    with tf.name_scope("training"), tf.variable_scope("optimizer"):
        return _minimize(optimizer, loss)


STYLES = {
    "minimize": _minimize,
    "clipped": _clipped,
    "scaled": _scaled,
    "of tf.gradients": _of_tf_gradients,
    "counted by hand": _counted_by_hand,
    "averaged": _averaged,
    "by two optimizers": _by_two,
    "of two losses": _of_two_losses,
    "in scopes": _in_scopes,
}


def _decay(weights):
    """A regularization that is as large as the loss."""
    return 0.5 * tf.nn.l2_loss(weights)


def model_fn_of(train_op_of):
    """A regression with a hidden layer, of numbers and of rows of an embedding."""

    def model_fn(features, labels, mode, params):
        is_training = mode == tf_mode("TRAIN")
        x = features["x"]
        rows = tf.get_variable("rows", [5, 2], initializer=tf.ones_initializer())
        numbers = tf.cast(x[:, 0] > 0, tf.int32)
        if params.get("dense"):
            rows = tf.matmul(tf.one_hot(numbers, 5), rows)
        else:
            rows = tf.nn.embedding_lookup(rows, numbers)
        start = tf.constant_initializer(0.1)
        bias = tf.get_variable("bias", [4], initializer=tf.zeros_initializer())
        regularized = params.get("regularized")
        weights = tf.get_variable(
            "weights",
            [5, 4],
            initializer=tf.glorot_normal_initializer(1),
            regularizer=_decay if regularized == "by its variable" else None,
        )
        if regularized == "by hand":
            tf.losses.add_loss(_decay(weights), tf.GraphKeys.REGULARIZATION_LOSSES)
        hidden = tf.tanh(tf.matmul(tf.concat([x, rows], 1), weights) + bias)
        last = tf.get_variable("last", [4, 1], initializer=start)
        predictions = {"y": tf.squeeze(tf.matmul(hidden, last), 1)}
        if mode == tf_mode("PREDICT"):
            return estimator.EstimatorSpec(mode, predictions=predictions)
        tf.losses.mean_squared_error(labels, predictions["y"])
        loss = tf.losses.get_total_loss()
        if not is_training:
            return estimator.EstimatorSpec(mode, loss=loss)
        optimizer = tf.train.AdamOptimizer(params["rate"])
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op_of(optimizer, loss))

    return model_fn


def tf_mode(name):
    """`ModeKeys.TRAIN` and the like."""
    return getattr(estimator.ModeKeys, name)


def run_config(kind=None, **settings):
    """A `RunConfig`, or another such class, whose sessions have a device for each clone."""
    settings = {"tf_random_seed": 1, "log_step_count_steps": None, **settings}
    kind = estimator.RunConfig if kind is None else kind
    return kind(session_config=devices.session_config(4), **settings)


def values_of(trained):
    """The values in the newest checkpoint of an estimator, by name."""
    return {name: trained.get_variable_value(name) for name in trained.get_variable_names()}

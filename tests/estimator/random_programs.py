"""Programs of Estimator drawn at random: deployed, they end where Estimator by itself does.

    python -m tests.estimator.random_programs SEED...

For each seed it draws a network, an optimizer, what is done with gradients, and a deployment.  The
program trains once by itself, on whole batches, and once deployed, on the parts of a batch, half of
the time with a stop in the middle.  All variables of the checkpoints have to be equal, to rounding.
"""

import dataclasses
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, estimator, slim
from tests.estimator import models

BATCH, STEPS = 24, 4
# Rounding in a step by several clones; XLA computes in another order.
TOLERANCE, OF_XLA = 3e-6, 3e-5
_RANDOM = np.random.RandomState(0)
_NUM_EXAMPLES = BATCH * STEPS
_EXAMPLES = {
    "x": _RANDOM.randn(_NUM_EXAMPLES, 5).astype(np.float32),
    "words": _RANDOM.randint(0, 7, [_NUM_EXAMPLES, 3]),
    "images": _RANDOM.randn(_NUM_EXAMPLES, 6, 6, 2).astype(np.float32),
}
_LABELS = _RANDOM.randn(_NUM_EXAMPLES, 2).astype(np.float32)
_OPTIMIZERS = {
    "sgd": tf.train.GradientDescentOptimizer,
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
    "adam": lambda rate: tf.train.AdamOptimizer(rate, epsilon=0.1),
    "adagrad": tf.train.AdagradOptimizer,
    "rmsprop": lambda rate: tf.train.RMSPropOptimizer(rate, epsilon=0.1),
    "ftrl": tf.train.FtrlOptimizer,
    "adadelta": lambda rate: tf.train.AdadeltaOptimizer(rate, epsilon=0.1),
}
_CLIPS = {
    "by the joint norm": lambda gradients: tf.clip_by_global_norm(gradients, 0.2)[0],
    "by norms": lambda gradients: [tf.clip_by_norm(gradient, 0.1) for gradient in gradients],
    "by values": lambda gradients: [tf.clip_by_value(g, -0.01, 0.01) for g in gradients],
    "halved": lambda gradients: [0.5 * gradient for gradient in gradients],
}


def _decay(variable):
    return 0.01 * tf.nn.l2_loss(variable)


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, by the names of its parts.

    Attributes:
      network: "dense", "embedded", "convolution", "loop" or "norm".
      optimizer: a key of `_OPTIMIZERS`.
      gradients: "minimize", "compute_gradients" or "tf.gradients".
      clip: a key of `_CLIPS`; None.
      regularized: "in the loss", "by variables", "by hand"; None.
      decays: whether the learning rate does.
      colocated: whether gradients are placed beside their ops.
      by_two: whether two optimizers share the variables.
      averaged: whether averages of variables are updated after them.
      use_resource: whether variables are resources; references are read while they are updated.
    """

    network: str
    optimizer: str
    gradients: str
    clip: str | None
    regularized: str | None
    decays: bool
    colocated: bool
    by_two: bool
    averaged: bool
    use_resource: bool = True

    def model_fn(self, features, labels, mode):
        """The `model_fn` of Estimator."""
        with tf.variable_scope(
            "net",
            use_resource=self.use_resource,
            initializer=tf.glorot_uniform_initializer(seed=3),
            regularizer=_decay if self.regularized == "by variables" else None,
        ):
            x = getattr(self, f"_{self.network}")(features, mode)
            kernel = tf.get_variable("kernel", [x.shape[1], 2])
            outputs = tf.matmul(x, kernel) + tf.get_variable("bias", [2])
        loss = self._regularize(tf.reduce_mean(tf.square(outputs - labels)))
        if mode != models.tf_mode("TRAIN"):
            return estimator.EstimatorSpec(mode, loss=loss)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=self._train_op(loss))

    def _dense(self, features, mode):
        del self, mode
        return features["x"]

    def _embedded(self, features, mode):
        table = tf.get_variable("table", [7, 4])
        words = tf.nn.embedding_lookup(table, features["words"])
        return tf.concat([tf.reduce_mean(words, 1), self._dense(features, mode)], 1)

    def _convolution(self, features, mode):
        del self, mode
        kernel = tf.get_variable("filters", [3, 3, 2, 4])
        values = tf.nn.conv2d(features["images"], kernel, 1, "SAME")
        values = tf.nn.relu(tf.nn.bias_add(values, tf.get_variable("shifts", [4])))
        return tf.reduce_mean(values, [1, 2])

    def _loop(self, features, mode):
        del self, mode
        x, kernel = features["x"], tf.get_variable("recurrent", [8, 3])

        def body(i, state):
            state = tf.matmul(tf.concat([x * tf.cast(i + 1, tf.float32), state], 1), kernel)
            return i + 1, tf.ensure_shape(tf.tanh(state), [None, 3])

        start = tf.ensure_shape(tf.zeros([tf.shape(x)[0], 3]), [None, 3])
        _, state = tf.while_loop(lambda i, _: i < 3, body, [0, start])
        return tf.ensure_shape(state, [None, 3])

    def _norm(self, features, mode):
        del self
        hidden = tf.matmul(features["x"], tf.get_variable("hidden", [5, 4]))
        is_training = mode == models.tf_mode("TRAIN")
        return slim.batch_norm(hidden, is_training=is_training, decay=0.5, scale=True)

    def _regularize(self, loss):
        if self.regularized is None:
            return loss
        if self.regularized != "by variables":
            decays = tf.add_n([_decay(variable) for variable in tf.trainable_variables()])
            if self.regularized == "in the loss":
                return loss + decays
            tf.losses.add_loss(decays, tf.GraphKeys.REGULARIZATION_LOSSES)
        tf.losses.add_loss(loss)
        return tf.losses.get_total_loss()

    def _train_op(self, loss):
        step, variables = tf.train.get_global_step(), tf.trainable_variables()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            if self.by_two:
                halves = variables[::2], variables[1::2]
                updates = [self._update(loss, halves[0], step), self._update(loss, halves[1], None)]
            else:
                updates = [self._update(loss, variables, step)]
        if self.averaged:
            with tf.control_dependencies(updates):
                updates = [tf.train.ExponentialMovingAverage(0.5).apply(variables)]
        return tf.group(*updates)

    def _update(self, loss, variables, step):
        rate = tf.train.exponential_decay(0.1, tf.train.get_global_step(), 2, 0.7)
        optimizer = _OPTIMIZERS[self.optimizer](rate if self.decays else 0.1)
        settings = {"colocate_gradients_with_ops": self.colocated}
        if self.gradients == "minimize" and self.clip is None:
            return optimizer.minimize(loss, step, variables, **settings)
        if self.gradients == "tf.gradients":
            gradients = tf.gradients(loss, variables)
        else:
            pairs = optimizer.compute_gradients(loss, variables, **settings)
            gradients = [gradient for gradient, _ in pairs]
        if self.clip is not None:  # norms of rows are those of the rows as they come
            gradients = _CLIPS[self.clip](list(map(tf.convert_to_tensor, gradients)))
        return optimizer.apply_gradients(zip(gradients, variables, strict=True), step)


def draw(seed):
    """A program, the settings of a deployment, and after how many steps it stops in the middle."""
    generator = random.Random(seed)
    choose = generator.choice
    program = Program(
        network=choose(["dense", "embedded", "convolution", "loop", "norm"]),
        optimizer=choose(list(_OPTIMIZERS)),
        gradients=choose(["minimize", "compute_gradients", "tf.gradients"]),
        clip=choose([None, None, *_CLIPS]),
        regularized=choose([None, "in the loss", "by variables", "by hand"]),
        decays=choose([False, True]),
        colocated=choose([False, True]),
        by_two=choose([False, False, True]),
        averaged=choose([False, False, True]),
    )
    settings: dict[str, Any] = {"num_clones": choose([1, 2, 3, 4]), "clone_on_cpu": True}
    settings |= choose([{}, {"copy_clones": True}, {"all_reduce": True}])
    if program.network == "norm":
        settings["sync_batch_norm"] = True
    else:
        settings["accumulate_steps"] = choose([1, 1, 2])
    settings |= choose([{}, {}, {"loss_scale": 128.0}, {"loss_scale": "dynamic"}, {"xla": True}])
    if not (program.by_two or program.averaged):
        program = dataclasses.replace(program, use_resource=choose([True, False]))
    return program, settings, choose([0, STEPS // 2])


def difference(program, settings, stop, folder):
    """The largest difference between two values of the checkpoints.

    Args:
      program: the program.
      settings: of the `DeploymentConfig`.
      stop: the step after which the deployed program stops and goes on; 0 for no stop.
      folder: for the runs.
    """
    # References are updated while other gradients are computed, so resources say what is right.
    alone = dataclasses.replace(program, use_resource=True).model_fn
    deployed = estimator.deployed(program.model_fn, DeploymentConfig(**settings))
    parts = settings["num_clones"] * settings.get("accumulate_steps", 1)
    found, expected = (
        estimator.Estimator(model_fn, str(folder / name), models.run_config())
        for name, model_fn in (("deployed", deployed), ("alone", alone))
    )
    expected.train(_input_fn(BATCH), steps=STEPS)
    for first, last in ((0, stop), (stop, STEPS)):
        if last > first:
            found.train(_input_fn(BATCH // parts, first * BATCH), max_steps=last)
    values = models.values_of(found)
    return max(
        float(np.max(np.abs(values[name] - value)))
        for name, value in models.values_of(expected).items()
    )


def tolerance(settings):
    """How large a difference may be."""
    return OF_XLA if settings.get("xla") else TOLERANCE


def _input_fn(batch_size, skip=0):
    def read():
        examples = tf.data.Dataset.from_tensor_slices((_EXAMPLES, _LABELS))
        return examples.skip(skip).batch(batch_size, drop_remainder=True)

    return read


def main(seeds):
    """Prints each seed, and of a program that ends elsewhere what it is; returns how many do."""
    num_wrong = 0
    for seed in seeds:
        program, settings, stop = draw(int(seed))
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = difference(program, settings, stop, Path(folder))
                wrong = "" if found < tolerance(settings) else f"differs by {found:.2g}"
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
        num_wrong += bool(wrong)
        print(seed, f"{wrong}\n{program}\n{settings}, stops at {stop}" if wrong else "equal")
    return num_wrong


if __name__ == "__main__":
    tf.disable_eager_execution()
    sys.exit(main(sys.argv[1:]) > 0)

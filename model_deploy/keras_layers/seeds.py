"""The seeds that layers of Keras 3 draw: other ones in each clone, the same in a run that goes on.

Keras keeps the seed and a count in a variable, which each step moves on and checkpoints hold.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals, randomness
from model_deploy.config import DeploymentConfig


def seed_of_clone(
    generator: Any,
    draw: Callable[[], Any],
    config: DeploymentConfig,
    number: int,
    num_seeds: int,
) -> Any:
    """The next seed of a generator, for a clone.

    That of the first clone of the first replica is Keras' own.  In a `random_by_step` it is made
    of the generator's seed, how many the clone has drawn, and the global step, whatever the
    generator has counted.

    Args:
      generator: a `keras.random.SeedGenerator`.
      draw: gives its next seed, and counts.
      config: the deployment.
      number: of the clone, or of the part of a clone.
      num_seeds: how many seeds layers have drawn in the clone, with this one.

    Returns:
      Integers of shape [2], of the type that Keras has.
    """
    by_step = randomness.is_by_step()
    moved = randomness.seed_of_copy(0, f"seed {num_seeds}") if by_step else 0
    batch = randomness.batch_number()
    if batch is not None:  # which any replica may take, as any of its clones
        moved = randomness.seed_of_copy(moved, f"batch {batch}")
    if config.replica_id and batch is None:
        moved = randomness.seed_of_copy(moved, f"replica {config.replica_id}")
    if number and batch is None:
        moved = randomness.seed_of_copy(moved, number)
    seed = internals.tf_variable(generator.state).read_value() if by_step else draw()
    with tf.name_scope("by_step"):
        # Copies of the clone have another number under this name.
        moved = tf.constant(moved, tf.int64, name="seed")
        count = seed[1]
        if by_step:
            count = tf.cast(tf.train.get_or_create_global_step().read_value(), seed.dtype)
        return tf.stack([seed[0] + tf.cast(moved, seed.dtype), count])

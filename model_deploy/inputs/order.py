"""Which example comes at which place of training, as a function of (seed, epoch).

Training is one endless sequence of *global batches*; each is cut into consecutive
pieces, one per clone of each replica.  An epoch is as many global batches as fit into
the dataset.  The examples that are left over rotate: they are consecutive in one
fixed permutation, and the next epoch leaves out the ones that follow, so every
example is left out equally often.

Because nothing but the seed and the number of the epoch goes in, any place can be
computed without going through the ones before it: that is what makes a resumed run
see what an uninterrupted run would have seen.
"""

import dataclasses
from typing import Any

import tensorflow as tf

# The permutation that the remainder rotates through: no epoch has this number.
_ROTATION_EPOCH = -1


@dataclasses.dataclass(frozen=True)
class Order:
    """The order of training examples.

    Attributes:
      num_examples: how many there are.
      global_batch_size: examples per step, over all clones and replicas.
      seed: chooses the order; any integer of 64 bits.
      shuffle: without it, examples come in the order of the dataset.

    Raises:
      ValueError: for a global batch that is larger than the dataset, and a seed of more than 64
        bits.
    """

    num_examples: int
    global_batch_size: int
    seed: int = 0
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.global_batch_size > self.num_examples:
            raise ValueError(
                "batch_size * num_clones * num_shards must be at most the "
                f"{self.num_examples} examples of the dataset, got {self.global_batch_size}"
            )
        if not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"seed must be an integer of 64 bits, got {self.seed}")

    @property
    def steps_per_epoch(self) -> int:
        """Whole global batches in the dataset."""
        return self.num_examples // self.global_batch_size

    @property
    def examples_per_epoch(self) -> int:
        """Examples that one epoch uses: all but the remainder."""
        return self.steps_per_epoch * self.global_batch_size

    def epoch(self, epoch: Any) -> Any:
        """The numbers of the examples of an epoch, in order: int64 [examples_per_epoch].

        Args:
          epoch: int64 [], from 0.
        """
        used = self.examples_per_epoch
        remainder = self.num_examples - used
        places = tf.range(used, dtype=tf.int64)
        if not self.shuffle:
            return tf.math.floormod(places + epoch * remainder, self.num_examples)
        if not remainder:
            return _permutation(self.num_examples, self.seed, epoch)
        rotation = _permutation(self.num_examples, self.seed, _ROTATION_EPOCH)
        first = tf.math.floormod((epoch + 1) * remainder, self.num_examples)
        kept = tf.gather(rotation, tf.math.floormod(places + first, self.num_examples))
        return tf.gather(kept, _permutation(used, self.seed, epoch))


def _permutation(size: int, seed: int, epoch: Any) -> Any:
    """A permutation of 0 .. size - 1, int64 [size].

    Equal keys keep their order (the sort is stable), so it is well defined.
    """
    keys = tf.random.stateless_uniform(
        [size],
        seed=tf.stack([tf.constant(seed, tf.int64), tf.cast(epoch, tf.int64)]),
        minval=None,
        maxval=None,
        dtype=tf.int32,
        alg="philox",  # the default depends on the device
    )
    return tf.cast(tf.argsort(keys, stable=True), tf.int64)

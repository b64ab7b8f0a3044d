"""The order of training examples, as a function of (seed, epoch).

Training is an endless sequence of *global batches*; each is cut into consecutive pieces, one per
clone of each replica.  An epoch is as many global batches as fit into the dataset.  The remaining
examples rotate: an epoch leaves out consecutive examples of a fixed permutation, the next epoch
those that follow them, so every example is left out equally often.

As the order depends only on the seed and the epoch, any position can be computed directly: so a
resumed run sees the same examples as an uninterrupted one.

For slow files, neighbours should be read together, in *blocks*.  Then blocks are permuted in place
of examples, and the sequence of blocks is cut into *windows* of several steps, inside of which
examples are shuffled.  A window consists of *streams*, up to 8, whose number divides the global
batch size: each step takes equally many examples from each stream, and each stream has its own
blocks.  So replicas that take whole streams read no block twice, and the order is independent of
their number.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from model_deploy.checks import check_at_least

# Number of the permutation through which the remainder rotates; no epoch has it.
_ROTATION_EPOCH = -1
_MAX_STREAMS = 8
_BLOCKS_MIXED = 4  # blocks of each stream in a window
# Distinguishes the permutation of blocks from that of examples in the same epoch.
_BLOCKS_SALT = -(2**62)


@dataclasses.dataclass(frozen=True)
class Order:
    """The order of training examples.

    Attributes:
      num_examples: number of examples in the dataset.
      global_batch_size: examples per step, over all clones and replicas.
      seed: chooses the order; any integer of 64 bits.
      shuffle: whether to shuffle; if not, examples come in the order of the dataset.
      shuffle_block: number of neighbours per block; by default examples are shuffled singly.

    Raises:
      ValueError: for a global batch larger than the dataset, a seed of more than 64 bits, and a
        block below 1.
    """

    num_examples: int
    global_batch_size: int
    seed: int = 0
    shuffle: bool = True
    shuffle_block: int | None = None

    def __post_init__(self) -> None:
        if self.global_batch_size > self.num_examples:
            raise ValueError(
                "batch_size * num_clones * num_shards must be at most the "
                f"{self.num_examples} examples of the dataset, got {self.global_batch_size}"
            )
        if not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"seed must be an integer of 64 bits, got {self.seed}")
        check_at_least("shuffle_block", self.shuffle_block, 1)

    @property
    def steps_per_epoch(self) -> int:
        """Number of whole global batches in the dataset."""
        return self.num_examples // self.global_batch_size

    @property
    def examples_per_epoch(self) -> int:
        """Number of examples in an epoch, without the remainder."""
        return self.steps_per_epoch * self.global_batch_size

    @property
    def num_streams(self) -> int:
        """Number of streams of blocks, from each of which a step takes equally many examples."""
        streams = range(1, _MAX_STREAMS + 1)
        return max(each for each in streams if self.global_batch_size % each == 0)

    @property
    def steps_per_window(self) -> int:
        """Number of steps whose examples are read together and shuffled; 1 without blocks."""
        if self.shuffle_block is None or not self.shuffle:
            return 1
        wanted = _BLOCKS_MIXED * self.shuffle_block * self.num_streams
        return min(self.steps_per_epoch, -(-wanted // self.global_batch_size))

    def epoch(self, epoch: Any) -> Any:
        """Returns the numbers of the examples of an epoch in order, int64 [examples_per_epoch].

        Args:
          epoch: int64 [], from 0.
        """
        used = self.examples_per_epoch
        remainder = self.num_examples - used
        places = tf.range(used, dtype=tf.int64)
        if not self.shuffle:
            return tf.math.floormod(places + epoch * remainder, self.num_examples)
        if self.shuffle_block is not None:
            blocks = _mixed_blocks(self, self.shuffle_block, epoch)
            return tf.math.floormod(blocks + epoch * remainder, self.num_examples)
        if not remainder:
            return _permutation(self.num_examples, self.seed, epoch)
        rotation = _permutation(self.num_examples, self.seed, _ROTATION_EPOCH)
        first = tf.math.floormod((epoch + 1) * remainder, self.num_examples)
        kept = tf.gather(rotation, tf.math.floormod(places + first, self.num_examples))
        return tf.gather(kept, _permutation(used, self.seed, epoch))


def _mixed_blocks(order: Order, block: int, epoch: Any) -> Any:
    """Returns a permutation of 0 .. examples_per_epoch - 1 by blocks, int64."""
    used, batch = order.examples_per_epoch, order.global_batch_size
    places = tf.range(used, dtype=tf.int64)
    ranks = _permutation(-(-used // block), order.seed, epoch + _BLOCKS_SALT)
    keys = tf.gather(ranks, places // block) * block + places % block
    in_blocks = tf.cast(tf.argsort(keys), tf.int64)
    window, stream, steps = order.steps_per_window, order.num_streams, order.steps_per_epoch
    per_stream = batch // stream  # examples per step
    # The last window has the remaining steps.
    of_window = places // (window * batch)
    its_steps = tf.minimum(tf.constant(window, tf.int64), steps - of_window * window)
    in_window = places % (window * batch)
    part = of_window * stream + in_window // (its_steps * per_stream)
    mixed = tf.gather(in_blocks, _shuffled_within(part, order.seed, epoch))
    in_step = places % batch
    source = in_step // per_stream * its_steps + in_window // batch
    return tf.gather(mixed, of_window * window * batch + source * per_stream + in_step % per_stream)


def _shuffled_within(parts: Any, seed: int, epoch: Any) -> Any:
    """Returns a permutation within parts; `parts`, int64 [n], has each place's part, in order."""
    shuffled = _permutation(parts.shape[0], seed, epoch)
    return tf.gather(shuffled, tf.argsort(tf.gather(parts, shuffled), stable=True))


def _permutation(size: int, seed: int, epoch: Any) -> Any:
    """Returns a permutation of 0 .. size - 1, int64 [size].

    The stable sort makes it well defined even for equal random keys.
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

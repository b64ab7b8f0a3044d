"""`Shard`: which examples of each step a replica's clones take."""

import dataclasses
from typing import Any

import tensorflow as tf

from model_deploy.checks import check_at_least
from model_deploy.inputs.order.epochs import Order

_ENDLESS = 2**62


@dataclasses.dataclass(frozen=True)
class Shard:
    """The part of each global batch that this replica takes.

    Attributes:
      num_shards: number of replicas that share the dataset equally.
      shard_index: number of this replica, from 0.
      num_clones: clones per replica.
      batch_size: examples per clone.
      first_clone: with `global_clones`, number of this replica's first clone among them.
      global_clones: clones of all replicas, if replicas have different numbers of clones;
        `num_shards` is then 1.  None for equal replicas.

    Raises:
      ValueError: for a number below 1, a `shard_index` that is not less than `num_shards`, or
        clones that are not among the `global_clones`.
    """

    num_shards: int
    shard_index: int
    num_clones: int
    batch_size: int
    first_clone: int = 0
    global_clones: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_shards", "num_clones", "batch_size"):
            check_at_least(name, getattr(self, name), 1)
        if not 0 <= self.shard_index < self.num_shards:
            raise ValueError(
                f"shard_index must be from 0 to num_shards - 1 = {self.num_shards - 1}, "
                f"got {self.shard_index}"
            )

        if self.global_clones is None:
            if self.first_clone:
                raise ValueError(
                    f"first_clone must be 0 without global_clones, got {self.first_clone}"
                )
            return
        if self.num_shards != 1:
            raise ValueError(f"num_shards must be 1 with global_clones, got {self.num_shards}")
        if not 0 <= self.first_clone <= self.global_clones - self.num_clones:
            raise ValueError(
                f"first_clone must be from 0 to global_clones - num_clones = {self.global_clones} "
                f"- {self.num_clones}, got {self.first_clone}"
            )

    @property
    def global_batch_size(self) -> int:
        """Number of examples per step over all clones of all replicas."""
        if self.global_clones is not None:
            return self.global_clones * self.batch_size
        return self.num_shards * self.num_clones * self.batch_size

    def offset(self, clone: int) -> int:
        """Returns the start of a clone's examples in the global batch."""
        first = self.first_clone + self.shard_index * self.num_clones
        return (first + clone) * self.batch_size


def example_numbers(
    order: Order,
    shard: Shard,
    first_clone: int,
    num_clones: int,
    *,
    start: Any,
    num_epochs: int | None,
    num_following: int = 0,
) -> Any:
    """Returns a `tf.data.Dataset` of example numbers from step `start` on, one window per element.

    A window has the examples step by step, and in a step those of the clones that share the
    pipeline, followed by the `num_following` next examples of the global batch, cyclically.
    """
    num_steps, window = order.steps_per_epoch, order.steps_per_window
    first_epoch = start // num_steps
    first_step = start % num_steps
    begin, count = shard.offset(first_clone), num_clones * shard.batch_size
    wanted = tf.range(begin, begin + count + num_following, dtype=tf.int64)
    places = wanted % shard.global_batch_size

    @tf.autograph.experimental.do_not_convert
    def windows_of_epoch(epoch: Any) -> Any:
        examples = order.epoch(epoch)
        done = tf.where(tf.equal(epoch, first_epoch), first_step, 0)

        @tf.autograph.experimental.do_not_convert
        def numbers_of_window(number: Any) -> dict[str, Any]:
            steps = tf.range(
                tf.maximum(number * window, done), tf.minimum((number + 1) * window, num_steps)
            )
            in_epoch = tf.reshape(steps[:, tf.newaxis] * shard.global_batch_size + places, [-1])
            return {
                "index": tf.gather(examples, in_epoch),
                "position": epoch * order.examples_per_epoch + in_epoch,
            }

        num_windows = -(-num_steps // window)
        return tf.data.Dataset.range(done // window, num_windows).map(numbers_of_window)

    end = _ENDLESS if num_epochs is None else num_epochs
    return tf.data.Dataset.range(first_epoch, end).flat_map(windows_of_epoch)

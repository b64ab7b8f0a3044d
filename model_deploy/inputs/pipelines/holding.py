"""How much an input pipeline holds: a bound by its settings, whatever the size of the dataset."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

# Of a parallel interleave of `tf.data`: those that it goes through, and twice as many beforehand.
_CHUNKS_PER_READER = 3
# One that is made, one that waits, one of which the examples are taken.
_WINDOWS = 3
_EPOCHS, _NUMBER_BYTES = 2, 8
_MB = 1e6
# The graph's list of pipelines.  Not a string: those collections go into checkpoints.
_HELD = ("model_deploy", "held")


class Work(NamedTuple):
    """The most examples that are on their way from files or arrays into batches at the same time.

    Attributes:
      examples: how many, in chunks or in batches that are being preprocessed.
      decoding: how many images are being decoded.
    """

    examples: int
    decoding: int


@dataclasses.dataclass(frozen=True)
class Held:
    """The most memory that a pipeline holds; `str` gives a line for people.

    Attributes:
      examples: how many examples, those of batches included.
      example_bytes: of each one of them.
      decoding: how many images are being decoded besides, each of as many bytes as it has pixels.
      stored_bytes: of records that were read together, as they are in their files.
      table_bytes: of what stays as long as the pipeline: images in memory, or where records are;
        and the order of two epochs.
    """

    examples: int
    example_bytes: int
    decoding: int
    stored_bytes: int
    table_bytes: int

    @property
    def num_bytes(self) -> int:
        """All but the images that are being decoded, whose size nobody knows beforehand."""
        return self.examples * self.example_bytes + self.stored_bytes + self.table_bytes

    def __str__(self) -> str:
        parts = [f"{self.examples} examples of {self.example_bytes:,} bytes"]
        if self.stored_bytes:
            parts.append(f"records of {self.stored_bytes / _MB:.1f} MB")
        parts.append(f"tables of {self.table_bytes / _MB:.1f} MB")
        besides = f"; and {self.decoding} images that are being decoded" if self.decoding else ""
        total = self.num_bytes / _MB
        return f"inputs hold at most {total:.1f} MB: {', '.join(parts)}{besides}"

    def times(self, pipelines: int) -> "Held":
        """The memory of several such pipelines over the same tables."""
        return dataclasses.replace(
            self,
            examples=pipelines * self.examples,
            decoding=pipelines * self.decoding,
            stored_bytes=pipelines * self.stored_bytes,
        )


class Holder(Protocol):
    """A pipeline, or several.

    Attributes:
      held: what it holds, computed when somebody asks: a dataset may have millions of files.
    """

    @property
    def held(self) -> Held: ...


def held_in(graph: tf.Graph) -> list[Held]:
    """The memory of each training pipeline of a graph, in the order in which they were built."""
    return [holder.held for holder in graph.get_collection(_HELD)]


def note(holder: Holder) -> None:
    """Lets `held_in` of the default graph know of what holds something."""
    tf.compat.v1.add_to_collection(_HELD, holder)


def in_chunks(readers: int, chunk_size: int) -> int:
    """How many examples `chunks.Chunks` holds, and one chunk that waits for the rest of a batch."""
    return (_CHUNKS_PER_READER * readers + 1) * chunk_size


def held_by(
    work: Work,
    batch_spec: Any,
    batch_size: int,
    num_clones: int,
    *,
    tables: Sequence[np.ndarray],
    num_examples: int,
    window: int = 0,
) -> Held:
    """The most memory that one pipeline holds.

    Args:
      work: what is on its way.
      batch_spec: of a batch: `tf.TensorSpec`s, each [batch_size, ...], in any structure.
      batch_size: examples of a batch.
      num_clones: clones that take from it; a batch of each, and one, is in reserve, and one more
        is being made.
      num_examples: those of an epoch, whose numbers are held in their order.
      tables: the arrays in the graph; with a window the last one has the bytes of each record.
      window: records of a window, or 0 where records are not read together.
    """
    batches = 1 + (num_clones + 1) + num_clones
    stored = 0
    if window:
        largest = np.sort(tables[-1])[-_WINDOWS * window :]
        stored = int(largest.sum())
    return Held(
        examples=work.examples + batches * batch_size,
        example_bytes=sum(map(_bytes_of, tf.nest.flatten(batch_spec))),
        decoding=work.decoding,
        stored_bytes=stored,
        table_bytes=sum(map(_table_bytes, tables)) + _EPOCHS * _NUMBER_BYTES * num_examples,
    )


def _bytes_of(spec: Any) -> int:
    """The bytes of one example; a side of unknown size, or a string, counts as 1 byte."""
    sides = [side or 1 for side in spec.shape.as_list()[1:]]
    return int(np.prod(sides, dtype=np.int64)) * max(1, spec.dtype.size or 1)


def _table_bytes(table: np.ndarray) -> int:
    return sum(map(len, table)) if table.dtype == object else table.nbytes

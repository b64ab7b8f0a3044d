"""The memory that an input pipeline holds at most, computed from its settings."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

# `tf.data`'s parallel interleave holds the chunks that it reads, and twice as many in advance.
_CHUNKS_PER_READER = 3
# A window that is made, one that waits, and one whose examples are taken.
_WINDOWS = 3
_EPOCHS, _NUMBER_BYTES = 2, 8
_MB = 1e6
# The graph's list of pipelines.  Not a string: those collections go into checkpoints.
_HELD = ("model_deploy", "held")


class Work(NamedTuple):
    """The largest numbers of examples in preparation at the same time.

    Attributes:
      examples: number of examples in chunks, or in batches that are being preprocessed.
      decoding: number of images that are being decoded.
    """

    examples: int
    decoding: int


@dataclasses.dataclass(frozen=True)
class Held:
    """The largest memory that a pipeline holds; `str` describes it in a line.

    Attributes:
      examples: number of examples, batches included.
      example_bytes: bytes per example.
      decoding: number of images that are being decoded in addition, whose sizes are unknown.
      stored_bytes: bytes of encoded records that were read together.
      table_bytes: bytes that stay for the life of the pipeline: images in memory or positions of
        records, decoded rows that are kept, and the order of two epochs.
    """

    examples: int
    example_bytes: int
    decoding: int
    stored_bytes: int
    table_bytes: int

    @property
    def num_bytes(self) -> int:
        """Total bytes, without the images that are being decoded."""
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
        """Returns the memory of several such pipelines that share the tables."""
        return dataclasses.replace(
            self,
            examples=pipelines * self.examples,
            decoding=pipelines * self.decoding,
            stored_bytes=pipelines * self.stored_bytes,
        )


class Holder(Protocol):
    """The interface of one or several pipelines.

    Attributes:
      held: the memory, computed on demand, as a dataset may have millions of files.
    """

    @property
    def held(self) -> Held: ...


def held_in(graph: tf.Graph) -> list[Held]:
    """Returns the memory of each training pipeline of a graph, in the order of creation."""
    return [holder.held for holder in graph.get_collection(_HELD)]


def note(holder: Holder) -> None:
    """Notes a pipeline in the default graph, for `held_in`."""
    tf.compat.v1.add_to_collection(_HELD, holder)


def in_chunks(readers: int, chunk_size: int) -> int:
    """Returns how many examples `chunks.Chunks` holds, with a chunk that waits for a full batch."""
    return (_CHUNKS_PER_READER * readers + 1) * chunk_size


def with_windows(work: Work, window: int) -> Work:
    """Returns the work of a pipeline that decodes all examples of a window together.

    Args:
      work: its work without windows.
      window: number of examples per window; 0 if it has none.
    """
    return work._replace(examples=work.examples + _WINDOWS * window)


def held_by(
    work: Work,
    batch_spec: Any,
    batch_size: int,
    num_clones: int,
    *,
    tables: Sequence[np.ndarray],
    num_examples: int,
    window: int = 0,
    cached_bytes: int = 0,
) -> Held:
    """Returns the largest memory that one pipeline holds.

    Args:
      work: examples in preparation.
      batch_spec: `tf.TensorSpec`s of a batch, each [batch_size, ...], in any structure.
      batch_size: examples per batch.
      num_clones: number of clones that use the pipeline; num_clones + 1 batches are in reserve,
        and one is being made.
      num_examples: number of examples of an epoch, whose order is held.
      tables: the arrays in the graph; with a window the last has the size of each record.
      window: number of records per window; 0 if records are not read together.
      cached_bytes: bytes of decoded examples that all pipelines share.
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
        table_bytes=sum(map(_table_bytes, tables))
        + _EPOCHS * _NUMBER_BYTES * num_examples
        + cached_bytes,
    )


def _bytes_of(spec: Any) -> int:
    """Returns the bytes of one example; an unknown side, and a string, count 1."""
    sides = [side or 1 for side in spec.shape.as_list()[1:]]
    return int(np.prod(sides, dtype=np.int64)) * max(1, spec.dtype.size or 1)


def _table_bytes(table: np.ndarray) -> int:
    return sum(map(len, table)) if table.dtype == object else table.nbytes

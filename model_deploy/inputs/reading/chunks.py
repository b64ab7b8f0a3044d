"""Chunks of examples that TensorFlow's ops read, so that an error costs no more than a chunk.

A `tf.data` pipeline can drop what fails, but not say what it was or put something in its place. So
each chunk of a few consecutive examples is read twice if need be: all at once by ops, and if
anything in it fails, once more by Python, which names corrupt records, counts them and replaces
them. No good chunk meets Python.
"""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.inputs.files import records

_MAX_BYTES = 2**22
_REMOTE_READERS = 16
_MAX_EXAMPLES = 64  # from some 30 on, the start of a chunk takes no time


def chunk_size(example_bytes: int, batch_size: int) -> int:
    """How many examples a chunk has: no more than a batch, and about 4 MiB."""
    return max(1, min(_MAX_EXAMPLES, batch_size, _MAX_BYTES // max(1, example_bytes)))


def default_readers(is_local: bool) -> int:
    """How many reads there are at the same time: more where they wait for another machine."""
    return usable_cores() if is_local else max(_REMOTE_READERS, usable_cores())


def _with_threads(examples: Any, readers: int) -> Any:
    """The `tf.data.Dataset` with a thread for each reader, where those of the session are fewer."""
    if readers <= usable_cores():
        return examples
    options = tf.data.Options()
    options.threading.private_threadpool_size = readers
    return examples.with_options(options)


def usable_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Chunks:
    """How examples are read in chunks.

    Attributes:
      read: from a number of an example, a dict of tensors [], to the example, by ops alone.
      read_again: from a `tf.data.Dataset` of such numbers to one of examples, by whatever way.
      size: examples to a chunk.
      readers: chunks that are read at the same time.
      record_tables: the tensors of `RecordFiles.tables` where examples are records, which `read`
        then gets as a second argument; None where `read` finds what is stored.
      in_windows: whether the records of a window are read together: `read` gets none, and finds
        them in the dict, as "stored"; see `read_windows`.
      autograph: whether AutoGraph goes through these functions, for what users wrote.
    """

    read: Callable[..., Any]
    read_again: Callable[[Any], Any]
    size: int
    readers: int
    record_tables: Sequence[Any] | None = None
    in_windows: bool = False
    autograph: bool = False

    def examples(self, numbers: Any) -> Any:
        """Examples in the order of their numbers.

        Args:
          numbers: a `tf.data.Dataset` of dicts of tensors [n], any n, "index" among them.

        Returns:
          A `tf.data.Dataset` of examples, `size` of them or less in each element.
        """

        def chunk(part: Any) -> Any:
            each = tf.data.Dataset.from_tensor_slices(part)
            count = tf.shape(tf.nest.flatten(part)[0], out_type=tf.int64)[0]
            # A chunk with an error lacks an example, and so is no whole batch.
            good = self._read(part, each).batch(count, drop_remainder=True).ignore_errors()
            return good.concatenate(self.read_again(each).batch(count)).take(1)

        if self.in_windows:
            numbers = read_windows(self.record_tables or [], numbers, self.readers)
        examples = numbers.rebatch(self.size).interleave(
            chunk if self.autograph else tf.autograph.experimental.do_not_convert(chunk),
            cycle_length=self.readers,
            block_length=1,
            num_parallel_calls=self.readers,
            deterministic=True,
        )
        return _with_threads(examples, self.readers)

    def _read(self, part: Any, each: Any) -> Any:
        if self.record_tables is None or self.in_windows:
            return each.map(self.read)
        # Not within `read`, where each would need an iterator of its own.
        stored = records.records_in_graph(self.record_tables, part["index"])
        return tf.data.Dataset.zip((each, stored)).map(self.read)


def read_windows(tables: Sequence[Any], numbers: Any, readers: int) -> Any:
    """What is stored of the examples of each window, neighbours by a single request.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      numbers: a `tf.data.Dataset` of windows: dicts of tensors [n], "index" among them.
      readers: requests at the same time.

    Returns:
      The windows with "stored", string [n], in addition: empty for all of a run that has an error.
    """

    read = tf.autograph.experimental.do_not_convert(
        lambda first, count: records.read_run_in_graph(tables, first, count)
    )

    @tf.autograph.experimental.do_not_convert
    def read_run(first: Any, count: Any) -> Any:
        good = tf.data.Dataset.from_tensors((first, count)).map(read).ignore_errors()
        return good.concatenate(tf.data.Dataset.from_tensors(tf.fill([count], ""))).take(1)

    @tf.autograph.experimental.do_not_convert
    def read_window(window: Any) -> Any:
        places = tf.argsort(window["index"])
        in_order = tf.gather(window["index"], places)
        runs = tf.data.Dataset.from_tensor_slices(records.runs_in_graph(tables, in_order))
        stored = runs.interleave(
            read_run, readers, 1, num_parallel_calls=readers, deterministic=True
        )
        count = tf.shape(places, out_type=tf.int64)[0]
        stored = stored.rebatch(count).get_single_element()
        return window | {"stored": tf.gather(stored, tf.argsort(places))}

    return numbers.map(read_window).prefetch(1)


def in_graph(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Tensors of arrays, which may hold bytes.

    The arrays enter the graph through a function that runs when the iterator is initialized, not as
    constants: a graph with CIFAR-10 in it would be 150 MB, in every checkpoint's copy of it too.
    """
    tensors = []
    for array in arrays:
        kind = tf.string if array.dtype == object else array.dtype
        tensor = tf.numpy_function(lambda array=array: array, [], kind)
        tensor.set_shape(array.shape)
        tensors.append(tensor)
    return tensors

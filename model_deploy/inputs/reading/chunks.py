"""Chunks of examples that TensorFlow's ops read, so that an error affects one chunk only.

A `tf.data` pipeline can drop an element that fails, but not report or replace it.  So each chunk of
a few consecutive examples is read by ops, and if an example fails, again by Python, which names,
counts and replaces corrupt records.  Chunks without errors do not use Python.
"""

import dataclasses
import os
import resource
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.inputs.files import records
from model_deploy.inputs.reading import same_thread
from model_deploy.inputs.reading.composites import batched

_MAX_BYTES, _MAX_BYTES_OF_ALL = 2**22, 2**29
_MAX_BYTES_AT_ONCE = 2**20
_REMOTE_READERS = 16
_MAX_EXAMPLES = 64  # beyond some 30 the cost of starting a chunk is negligible


def chunk_size(example_bytes: int, batch_size: int, readers: int) -> int:
    """Returns the number of examples in a chunk: at most 64.

    A chunk is a batch, which then need not be put together of several, where the chunks of all
    readers take at most 512 MiB; else it has about 4 MiB.

    Args:
      example_bytes: bytes of an example.
      batch_size: examples in a batch.
      readers: number of chunks that are read in parallel.
    """
    size = min(_MAX_EXAMPLES, batch_size)
    if size == batch_size and readers * batch_size * example_bytes <= _MAX_BYTES_OF_ALL:
        return size
    return max(1, min(size, _MAX_BYTES // max(1, example_bytes)))


def default_readers(is_local: bool) -> int:
    """Returns the default number of parallel reads: more for files on other machines."""
    return usable_cores() if is_local else max(_REMOTE_READERS, usable_cores())


def interleaved(parts: Any, chunk: Callable[[Any], Any], readers: int) -> Any:
    """Reads chunks in parallel; returns a `tf.data.Dataset` of their elements, in order.

    Args:
      parts: a `tf.data.Dataset` of what `chunk` takes, of any shapes.
      chunk: returns a `tf.data.Dataset` of one element.
      readers: number of chunks that are read at the same time.
    """
    if readers == 1:  # a parallel interleave reads ahead, in a second thread
        return parts.flat_map(chunk)
    elements = parts.interleave(
        chunk,
        cycle_length=readers,
        block_length=1,
        num_parallel_calls=readers,
        deterministic=True,
    )
    return _with_threads(elements, readers)


def _with_threads(examples: Any, readers: int) -> Any:
    """Gives a `tf.data.Dataset` a thread per reader, if the session has fewer threads."""
    if readers <= usable_cores():
        return examples
    options = tf.data.Options()
    options.threading.private_threadpool_size = readers
    return examples.with_options(options)


def records_at_once(sizes: np.ndarray, chunk: int, readers: int, *, is_local: bool) -> int:
    """Returns how many records a reader may have open: at most 1 MiB, and few files.

    All readers of a pipeline open at most a sixteenth of the files that the process may.  That is
    often 1,024, of which pipelines for 8 GPUs leave half.  Of files on other machines it is one
    record: the last chunk of an evaluation reads a record again where it has fewer.

    Args:
      sizes: bytes of each record, int64 [n], n at least 1.
      chunk: number of examples in a chunk.
      readers: number of chunks that are read in parallel.
      is_local: whether the files are on this machine.
    """
    if not is_local:
        return 1
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = [chunk, _MAX_BYTES_AT_ONCE // int(sizes.max())]
    limits += [] if files == resource.RLIM_INFINITY else [files // 16 // readers]
    return max(1, min(limits))


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Chunks:
    """Reads examples in chunks.

    Attributes:
      read: function from an example's number, a dict of tensors [], to the example, by ops alone.
      read_again: function from a `tf.data.Dataset` of numbers to one of examples, in any way.
      size: number of examples per chunk.
      readers: number of chunks read in parallel.
      record_tables: the tensors of `RecordFiles.tables`, if the records are read here and passed to
        `read` as a second argument; None if `read` itself reads.
      at_once: how many records a reader may have open; see `records_at_once`.
      in_windows: whether the records of a window are read together and passed to `read` in the
        dict, as "stored"; see `read_windows`.
      autograph: whether to apply AutoGraph to the functions, for users' code.
    """

    read: Callable[..., Any]
    read_again: Callable[[Any], Any]
    size: int
    readers: int
    record_tables: Sequence[Any] | None = None
    at_once: int = 1
    in_windows: bool = False
    autograph: bool = False

    def examples(self, numbers: Any) -> Any:
        """Returns examples in the order of their numbers.

        Args:
          numbers: a `tf.data.Dataset` of dicts of tensors [n], any n, "index" among them.

        Returns:
          A `tf.data.Dataset` of examples, up to `size` in each element.
        """

        def chunk(part: Any) -> Any:
            each = tf.data.Dataset.from_tensor_slices(part)
            count = tf.shape(tf.nest.flatten(part)[0], out_type=tf.int64)[0]
            # A chunk with an error lacks an example, so it is dropped as an incomplete batch.
            good = batched(self._read(part, each), count, drop_remainder=True).ignore_errors()
            return good.concatenate(batched(self.read_again(each), count)).take(1)

        if self.in_windows:
            numbers = read_windows(self.record_tables or [], numbers, self.readers)
        chunk = chunk if self.autograph else tf.autograph.experimental.do_not_convert(chunk)
        return same_thread.batched(interleaved(numbers.rebatch(self.size), chunk, self.readers))

    def _read(self, part: Any, each: Any) -> Any:
        if self.record_tables is None or self.in_windows:
            return self._mapped(each)
        # Outside of `read`, where each record would need its own iterator.
        stored = records.records_in_graph(
            self.record_tables, part["index"], self.size, self.at_once
        )
        return self._mapped(tf.data.Dataset.zip((each, stored)))

    def _mapped(self, numbers: Any) -> Any:
        # A user's function keeps to `map`, with AutoGraph and all that one may use there.
        return numbers.map(self.read) if self.autograph else same_thread.mapped(numbers, self.read)


def read_windows(tables: Sequence[Any], numbers: Any, readers: int) -> Any:
    """Reads the stored examples of each window, neighbours by a single request.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      numbers: a `tf.data.Dataset` of windows: dicts of tensors [n], "index" among them.
      readers: number of parallel requests.

    Returns:
      The windows with an additional entry "stored", string [n]: '' for all records of a run of
      neighbours in which one has an error.
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
    """Returns tensors of arrays, which may hold bytes.

    The arrays are not constants, but come from a function that runs when the iterator is
    initialized: a graph that contains CIFAR-10 would have 150 MB, also in each copy in a
    checkpoint.
    """
    tensors = []
    for array in arrays:
        kind = tf.string if array.dtype == object else array.dtype
        tensor = tf.numpy_function(lambda array=array: array, [], kind)
        tensor.set_shape(array.shape)
        tensors.append(tensor)
    return tensors

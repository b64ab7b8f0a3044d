"""`tf.contrib.data`: what `tf.data.experimental` does not have of it, as functions for `apply`."""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

_Transformation = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: Any) -> _Transformation:
    """`dataset.batch(batch_size, drop_remainder=True)`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> _Transformation:
    """`dataset.padded_batch` without the last batch where it is smaller.

    Args:
      batch_size: number of examples.
      padded_shapes: a structure of shapes, see `tf.data.Dataset.padded_batch`.
      padding_values: a structure of values; by default 0 or the empty text.
    """
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable[..., Any], cycle_length: int, block_length: int = 1
) -> _Transformation:
    """`parallel_interleave` whose order may differ from run to run.

    Args:
      map_func: from an example to a dataset.
      cycle_length: how many of these datasets are read at a time.
      block_length: how many examples are taken from one before the next.
    """
    return tf.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True
    )


def sliding_window_batch(
    window_size: int,
    stride: int | None = None,
    window_shift: int | None = None,
    window_stride: int = 1,
) -> _Transformation:
    """Batches of windows that overlap; a window that would be shorter is left out.

    Args:
      window_size: number of examples of a window.
      stride: how far windows are apart, as it was called first.
      window_shift: how far windows are apart; 1 by default.
      window_stride: how far the examples of a window are apart.

    Raises:
      ValueError: for both names of the same.
    """
    if stride is not None and window_shift is not None:
        raise ValueError(f"stride must be None with window_shift, got {stride}")
    shift = window_shift or stride or 1

    def batch(*parts: Any) -> Any:
        window = parts[0] if len(parts) == 1 else tf.data.Dataset.zip(parts)
        return window.batch(window_size, drop_remainder=True)

    def apply(dataset: Any) -> Any:
        return dataset.window(window_size, shift, window_stride, drop_remainder=True).flat_map(
            batch
        )

    return apply


def reduce_dataset(dataset: Any, reducer: Any) -> Any:
    """What a `tf.data.experimental.Reducer` makes of all examples.

    Args:
      dataset: the examples.
      reducer: with the functions for the first state, for a step and for the result.
    """
    grouped = dataset.apply(
        tf.data.experimental.group_by_reducer(lambda *_: tf.constant(0, tf.int64), reducer)
    )
    return tf.data.experimental.get_single_element(grouped)


def assert_element_shape(expected_shapes: Any) -> _Transformation:
    """Examples with the shapes that they are known to have; others are an error when they come.

    Args:
      expected_shapes: a structure of shapes like that of the examples.
    """

    def check(*parts: Any) -> Any:
        example = parts[0] if len(parts) == 1 else parts
        return tf.nest.map_structure(tf.ensure_shape, example, expected_shapes)

    return lambda dataset: dataset.map(check)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Any = tf.data.TFRecordDataset,
    **kwargs: Any,
) -> Any:
    """Batches of features read from files, the tensors of one dict.

    Args:
      file_pattern: files, or a pattern of their names.
      batch_size: number of examples.
      features: name -> how it is read, see `tf.io.parse_example`.
      reader: from names of files to a dataset of records.
      **kwargs: further ones of `tf.data.experimental.make_batched_features_dataset`.

    Returns:
      Name -> tensor of the next batch.
    """
    if "randomize_input" in kwargs:
        kwargs["shuffle"] = kwargs.pop("randomize_input")
    if "capacity" in kwargs:
        kwargs["shuffle_buffer_size"] = kwargs.pop("capacity")
    dataset = tf.data.experimental.make_batched_features_dataset(
        file_pattern, batch_size, features, reader=reader, **kwargs
    )
    return tf.data.make_one_shot_iterator(dataset).get_next()

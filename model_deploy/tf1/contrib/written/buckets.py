"""Batches of examples that are alike, as `tf.contrib.training` makes them by queues."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Batches, each of examples of one bucket.

    Queue runners fill it, see `tf.train.start_queue_runners`.

    Args:
      tensors: an example: a list or dict of tensors.
      which_bucket: its bucket, an int32 from 0 to `num_buckets` - 1.
      batch_size: of a batch, or a list with that of each bucket.
      num_buckets: how many there are, at least 2.
      num_threads: which put examples into buckets.
      capacity: number of batches that wait.
      bucket_capacities: number of examples that wait in each bucket; `capacity` by default.
      shapes: of the tensors, where they are not known.
      dynamic_pad: whether examples of other shapes get zeros up to that of the largest in a batch.
      allow_smaller_final_batch: whether at the end of the input what is in a bucket is a batch.
      keep_input: a bool tensor: whether this example is taken.
      shared_name: of the queues, for several sessions.
      name: of the ops.

    Returns:
      The bucket, an int32, and the batches in the structure of the tensors.

    Raises:
      ValueError: for fewer than two buckets, lists of another length, or unknown shapes.
    """
    if num_buckets < 2:
        raise ValueError(f"num_buckets must be at least 2, got {num_buckets}")
    sizes = _one_each("batch_size", batch_size, num_buckets)
    capacities = _one_each("bucket_capacities", bucket_capacities or capacity, num_buckets)
    with tf.name_scope(name, "bucket", tf.nest.flatten(tensors)):
        examples = [tf.convert_to_tensor(each) for each in tf.nest.flatten(tensors)]
        dtypes = [each.dtype for each in examples]
        given = [each.shape for each in examples] if shapes is None else list(shapes)
        known = [tf.TensorShape(each) for each in given]
        if not dynamic_pad and not all(each.is_fully_defined() for each in known):
            raise ValueError(f"shapes must be known without dynamic_pad, got {known}")
        queues = [
            tf.PaddingFIFOQueue(
                size,
                dtypes,
                known,
                shared_name=f"{shared_name}_{number}" if shared_name else None,
                name=f"bucket_queue_{number}",
            )
            for number, size in enumerate(capacities)
        ]
        batched = [tf.TensorShape([None]).concatenate(each) for each in known]
        if not allow_smaller_final_batch and len(set(sizes)) == 1:
            batched = [tf.TensorShape([sizes[0]]).concatenate(each) for each in known]
        top = tf.PaddingFIFOQueue(
            capacity,
            [tf.int32, *dtypes],
            [tf.TensorShape([]), *batched],
            shared_name=shared_name,
            name="top_queue",
        )
        _fill_buckets(queues, examples, which_bucket, keep_input, num_threads)
        _fill_top(top, queues, sizes, allow_smaller_final_batch)
        number, *outputs = top.dequeue(name="dequeue_top")
    for output, shape in zip(outputs, batched, strict=True):
        output.set_shape(shape)
    return number, tf.nest.pack_sequence_as(tensors, outputs)


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`bucket` by length: one bucket below the first boundary, one from each boundary on.

    Args:
      input_length: the length of the example, an integer.
      tensors: see `bucket`.
      batch_size: see there; a list has one size more than there are boundaries.
      bucket_boundaries: integers, increasing.
      num_threads: see `bucket`.
      capacity: see there.
      bucket_capacities: see there.
      shapes: see there.
      dynamic_pad: see there.
      allow_smaller_final_batch: see there.
      keep_input: see there.
      shared_name: see there.
      name: see there.

    Returns:
      The lengths of the batch, int32 [batch], and the batches.

    Raises:
      ValueError: for boundaries that do not increase, and as `bucket` does.
    """
    bounds = list(bucket_boundaries)
    if not bounds or bounds != sorted(set(bounds)):
        raise ValueError(f"bucket_boundaries must increase, got {bounds}")
    with tf.name_scope(name, "bucket_by_sequence_length", [input_length]):
        length = tf.cast(tf.convert_to_tensor(input_length), tf.int32)
        which = tf.reduce_sum(tf.cast(length >= tf.constant(bounds, tf.int32), tf.int32))
        with_length = {"length": length, "tensors": tensors}
        flat_shapes = None if shapes is None else [tf.TensorShape([]), *shapes]
        _, batch = bucket(
            with_length,
            which,
            batch_size,
            len(bounds) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            flat_shapes,
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
    return batch["length"], batch["tensors"]


def _one_each(field: str, given: Any, count: int) -> list[Any]:
    values = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(values) != count:
        raise ValueError(f"{field} must be {count}, one per bucket, got {given}")
    return values


def _fill_buckets(
    queues: Sequence[Any], examples: Sequence[Any], which: Any, keep_input: Any, num_threads: int
) -> None:
    """Each example into its bucket; at the end of the input all buckets are closed."""
    which = tf.cast(tf.convert_to_tensor(which), tf.int32)

    def put() -> Any:
        cases = [lambda queue=queue: _after(queue.enqueue(examples)) for queue in queues]
        ops = [
            tf.cond(tf.equal(which, number), case, lambda: tf.constant(0))
            for number, case in enumerate(cases)
        ]
        return tf.add_n(ops)

    kept = tf.cond(tf.convert_to_tensor(keep_input), put, lambda: tf.constant(0))
    closed = tf.group(*(queue.close() for queue in queues))
    cancelled = tf.group(*(queue.close(cancel_pending_enqueues=True) for queue in queues))
    runner = tf.train.QueueRunner(
        queues[0], [kept] * num_threads, close_op=closed, cancel_op=cancelled
    )
    tf.train.add_queue_runner(runner)


def _fill_top(top: Any, queues: Sequence[Any], sizes: Sequence[Any], smaller: bool) -> None:
    """Each bucket's batches into the queue of all; it is closed when no bucket has any."""
    ops = []
    for number, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        taken = queue.dequeue_up_to(size) if smaller else queue.dequeue_many(size)
        taken = taken if isinstance(taken, list) else [taken]
        ops.append(top.enqueue([tf.constant(number), *taken]))
    ended = tf.errors.OutOfRangeError, tf.errors.CancelledError
    runner = tf.train.QueueRunner(top, ops, queue_closed_exception_types=ended)
    tf.train.add_queue_runner(runner)


def _after(op: Any) -> Any:
    with tf.control_dependencies([op]):
        return tf.constant(0)

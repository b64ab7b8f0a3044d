"""Collective ops on single tensors: `allreduce`, `allgather`, `broadcast`, `alltoall`."""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives import (
    Collectives,
    carrier,
    exchange_gradients,
    fill_up,
    gather_rows,
    rows_to_send,
    sum_narrow,
    without_filling,
)
from model_deploy.gradients import scale_gradient
from model_deploy.horovod import world
from model_deploy.horovod.reductions import (
    Adasum,
    Average,
    Compression,
    Compressor,
    Reduction,
    Sum,
    adasum,
    check_compression,
    reduction_of,
)


def group(purpose: str, device: str = "") -> Collectives:
    """A sequence of collective ops between all processes.

    Args:
      purpose: sets it apart from others of the graph; the same in every process.
      device: where the ops are in each process, by default on the CPU.
    """
    job = world.joined().job
    own = tf.DeviceSpec.from_string(device or "/device:CPU:0")
    if job.size > 1:  # a session without a server then says that there is no such device
        own = own.replace(job="worker", task=job.rank)
    return Collectives([own.to_string()], job.rank, job.size, purpose, most_bytes=job.pack_bytes)


def allreduce(
    tensor: Any,
    average: Any = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Compressor = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Any = None,
) -> Any:
    """The mean, sum or Adasum of a tensor of all processes, for each of them.

    >>> import model_deploy.horovod as hvd
    >>> hvd.init()
    >>> print(tf.Session().run(hvd.allreduce(tf.constant([1.0, 3.0]))))
    [1. 3.]

    Args:
      tensor: of the same shape everywhere; or `IndexedSlices`, of any number of rows.
      average: in place of `op`: True for the mean, False for the sum.
      device_dense: where a `Tensor` is summed; by default on the CPU.
      device_sparse: where rows are gathered; by default on the CPU.
      compression: `Compression.none` or `.fp16`.
      op: `Average`, the default, `Sum`, or `Adasum`.
      prescale_factor: what values are multiplied with before.
      postscale_factor: what the result is multiplied with.
      name: sets the op apart from others, the same everywhere; by default that of the tensor.

    Returns:
      A tensor of that shape, or `IndexedSlices` with the rows of all; those of integers are
      divided without a remainder.  The gradient of a tensor of floats, but for Adasum, is what the
      same reduction makes of all processes' gradients of it.

    Raises:
      ValueError: before `init`, and as `reduction_of`, `adasum` and `carrier`.
    """
    how, wire_dtype = reduction_of(op, average), check_compression(compression).wire_dtype
    if isinstance(tensor, tf.IndexedSlices):
        name = _label(name, tensor.values, tensor.values.shape[1:])
        collectives = group(f"allreduce {name}", device_sparse)
        values = _gathered(collectives, tensor.values, f"{name} values", wire_dtype)
        indices = _gathered(collectives, tensor.indices, f"{name} indices")
        result = tf.IndexedSlices(values, indices, tensor.dense_shape)
        factor = prescale_factor * postscale_factor / (collectives.size if how is Average else 1)
        return scaled(result, factor)
    tensor = tf.convert_to_tensor(tensor)
    name = _label(name, tensor, tensor.shape)

    def reduce(own: Any, its_name: str) -> Any:
        collectives = group(f"allreduce {its_name}", device_dense)
        sent = tf.cast(scaled(own, prescale_factor), carrier(own.dtype, its_name))
        total = _reduced_dense(collectives, sent, its_name, how, wire_dtype)
        total.set_shape(tensor.shape)
        return scaled(tf.cast(total, own.dtype), postscale_factor)

    if how is Adasum:
        return reduce(tensor, name)
    return _differentiable(
        lambda own: (reduce(own, name), lambda g: reduce(g, f"gradient of {name}")), tensor
    )


def _reduced_dense(
    collectives: Collectives, sent: Any, name: str, how: Reduction, wire_dtype: tf.DType
) -> Any:
    if how is Adasum:
        return _adasum(collectives, sent, name)
    known = sent.shape.is_fully_defined()  # else it travels as it is
    flat, wire_dtype = tf.reshape(sent, [-1]), wire_dtype if known else tf.float32
    [total] = sum_narrow(collectives, [flat], name, 1.0, wire_dtype)
    total = tf.reshape(total, tf.shape(sent))
    if how is Sum:
        return total
    return total / collectives.size if total.dtype.is_floating else total // collectives.size


def scaled(tensor: Any, factor: float) -> Any:
    """A tensor of any shape, or `IndexedSlices`, times a number."""
    if factor == 1:
        return tensor
    return scale_gradient(tensor, tf.cast(factor, tensor.dtype))


def allgather(tensor: Any, name: Any = None) -> Any:
    """The rows of all processes one behind the other, in the order of ranks.

    Args:
      tensor: of the shape [rows, ...], of which rows may differ, and be none.
      name: sets the op apart from others, the same everywhere; by default that of the tensor.

    Returns:
      A tensor [sum of rows, ...].  The gradient of rows of floats is the sum of all processes'
      gradients of them.

    Raises:
      ValueError: before `init`, for a scalar, and as `carrier`.
    """
    tensor = _with_rows(tensor)
    name = _label(name, tensor, tensor.shape[1:])
    collectives, rank = group(f"allgather {name}"), world.rank()

    def with_gradient(own: Any) -> Any:
        gathered, counts = _gathered_with_counts(collectives, own, name, tf.float32)

        def gradient(of_all: Any) -> Any:
            total = allreduce(of_all, op=Sum, name=f"gradient of {name}")
            parts = tf.split(total, tf.reshape(counts, [-1]), num=collectives.size)
            return parts[rank]

        return gathered, gradient

    return _differentiable(with_gradient, tensor)


def _differentiable(with_gradient: Callable[[Any], tuple[Any, Any]], tensor: Any) -> Any:
    """The result for a tensor, with a gradient where it is one of floats."""
    if not tensor.dtype.is_floating:
        return with_gradient(tensor)[0]
    return tf.custom_gradient(with_gradient)(tensor)


def _gathered(
    collectives: Collectives, tensor: Any, name: str, wire_dtype: tf.DType = tf.float32
) -> Any:
    return _gathered_with_counts(collectives, tensor, name, wire_dtype)[0]


def _gathered_with_counts(
    collectives: Collectives, tensor: Any, name: str, wire_dtype: tf.DType
) -> tuple[Any, Any]:
    sent = tf.cast(tensor, carrier(tensor.dtype, name))
    [counts] = collectives.gather([tf.shape(sent)[:1]], f"rows of {name}")
    [gathered] = gather_rows(collectives, [sent], [counts], name, wire_dtype)
    return tf.cast(gathered, tensor.dtype), counts


def broadcast(tensor: Any, root_rank: int, name: Any = None) -> Any:
    """The tensor of one process, for all.

    Args:
      tensor: of the same static shape everywhere.
      root_rank: of the process whose tensor it is.
      name: sets the op apart from others, the same everywhere; by default that of the tensor.

    Returns:
      A tensor of that shape.  The gradient of a tensor of floats is, for that process, the sum of
      all processes' gradients, and 0 for the others.

    Raises:
      ValueError: before `init`, for a `root_rank` that is not there, for a shape that is not
        known, and as `carrier`.
    """
    tensor = tf.convert_to_tensor(tensor)
    name = _label(name, tensor, tensor.shape)
    check_root(root_rank)
    if not tensor.shape.is_fully_defined():
        raise ValueError(f"{name} must have a known shape to be broadcast, got {tensor.shape}")
    is_root = world.rank() == root_rank

    def with_gradient(own: Any) -> Any:
        sent = tf.cast(own, carrier(own.dtype, name))
        [received] = group(f"broadcast {root_rank}").broadcast([sent], name, root_rank)

        def gradient(of_all: Any) -> Any:
            total = allreduce(of_all, op=Sum, name=f"gradient of {name} of {root_rank}")
            # All take part, also in the gradient of the gradient, and one gets it.
            return total if is_root else total * 0.0

        return tf.cast(received, own.dtype), gradient

    return _differentiable(with_gradient, tensor)


def alltoall(tensor: Any, splits: Any = None, name: Any = None) -> Any:
    """Hands the r-th part of the rows to the process of rank r, and gets its parts from all.

    Args:
      tensor: of the shape [rows, ...].
      splits: integers [`size`], the rows for each rank; by default all get as many.
      name: sets the op apart from others, the same everywhere; by default that of the tensor.

    Returns:
      A tensor [received rows, ...]; with `splits` a pair of this and how many came from each
      rank, int32 [`size`].  The gradient of a row of floats is that of the row which was received.

    Raises:
      ValueError: before `init`, for a scalar, and as `carrier`.
    """
    tensor = _with_rows(tensor)
    name = _label(name, tensor, tensor.shape[1:])
    job = world.joined().job
    if splits is None:
        rows = tf.shape(tensor)[0]
        whole = tf.debugging.assert_equal(
            rows % job.size, 0, message=f"rows of {name} must be a multiple of {job.size}"
        )
        with tf.control_dependencies([whole]):
            counts = tf.fill([job.size], rows // job.size)
    else:
        counts = tf.reshape(tf.cast(splits, tf.int32), [job.size])
    collectives = group(f"alltoall {name}")
    # All know the rows of all: what I get from rank r, and the most rows of any part.  And the
    # exchange alone would not do: for TensorFlow a step needs a collective op of the older kind.
    [table] = collectives.gather([counts], f"rows of {name}")
    received = tf.reshape(table, [job.size, job.size])[:, job.rank]
    longest = rows_to_send(table)

    def with_gradient(own: Any) -> Any:
        sent = tf.cast(own, carrier(own.dtype, name))
        parts = [fill_up(part, longest) for part in tf.split(sent, counts, num=job.size)]
        [got] = collectives.exchange([tf.stack(parts)], name, [longest])
        rows_of_all = tf.reshape(got, tf.concat([[-1], tf.shape(sent)[1:]], axis=0))
        result = tf.cast(without_filling(rows_of_all, received, longest), own.dtype)
        return result, lambda g: alltoall(g, received, f"gradient of {name}")[0]

    result = _differentiable(with_gradient, tensor)
    return result if splits is None else (result, received)


def check_root(root_rank: int) -> None:
    """Raises ValueError if there is no process of this rank."""
    size = world.size()
    if not 0 <= root_rank < size:
        raise ValueError(f"root_rank must be at least 0 and less than {size}, got {root_rank}")


def _label(name: Any, tensor: Any, shape: Any) -> str:
    """What sets a tensor apart; servers remember type and shape by it, which all have alike."""
    return f"{name or tensor.op.name}: {tensor.dtype.name} {shape}"


def _with_rows(tensor: Any) -> Any:
    tensor = tf.convert_to_tensor(tensor)
    if tensor.shape.rank in (None, 0):
        raise ValueError(f"{tensor.op.name} must have rows, got the shape {tensor.shape}")
    return tensor


def reduced(
    collectives: Collectives, pairs: Any, how: Reduction, compression: Compressor
) -> list[tuple[Any, Any]]:
    """Gradients of all processes, reduced.

    Args:
      collectives: the ops of this step.
      pairs: `(gradient, variable)` pairs: of a `Tensor` of any shape or `IndexedSlices`, and what
        gives name, shape and type.
      how: the reduction.
      compression: how they travel.

    Returns:
      The pairs, with the results.
    """
    if collectives.size == 1:
        return list(pairs)
    if how is Adasum:
        return [
            (_adasum(collectives, tf.convert_to_tensor(gradient), like.name), like)
            for gradient, like in pairs
        ]
    scale = 1 / collectives.size if how is Average else 1.0
    [results], _ = exchange_gradients(collectives, [pairs], None, scale, compression.wire_dtype)
    return results


def _adasum(collectives: Collectives, tensor: Any, name: str) -> Any:
    """All get all tensors: as many bytes as a gather, and the same sum everywhere."""
    [gathered] = collectives.gather([tensor[tf.newaxis]], f"adasum {name}")
    return adasum(tf.unstack(gathered, num=collectives.size))

"""Many tensors in one message between a worker and a parameter server, and rows with gradients.

TensorFlow sends each tensor by itself.  Sent together here are ids, to the server, and rows, to the
worker; gradients of rows stay on the worker until they are sent together, too.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals

# Gradients of a `ConcatV2` and of a `ResourceGather` on a server, taken on a worker.
_OF_MESSAGE, _OF_ROWS = "ModelDeployMessage", "ModelDeployRows"


def send_ids(ids: Sequence[Any], source: str, destination: str) -> list[Any]:
    """Sends integers of one dtype, vectors, in one message; returns them on `destination`."""
    if len(ids) < 2:
        return list(ids)
    dtype = ids[0].dtype
    with tf.device(source):
        sizes = tf.stack([tf.size(each, out_type=dtype) for each in ids])
        message = tf.concat([sizes, *ids], 0)
    with tf.device(destination):
        message = tf.identity(message)
        return list(tf.split(message[len(ids) :], message[: len(ids)], num=len(ids)))


def send_rows(rows: Sequence[Any], server: str, worker: str) -> list[Any]:
    """Sends tensors [rows, ...] that differ in rows in one message; returns them on `worker`.

    Their gradients stay on the worker.
    """
    if len(rows) < 2:
        return list(rows)
    with tf.device(server), tf.get_default_graph().gradient_override_map({"ConcatV2": _OF_MESSAGE}):
        message = tf.concat(rows, 0)
        sizes = tf.stack([tf.shape(each)[0] for each in rows])
    with tf.device(worker):
        return list(tf.split(message, tf.identity(sizes), num=len(rows)))


def keep_indices(gather: Any) -> None:
    """Makes the gradient of a `ResourceGather` leave its indices, a vector, on the server.

    TensorFlow's own gradient takes them to the worker, for their number, and back.
    """
    internals.set_attribute(gather, "_gradient_op_type", tf.AttrValue(s=_OF_ROWS.encode()))


@tf.RegisterGradient(_OF_MESSAGE)
def _gradient_of_message(op: Any, gradient: Any) -> list[Any]:
    """Splits the gradient as the worker has split the message.

    TensorFlow's own gradient of `ConcatV2` would need all rows again on the worker, for their
    shapes.
    """
    [split] = [each for each in op.outputs[0].consumers() if each.type == "SplitV"]
    return [*tf.split(gradient, split.inputs[1], num=len(split.outputs)), None]


@tf.RegisterGradient(_OF_ROWS)
def _gradient_of_rows(op: Any, gradient: Any) -> list[Any]:
    """Returns the gradient as rows of the variable."""
    shape = tf.TensorShape(op.inputs[0].op.get_attr("shape"))
    rows = tf.reshape(gradient, [-1, *shape[1:]])
    return [tf.IndexedSlices(rows, op.inputs[1], tf.constant(shape.as_list(), tf.int64)), None]

"""Lists of varying length in batches: `RaggedTensor`s and `SparseTensor`s, as dense parts and back.

Iterators give the dense tensors of which a composite one is made, so that what is staged on a
device, timed or copied for a clone is plain tensors.
"""

import re
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

Specs = Mapping[str, Any]


def in_parts(batches: Any) -> Any:
    """Takes composite tensors apart.

    Args:
      batches: a `tf.data.Dataset` of dicts of tensors, `RaggedTensor`s and `SparseTensor`s
        [batch, ...].

    Returns:
      A `tf.data.Dataset` of dicts with a tuple of dense tensors, of any shapes, for each composite
      one; `batches` itself if there is none.
    """
    specs = batches.element_spec
    if not any(map(_is_composite, specs.values())):
        return batches

    @tf.autograph.experimental.do_not_convert
    def parts(batch: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: tuple(tf.nest.flatten(value, expand_composites=True))
            if _is_composite(specs[key])
            else value
            for key, value in batch.items()
        }

    return batches.map(parts)


def whole(element: Mapping[str, Any], specs: Specs) -> dict[str, Any]:
    """Puts the parts of `in_parts` together again, behind new ops named after the keys.

    Args:
      element: a batch of the `tf.data.Dataset` that `in_parts` returned: tensors of any shapes.
      specs: `element_spec` of the batches that it was given.

    Returns:
      A dict of tensors, `RaggedTensor`s and `SparseTensor`s [batch, ...].
    """
    result = {}
    for key, value in element.items():
        parts = [tf.identity(part, name=_op_name(key)) for part in tf.nest.flatten(value)]
        result[key] = tf.nest.pack_sequence_as(specs[key], parts, expand_composites=True)
    return result


def _op_name(key: str) -> str:
    """A name that TensorFlow takes for an op: a column may have any, such as `unit price (€)`."""
    name = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", key)
    return name if re.match("[A-Za-z0-9.]", name) else f"column_{name}"


def batched(examples: Any, count: Any, *, drop_remainder: bool = False) -> Any:
    """Returns a `tf.data.Dataset` of batches of examples; lists, [None], become ragged.

    Args:
      examples: a `tf.data.Dataset` of dicts of tensors of any shapes.
      count: int64 [], examples per batch.
      drop_remainder: whether to leave out a last batch with fewer.
    """
    if any(map(_is_list, tf.nest.flatten(examples.element_spec))):
        return examples.ragged_batch(count, drop_remainder)
    return examples.batch(count, drop_remainder)


def _is_list(spec: Any) -> bool:
    return (
        isinstance(spec, tf.TensorSpec)
        and spec.shape.rank == 1
        and not spec.shape.is_fully_defined()
    )


def _is_composite(spec: Any) -> bool:
    return isinstance(spec, tf.RaggedTensorSpec | tf.SparseTensorSpec)

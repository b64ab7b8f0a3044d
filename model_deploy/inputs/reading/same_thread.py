"""Makes the examples of a chunk in the thread that reads it: handing over costs more than it gains.

Chunks are read in parallel, one by each reader, so a chunk needs no threads besides its own.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def mapped(elements: Any, function: Callable[..., Any]) -> Any:
    """Returns a `tf.data.Dataset` of what a function makes of elements, one by one.

    `tf.data.Dataset.map` hands each element over to a pool of threads and waits for it: about 6
    microseconds, a tenth of the time that a small image takes.  Its op can run the function itself,
    which its method in Python does not offer; but not one that calls others, as `tf.cond` does.

    Args:
      elements: a `tf.data.Dataset` of tensors.
      function: as for `map`, but without AutoGraph; what it returns has tensors only.
    """
    spec = elements.element_spec
    arguments = spec if isinstance(spec, tuple) else (spec,)
    traced = tf.function(function, autograph=False).get_concrete_function(*arguments)
    results = tf.nest.map_structure(tf.type_spec_from_value, traced.structured_outputs)
    flat = tf.nest.flatten(results)
    variant = tf.raw_ops.MapDataset(
        input_dataset=tf.data.experimental.to_variant(elements),
        other_arguments=traced.captured_inputs,
        f=traced,
        output_types=[each.dtype for each in flat],
        output_shapes=[each.shape for each in flat],
        use_inter_op_parallelism=any(map(_calls, traced.graph.get_operations())),
    )
    return tf.data.experimental.from_variant(variant, results)


def _calls(op: Any) -> bool:
    """Whether an op calls functions."""
    return any(each.HasField("func") or each.list.func for each in op.node_def.attr.values())


def batched(examples: Any) -> Any:
    """Lets the thread that reads a chunk make its batch, too, and by itself.

    TensorFlow else makes one op of a chunk's `map` and `batch`, which hands every example over to
    another thread: about a fifth fewer small images per second; and ops divide their work among
    threads that other chunks keep busy: some 4% fewer photographs.  To tune numbers of threads it
    notes each iterator, of which a record has one: a tenth fewer small images.

    Args:
      examples: a `tf.data.Dataset` of the examples of all chunks.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.map_and_batch_fusion = False
    options.threading.max_intra_op_parallelism = 1
    return examples.with_options(options)

"""What TensorFlow's model of a `tf.data` pipeline knows; seen in TensorFlow 2.16 to 2.21."""

from typing import NamedTuple

from tensorflow.core.framework import model_pb2

_ASYNCHRONOUS = (
    model_pb2.ASYNC_INTERLEAVE_MANY,
    model_pb2.ASYNC_KNOWN_RATIO,
    model_pb2.ASYNC_UNKNOWN_RATIO,
)


class PipelineNode(NamedTuple):
    """One stage of a `tf.data` pipeline.

    Attributes:
      busy_secs: seconds of work since the start, over all of its threads.
      parallelism: how many threads it has: at least 1.
      has_thread: whether it works beside the stage that takes from it.
      inputs: names of the stages that it takes from.
    """

    busy_secs: float
    parallelism: float
    has_thread: bool
    inputs: tuple[int, ...]


def pipeline_nodes(model: bytes) -> dict[int, PipelineNode]:
    """Returns the stages of a pipeline, by name, each after those that it takes from.

    Parses `tensorflow.data.model.ModelProto`.

    Args:
      model: what `tf.raw_ops.IteratorGetModelProto` returned.
    """
    parsed = model_pb2.ModelProto.FromString(model)
    found = {}
    for name in sorted(parsed.nodes, reverse=True):  # a stage is made before its inputs
        node = parsed.nodes[name]
        parallel = [each.value for each in node.parameters if each.name == "parallelism"]
        found[name] = PipelineNode(
            node.processing_time * 1e-9,
            max(1.0, *parallel, 1.0),
            node.node_class in _ASYNCHRONOUS,
            tuple(node.inputs),
        )
    return found

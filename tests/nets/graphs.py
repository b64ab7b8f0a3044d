"""Builds a network in a graph of its own, runs it on the reference weights and input, and keeps
what the tests compare: names, shapes and numbers, not the graph."""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import nets_factory
from nets.nasnet.cell_config import CellNetworkConfig
from nets.parts.network import Tokens
from tests.nets import reference

LABELS = [1, 7]
# The kernel of an auxiliary head that is as large as the feature map.
WHOLE_MAP = re.compile(r"aux_\d+/aux_logits/Conv/weights")
# Keywords of networks with few channels, and few cells.
_NARROW = {
    "config": CellNetworkConfig(3, num_conv_filters=8, total_training_steps=100),
    "depth_multiplier": 0.25,
}
_STANDARD_COLLECTIONS = {
    value for key, value in vars(tf.GraphKeys).items() if key.isupper() and isinstance(value, str)
}


def build(  # noqa: PLR0917 - the arguments of get_network_fn and of the network
    name: str,
    images: Any,
    num_classes: int | None = 10,
    is_training: bool = False,
    weight_decay: float = 0.0,
    scope_keywords: dict[str, Any] | None = None,
    **keywords: Any,
) -> tuple[Any, dict[str, Any]]:
    """Builds a network in the current graph; `scope_keywords` go to its arg scope function."""
    if scope_keywords is None:
        network_fn = nets_factory.get_network_fn(name, num_classes, weight_decay, is_training)
        return network_fn(images, **keywords)
    function, arg_scope = nets_factory.get_network(name)
    with slim.arg_scope(arg_scope(weight_decay=weight_decay, **scope_keywords)):
        return function(images, num_classes=num_classes, is_training=is_training, **keywords)


def narrow(name: str) -> dict[str, Any]:
    """Returns the keywords of `build` that a network has for few channels: the same layers."""
    keywords = inspect.signature(nets_factory.get_network(name).function).parameters
    return {key: value for key, value in _NARROW.items() if key in keywords}


def without_drops(name: str) -> dict[str, Any]:
    """Returns the keywords of `build` that turn off everything random in training."""
    how = reference.load(name)["training_loss_and_update"]["how_random_drops_were_disabled"]
    if how.startswith("dropout_keep_prob=1.0 keyword"):
        return {"dropout_keep_prob": 1.0}
    if how.startswith("dropout_keep_prob=1.0 given to the arg scope"):
        return {"scope_keywords": {"dropout_keep_prob": 1.0}}
    if how.startswith("config"):
        family, variant = name.split("_")
        variant = variant if variant == "cifar" else f"{variant}_imagenet"
        config = getattr(importlib.import_module(f"nets.nasnet.{family}"), f"{variant}_config")()
        config.set_hparam("dense_dropout_keep_prob", 1.0)
        config.set_hparam("drop_path_keep_prob", 1.0)
        return {"config": config}
    return {}


def session(graph: tf.Graph) -> tf.Session:
    """Returns a session that runs the graph as it is: rewriting it takes longer than one run.

    Two threads, whatever the machine has: one way less in which sums are added up otherwise.
    """
    options = tf.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    options.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    return tf.Session(graph=graph, config=options)


def load_weights(
    sess: tf.Session, weights: Callable[[str, list[int]], np.ndarray] = reference.weights
) -> None:
    """Gives every float variable of the current graph its reference value.

    Args:
      sess: gets the values, about a hundred megabytes at a time.
      weights: gives the value of the variable of this name and shape, if not the reference's.
    """
    variables = [v for v in tf.global_variables() if v.dtype.base_dtype == tf.float32]
    sess.run([v.initializer for v in tf.global_variables() if v.dtype.base_dtype != tf.float32])
    ends = np.cumsum([v.shape.num_elements() for v in variables]) // 25_000_000
    for part in np.unique(ends):
        loaded = [v for v, end in zip(variables, ends, strict=True) if end == part]
        values = {v.initializer.inputs[1]: weights(v.op.name, v.shape.as_list()) for v in loaded}
        sess.run([v.initializer for v in loaded], values)


def initialize_alike(sess: tf.Session) -> None:
    """Initializes the current graph, its trainable variables with normal numbers of 0.05.

    They are NumPy's: TensorFlow draws others from a seed on each kind of device.  Scales of batch
    norms are about 1: of deep networks small ones would leave nothing of the images.
    """
    random = np.random.RandomState(0)
    sess.run(tf.global_variables_initializer())
    for variable in tf.trainable_variables():
        mean = 1.0 if variable.op.name.endswith("/gamma") else 0.0
        values = random.normal(mean, 0.05, variable.shape.as_list())
        variable.load(values.astype(np.float32), sess)


def static_shapes(end_points: dict[str, Any]) -> list[list[Any]]:
    """Returns `[key, shape]` of the end points, in order."""
    return [[key, value.shape.as_list()] for key, value in end_points.items()]


def op_names(result: Any, end_points: dict[str, Any], scope: str = "") -> dict[str, Any]:
    """Returns the names, within a scope, of the ops of the result and each end point, in order."""
    names = [[key, value.op.name.removeprefix(scope)] for key, value in end_points.items()]
    return {"result": result.op.name.removeprefix(scope), "end_points": names}


def statistics(value: np.ndarray) -> tuple[float, float, list[float]]:
    """Returns mean, standard deviation (population) and the first five values."""
    flat = value.astype(np.float64).ravel()
    return float(flat.mean()), float(flat.std()), flat[:5].tolist()


@dataclasses.dataclass(frozen=True)
class Structure:
    """What a built graph holds, by name."""

    variables: list[list[Any]]
    regularization_losses: int
    update_ops: int
    other_collections: dict[str, int]
    end_points: list[list[Any]]
    normalizations: dict[str, Any]


def structure(end_points: dict[str, Any]) -> Structure:
    """Returns the structure of the current graph."""
    graph = tf.get_default_graph()
    trainable = {v.name for v in tf.trainable_variables()}
    model = {v.name for v in tf.model_variables()}
    return Structure(
        variables=[
            [v.op.name, v.shape.as_list(), v.name in trainable, v.name in model]
            for v in tf.global_variables()
        ],
        regularization_losses=len(tf.losses.get_regularization_losses()),
        update_ops=len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)),
        other_collections={
            key: len(graph.get_collection(key))
            for key in graph.get_all_collection_keys()
            if isinstance(key, str) and key not in _STANDARD_COLLECTIONS
        },
        end_points=static_shapes(end_points),
        normalizations=normalizations(graph),
    )


def normalizations(graph: tf.Graph, scope: str = "") -> dict[str, Any]:
    """Counts a scope's batch normalizations, fused or made of single operations."""
    ops = [op for op in graph.get_operations() if op.name.startswith(scope)]
    fused = [op for op in ops if op.type.startswith("FusedBatchNorm")]
    fused = [op for op in fused if not op.type.endswith(("Grad", "GradV2", "GradV3"))]
    # TensorFlow numbers the scope where it is opened twice.
    single = [op for op in ops if re.search(r"batchnorm(_\d+)?/add$", op.name)]
    epsilons = {round(float(op.get_attr("epsilon")), 9) for op in fused}
    epsilons |= {round(float(tf.get_static_value(op.inputs[1])), 9) for op in single}
    return {"fused": len(fused), "non_fused": len(single), "epsilon": sorted(epsilons)}


def sample(name: str, smallest: int = 0, wider: int = 0, **keywords: Any) -> Any:
    """Returns a constant batch of two that a network takes: its usual size, or small.

    Small is the least size for the keywords, but no less than `smallest` pixels: with 64, a
    normalization over the batch has something to normalize. Images are `wider` than high.
    """
    function = nets_factory.get_network(name).function
    inputs = function.inputs
    if isinstance(inputs, Tokens):
        return tf.constant([[1, 2, 3, 1, 0], [4, 4, 2, 0, 0]], tf.int64)
    side = inputs.size
    if smallest:
        parameters = inspect.signature(function).parameters.values()
        defaults = {parameter.name: parameter.default for parameter in parameters}
        side = min(side, max(inputs.smallest_for({**defaults, **keywords}), smallest))
    frames = [8] if inputs.rank == 5 else []
    channels = 3 if 3 in inputs.channels else 1
    return tf.constant(reference.images([2, *frames, side, side + wider, channels]))

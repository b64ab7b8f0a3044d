"""What NASNet-A and PNASNet-5 share: cells in a row, the stem before and the heads after them.

After B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable Architectures for Scalable
Image Recognition" (2018), https://arxiv.org/abs/1707.07012, figure 2.
"""

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet.cell_config import CellNetworkConfig
from nets.nasnet.cell_plan import Architecture, Step, plan
from nets.nasnet.nasnet_utils import (
    DATA_FORMAT_NCHW,
    drop_path,
    factorized_reduction,
    get_channel_dim,
    get_channel_index,
    global_avg_pool,
    size_of,
)
from nets.parts.network import Images, check_choice

# The auxiliary head pools over 5x5 of a map that a reduction (and two cells of the stem, and its
# convolution without padding) has halved; below these sizes the map is smaller than that.
_SMALLEST_WITH_AUXILIARY_HEAD = {"cifar": 9, "imagenet": 67}
_SMALLEST = {"cifar": 1, "imagenet": 3}
_WITH_A_LAYOUT = [
    *(slim.avg_pool2d, slim.max_pool2d, slim.conv2d, slim.separable_conv2d, slim.batch_norm),
    *(factorized_reduction, global_avg_pool, get_channel_index, get_channel_dim),
]


def images_for(
    size: int, config: Callable[[], CellNetworkConfig], architecture: Architecture
) -> Images:
    """Returns what images a network takes: the least size depends on the arguments of the call.

    Args:
      size: usual height and width.
      config: makes the settings of calls without any.
      architecture: the cells and the stem.
    """

    def smallest(arguments: Mapping[str, Any]) -> int:
        steps = plan(arguments["config"] or config(), architecture)
        names = [step.end_point or "" for step in steps]
        final_endpoint = arguments.get("final_endpoint")
        before_final = steps[: names.index(final_endpoint)] if final_endpoint in names else steps
        has_head = any(step.auxiliary_scope for step in before_final)
        if has_head and arguments["is_training"] and arguments["num_classes"]:
            return _SMALLEST_WITH_AUXILIARY_HEAD[architecture.stem]
        return _SMALLEST[architecture.stem]

    return Images(size, smallest, other_channels=True)


def build_network(
    images: Any,
    num_classes: int | None,
    is_training: bool,
    config: CellNetworkConfig,
    architecture: Architecture,
    final_endpoint: str | None = None,
    current_step: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds a network of cells.

    Args:
      images: `[batch, height, width, channels]` float32, of known height and width.
      num_classes: width of the logits; 0 or None stops after the average over the map.
      is_training: whether dropout and drop path are active, batch normalization uses the batch,
        and the auxiliary head is built.
      config: number of cells, widths, drops.
      architecture: the cells and the stem.
      final_endpoint: the last end point to build; None builds all.
      current_step: scalar for the schedule of drop path; None takes the global step, which is
        created if there is none.

    Returns:
      Logits `[batch, num_classes]`, features `[batch, channels]`, or `final_endpoint`; and the
      end points: `Stem`, `Cell_<i>` and `Reduction_Cell_<i>` in order, `AuxLogits` in training,
      `global_pool`, and with classes `Logits` and `Predictions`.

    Raises:
      ValueError: if there is no such `final_endpoint`, or height or width are unknown.
    """
    steps = plan(config, architecture)
    if final_endpoint is not None:
        heads = ["global_pool", "Logits", "Predictions"] if num_classes else ["global_pool"]
        cells = [step.end_point for step in steps if step.end_point not in (None, "Stem")]
        check_choice("final_endpoint", final_endpoint, ["Stem", *cells, *heads])
    if not images.shape[1:3].is_fully_defined():
        shape = tuple(images.shape.as_list())
        raise ValueError(f"images must have a known height and width, got shape {shape}")
    network = _end_points(
        images, num_classes, is_training, config, architecture.stem, steps, current_step
    )
    end_points: dict[str, Any] = {}
    with (
        slim.arg_scope([slim.dropout, drop_path, slim.batch_norm], is_training=is_training),
        slim.arg_scope(_WITH_A_LAYOUT, data_format=config.data_format),
        contextlib.closing(network),  # leaves the scopes that an early end is in
    ):
        for name, value in network:
            end_points[name] = value
            if name == final_endpoint:
                return value, end_points
    return end_points["Logits" if num_classes else "global_pool"], end_points


def _end_points(
    images: Any,
    num_classes: int | None,
    is_training: bool,
    config: CellNetworkConfig,
    stem: str,
    steps: list[Step],
    current_step: Any,
) -> Generator[tuple[str, Any], None, None]:
    """Builds and yields one end point after the other."""
    activation_fn = tf.nn.relu6 if config.use_bounded_activation else tf.nn.relu
    keep_prob = config.drop_path_keep_prob if is_training else 1.0
    if config.data_format == DATA_FORMAT_NCHW:
        images = tf.transpose(images, [0, 3, 1, 2])
    net = _stem_convolution(images, config, stem)
    if stem == "cifar":
        yield "Stem", net
    outputs = [None, net]
    for number, step in enumerate(steps):
        steps_of_drops = config.total_training_steps
        bounded = config.use_bounded_activation
        cell = step.cell(step.filters, keep_prob, len(steps), steps_of_drops, bounded)
        net = cell(
            net,
            scope=step.scope,
            stride=step.stride,
            prev_layer=outputs[step.previous],
            cell_num=number,
            current_step=current_step,
        )
        outputs.append(net)
        if step.end_point:
            yield step.end_point, net
        if step.auxiliary_scope and is_training and num_classes:
            head = _auxiliary_head(net, num_classes, step.auxiliary_scope, activation_fn)
            yield "AuxLogits", head
    with tf.variable_scope("final_layer"):
        net = global_avg_pool(activation_fn(net))
        yield "global_pool", net
        if num_classes:
            net = slim.dropout(net, config.dense_dropout_keep_prob, scope="dropout")
            logits = slim.fully_connected(net, num_classes, scope="FC")
            yield "Logits", logits
            yield "Predictions", tf.nn.softmax(logits, name="predictions")


def _stem_convolution(images: Any, config: CellNetworkConfig, stem: str) -> Any:
    """Returns the first, normalized 3x3 convolution."""
    if stem == "cifar":
        filters = int(config.num_conv_filters * config.stem_multiplier)
        net = slim.conv2d(images, filters, [3, 3], scope="l1_stem_3x3")
        return slim.batch_norm(net, scope="l1_stem_bn")
    filters = int(32 * config.stem_multiplier)
    net = slim.conv2d(images, filters, [3, 3], stride=2, padding="VALID", scope="conv0")
    return slim.batch_norm(net, scope="conv0_bn")


def _auxiliary_head(
    net: Any, num_classes: int, scope: str, activation_fn: Callable[..., Any]
) -> Any:
    """Returns logits `[batch, num_classes]` from a feature map."""
    with tf.variable_scope(scope), tf.variable_scope("aux_logits"):
        net = slim.avg_pool2d(activation_fn(net), [5, 5], stride=3, padding="VALID", scope="pool")
        net = slim.conv2d(net, 128, [1, 1], scope="proj")
        net = activation_fn(slim.batch_norm(net, scope="aux_bn0"))
        net = slim.conv2d(net, 768, size_of(net), padding="VALID", scope="Conv")
        net = activation_fn(slim.batch_norm(net, scope="aux_bn1"))
        return slim.fully_connected(slim.flatten(net), num_classes, scope="FC")


def cells_arg_scope(weight_decay: float, batch_norm_decay: float, batch_norm_epsilon: float) -> Any:
    """Returns the arg scope of a network of cells: activation and normalization stand apart.

    Args:
      weight_decay: factor of the L2 losses on the weights of all layers.
      batch_norm_decay: of the moving mean and variance.
      batch_norm_epsilon: added to the variance.
    """
    convolutions = [slim.conv2d, slim.separable_conv2d]
    with (
        slim.arg_scope(
            [slim.fully_connected, *convolutions],
            weights_regularizer=slim.l2_regularizer(weight_decay),
            weights_initializer=slim.variance_scaling_initializer(mode="FAN_OUT"),
            activation_fn=None,
        ),
        slim.arg_scope(convolutions, biases_initializer=None),
        slim.arg_scope(
            [slim.batch_norm],
            decay=batch_norm_decay,
            epsilon=batch_norm_epsilon,
            scale=True,
            fused=True,
        ) as scope,
    ):
        return scope

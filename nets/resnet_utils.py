"""What both versions of ResNet share: the root, the stack of residual units and the head.

K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition",
https://arxiv.org/abs/1512.03385. tf-slim's padding and subsampling are used as they are. The stride
sits in the last unit of a block.
"""

import contextlib
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from tf_slim.nets import resnet_utils as slim_resnet_utils

from model_deploy import slim
from nets.parts.network import check_choice
from nets.parts.squeeze import squeeze_pixel

Block = slim_resnet_utils.Block
conv2d_same = slim_resnet_utils.conv2d_same
subsample = slim_resnet_utils.subsample

_ROOT_STRIDE = 4


class NoOpScope(contextlib.nullcontext[None]):
    """A context that changes nothing, in the place of an arg scope that is not wanted."""


class Version(NamedTuple):
    """What is different between the versions.

    Attributes:
      name: scope of a network that is given none; TensorFlow numbers the second one.
      unit: the residual unit: `bottleneck` of the version's module.
      normalizes_first: whether units normalize their input instead of their output. The root is
        not normalized then, and the last output is.
    """

    name: str
    unit: Callable[..., Any]
    normalizes_first: bool


class Options(NamedTuple):
    """The arguments of the same names of `resnet_v1.resnet_v1`."""

    num_classes: int | None
    is_training: bool | None
    global_pool: bool
    output_stride: int | None
    spatial_squeeze: bool
    store_non_strided_activations: bool = False
    include_root_block: bool = True


def block(version: Version, scope: str, base_depth: int, num_units: int, stride: int) -> Any:
    """Returns a block of units of `4 * base_depth` channels, with the stride in the last unit."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return Block(scope, version.unit, [unit] * (num_units - 1) + [{**unit, "stride": stride}])


def four_blocks(
    version: Version,
    depths: Sequence[int],
    base_depths: Sequence[int] = (64, 128, 256, 512),
) -> list[Any]:
    """Returns the blocks of the networks of table 1, of `depths` units each."""
    strides = (2, 2, 2, 1)
    return [
        block(version, f"block{number}", base_depth, num_units, stride)
        for number, (base_depth, num_units, stride) in enumerate(
            zip(base_depths, depths, strides, strict=True), start=1
        )
    ]


def build(
    inputs: Any, blocks: Sequence[Any], version: Version, options: Options, scope: Any, reuse: Any
) -> tuple[Any, dict[str, Any]]:
    """Builds a ResNet; see `resnet_v1.resnet_v1`.

    Adds the output of every convolution, unit and block to the collection `<scope>/_end_points`.
    """
    root = _ROOT_STRIDE if options.include_root_block else 1
    _check_output_stride(blocks, options.output_stride, root)
    training = options.is_training
    with tf.variable_scope(scope, version.name, [inputs], reuse=reuse) as opened:
        collection = opened.original_name_scope + "_end_points"
        collecting = [slim.conv2d, version.unit, stack_blocks_dense]
        with (
            slim.arg_scope(collecting, outputs_collections=collection),
            NoOpScope()
            if training is None
            else slim.arg_scope([slim.batch_norm], is_training=training),
        ):
            net = _root(inputs, version) if options.include_root_block else inputs
            stride = options.output_stride and options.output_stride // root
            net = stack_blocks_dense(net, blocks, stride, options.store_non_strided_activations)
            if version.normalizes_first:
                net = slim.batch_norm(net, activation_fn=tf.nn.relu, scope="postnorm")
            end_points = slim.utils.convert_collection_to_dict(collection)
            if options.global_pool:
                net = tf.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
                end_points["global_pool"] = net
            if options.num_classes:
                net = _classify(net, options, end_points, opened.name)
            return net, end_points


@slim.add_arg_scope
def stack_blocks_dense(
    net: Any,
    blocks: Sequence[Any],
    output_stride: int | None = None,
    store_non_strided_activations: bool = False,
    outputs_collections: str | None = None,
) -> Any:
    """Builds blocks of residual units, in which the output is no coarser than `output_stride`.

    Past that stride, units are not strided any more but dilated, so that they compute the same
    features at more positions (section 3.1 of https://arxiv.org/abs/1606.00915).

    Args:
      net: `[batch, height, width, channels]` float32.
      blocks: `Block`s, each with the keyword arguments of its units. A unit is called with `rate`,
        its dilation, and with these; without `stride` among them it has the stride 1.
      output_stride: a product of the first units' strides; None for all of them.
      store_non_strided_activations: whether the output of a block that goes into the collection
        is the one before its last unit's stride.
      outputs_collections: collection that gets the output of every block, by scope.

    Returns:
      `[batch, height / output_stride, width / output_stride, depth]` float32, sizes rounded up.

    Raises:
      ValueError: if `output_stride` is not a product of the first units' strides.
    """
    _check_output_stride(blocks, output_stride)
    stride, rate = 1, 1
    for current in blocks:
        with tf.variable_scope(current.scope, "block", [net]) as opened:
            stride_after = 1
            for number, unit in enumerate(current.args, start=1):
                arguments = dict(unit)
                if store_non_strided_activations and number == len(current.args):
                    stride_after, arguments["stride"] = arguments.get("stride", 1), 1
                unit_stride = arguments.get("stride", 1)
                with tf.variable_scope(f"unit_{number}", values=[net]):
                    if stride == output_stride:
                        net = current.unit_fn(net, rate=rate, **{**arguments, "stride": 1})
                        rate *= unit_stride
                    else:
                        net = current.unit_fn(net, rate=1, **arguments)
                        stride *= unit_stride
            net = slim.utils.collect_named_outputs(outputs_collections, opened.name, net)
            if stride == output_stride:
                rate *= stride_after
            else:
                net = subsample(net, stride_after)
                stride *= stride_after
    return net


def _check_output_stride(blocks: Sequence[Any], output_stride: int | None, root: int = 1) -> None:
    """Raises ValueError unless the blocks after a root of this stride reach `output_stride`."""
    strides = (unit.get("stride", 1) for current in blocks for unit in current.args)
    reached = sorted(set(itertools.accumulate(strides, operator.mul, initial=root)))
    check_choice("output_stride", output_stride, (None, *reached))


def _root(net: Any, version: Version) -> Any:
    plain = {"activation_fn": None, "normalizer_fn": None} if version.normalizes_first else {}
    with slim.arg_scope([slim.conv2d], **plain):
        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
    return slim.max_pool2d(net, [3, 3], stride=2, scope="pool1")


def _classify(net: Any, options: Options, end_points: dict[str, Any], scope: str) -> Any:
    net = slim.conv2d(
        net, options.num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits"
    )
    end_points[f"{scope}/logits"] = net
    if options.spatial_squeeze:
        net = squeeze_pixel(net, [1, 2])
        end_points[f"{scope}/spatial_squeeze"] = net
    end_points["predictions"] = slim.softmax(net, scope="predictions")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
    activation_fn: Callable[..., Any] = tf.nn.relu,
    use_batch_norm: bool = True,
    batch_norm_updates_collections: str | None = tf.GraphKeys.UPDATE_OPS,
) -> Mapping[str, Any]:
    """Returns the arg scope of all ResNets.

    Args:
      weight_decay: factor of the L2 losses on the weights of all layers.
      batch_norm_decay: of the moving mean and variance.
      batch_norm_epsilon: added to the variance.
      batch_norm_scale: whether normalization has a `gamma`.
      activation_fn: of the convolutions.
      use_batch_norm: whether convolutions are normalized; otherwise they have biases.
      batch_norm_updates_collections: collection of the moving averages' updates; None updates
        them in place.
    """
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": batch_norm_updates_collections,
    }
    with (
        slim.arg_scope(
            [slim.conv2d],
            weights_regularizer=slim.l2_regularizer(weight_decay),
            weights_initializer=slim.variance_scaling_initializer(),
            activation_fn=activation_fn,
            normalizer_fn=slim.batch_norm if use_batch_norm else None,
            normalizer_params=normalization,
        ),
        slim.arg_scope([slim.batch_norm], **normalization),
        # Features then stay aligned with the image, which dense prediction needs.
        slim.arg_scope([slim.max_pool2d], padding="SAME") as scope,
    ):
        return scope

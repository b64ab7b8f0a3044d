"""Inception-ResNet-v2.

After C. Szegedy, S. Ioffe, V. Vanhoucke, A. Alemi, "Inception-v4, Inception-ResNet and the Impact
of Residual Connections on Learning" (2016), https://arxiv.org/abs/1602.07261, figures 14 to 20;
the stem is that of Inception-v3, and depth and widths are those of the published checkpoint.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.branches import Layer, branches, chain, conv, in_scope, max_pool, run_steps
from nets.parts.inception_heads import auxiliary_head, classification_head, smallest_image
from nets.parts.inception_resnet_blocks import mixed_5b, mixed_6a, mixed_7a
from nets.parts.network import Images, Network, check_choice, takes

Activation = Callable[..., Any] | None


def block35(
    net: Any,
    scale: float = 1.0,
    activation_fn: Activation = tf.nn.relu,
    scope: str | None = None,
    reuse: bool | None = None,
) -> Any:
    """Inception-ResNet-A, which has 35 x 35 x 320 in the network (figure 16).

    Args:
      net: `[batch, height, width, channels]` float32.
      scale: factor of the residual.
      activation_fn: after the addition; None for none. With `tf.nn.relu6` the residual is cut to
        -6 to 6 before it is added.
      scope: variable scope, `Block35` if None.
      reuse: whether to take existing variables.

    Returns:
      The shape of `net`.
    """
    mixed = branches(
        conv("", 1, 1, 32),
        chain(conv("0a", 1, 1, 32), conv("0b", 3, 3, 32)),
        chain(conv("0a", 1, 1, 32), conv("0b", 3, 3, 48), conv("0c", 3, 3, 64)),
    )
    with tf.variable_scope(scope, "Block35", [net], reuse=reuse):
        return _residual(mixed, scale, activation_fn)(net)


def block17(
    net: Any,
    scale: float = 1.0,
    activation_fn: Activation = tf.nn.relu,
    scope: str | None = None,
    reuse: bool | None = None,
) -> Any:
    """Inception-ResNet-B, which has 17 x 17 x 1088 in the network (figure 17).

    Arguments and result are those of `block35`; `scope` is `Block17` if None.
    """
    mixed = branches(
        conv("", 1, 1, 192),
        chain(conv("0a", 1, 1, 128), conv("0b", 1, 7, 160), conv("0c", 7, 1, 192)),
    )
    with tf.variable_scope(scope, "Block17", [net], reuse=reuse):
        return _residual(mixed, scale, activation_fn)(net)


def block8(
    net: Any,
    scale: float = 1.0,
    activation_fn: Activation = tf.nn.relu,
    scope: str | None = None,
    reuse: bool | None = None,
) -> Any:
    """Inception-ResNet-C, which has 8 x 8 x 2080 in the network (figure 19).

    Arguments and result are those of `block35`; `scope` is `Block8` if None.
    """
    mixed = branches(
        conv("", 1, 1, 192),
        chain(conv("0a", 1, 1, 192), conv("0b", 1, 3, 224), conv("0c", 3, 1, 256)),
    )
    with tf.variable_scope(scope, "Block8", [net], reuse=reuse):
        return _residual(mixed, scale, activation_fn)(net)


def _residual(mixed: Layer, scale: float, activation_fn: Activation) -> Layer:
    """Adds `scale` times a linear 1x1 convolution of the branches to the input (section 3.3)."""

    def layer(net: Any) -> Any:
        up = conv("", 1, 1, net.shape.as_list()[3], normalizer_fn=None, activation_fn=None)
        residual = scale * up(mixed(net))
        if activation_fn is tf.nn.relu6:
            # What is trained for fixed-point numbers has all values in the range of a relu6.
            residual = tf.clip_by_value(residual, -6.0, 6.0)
        net += residual
        return activation_fn(net) if activation_fn else net

    return layer


def _repeat(scope: str, times: int, block: Callable[..., Any], *settings: Any) -> Layer:
    """Chains a block with itself, in the scopes `<scope>/block35_1`, `<scope>/block35_2`, ..."""

    def layer(net: Any) -> Any:
        with tf.variable_scope(scope):
            for index in range(1, times + 1):
                net = block(net, *settings, scope=f"{block.__name__}_{index}")
            return net

    return layer


def _dilated(layer: Layer, rate: int) -> Layer:
    """Returns the layer with its convolutions dilated, for a map that was not halved."""

    def dilated(net: Any) -> Any:
        with slim.arg_scope([slim.conv2d], rate=rate):
            return layer(net)

    return dilated


def _steps(output_stride: int, padding: str, activation_fn: Activation) -> dict[str, Layer]:
    """Returns end point -> layer; the blocks in between belong to the end point after them."""
    halving: dict[str, Any] = {"stride": 2, "padding": padding}
    dense = output_stride == 8
    block17s = _repeat("Repeat_1", 20, block17, 0.10, activation_fn)
    return {
        "Conv2d_1a_3x3": conv("1a", 3, 3, 32, **halving),
        "Conv2d_2a_3x3": conv("2a", 3, 3, 32, padding=padding),
        "Conv2d_2b_3x3": conv("2b", 3, 3, 64),
        "MaxPool_3a_3x3": max_pool("3a", **halving),
        "Conv2d_3b_1x1": conv("3b", 1, 1, 80, padding=padding),
        "Conv2d_4a_3x3": conv("4a", 3, 3, 192, padding=padding),
        "MaxPool_5a_3x3": max_pool("5a", **halving),
        "Mixed_5b": in_scope("Mixed_5b", mixed_5b()),
        "Mixed_6a": chain(
            _repeat("Repeat", 10, block35, 0.17, activation_fn),
            in_scope("Mixed_6a", mixed_6a(1 if dense else 2, padding)),
        ),
        "PreAuxLogits": _dilated(block17s, 2) if dense else block17s,
        "Mixed_7a": in_scope("Mixed_7a", mixed_7a(padding)),
        "Conv2d_7b_1x1": chain(
            _repeat("Repeat_2", 9, block8, 0.20, activation_fn),
            functools.partial(block8, activation_fn=None, scope="Block8"),
            conv("7b", 1, 1, 1536),
        ),
    }


def inception_resnet_v2_base(
    inputs: Any,
    final_endpoint: str = "Conv2d_7b_1x1",
    output_stride: int = 16,
    align_feature_maps: bool = False,
    scope: str | None = None,
    activation_fn: Activation = tf.nn.relu,
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception-ResNet-v2 without its heads.

    Args:
      inputs: images `[batch, height, width, channels]` float32.
      final_endpoint: the last end point to build; one of `Conv2d_1a_3x3`, `Conv2d_2a_3x3`,
        `Conv2d_2b_3x3`, `MaxPool_3a_3x3`, `Conv2d_3b_1x1`, `Conv2d_4a_3x3`, `MaxPool_5a_3x3`,
        `Mixed_5b`, `Mixed_6a`, `PreAuxLogits`, `Mixed_7a` and `Conv2d_7b_1x1`.
      output_stride: image pixels per pixel of `PreAuxLogits`, 16 or 8. With 8, `Mixed_6a` keeps
        the size, the blocks after it are dilated by 2, and `PreAuxLogits` is the last end point.
      align_feature_maps: whether all layers pad (SAME), so that maps of images of different sizes
        line up: a side of `n` pixels becomes `ceil(n / stride)`.
      scope: variable scope, `InceptionResnetV2` if None.
      activation_fn: after each residual addition; None for none.

    Returns:
      The feature map of `final_endpoint`, `[batch, 8, 8, 1536]` for the defaults and 299 x 299
      images, and the end points by name.

    Raises:
      ValueError: if `output_stride` is neither 8 nor 16, or there is no such `final_endpoint`
        at this stride.
    """
    check_choice("output_stride", output_stride, (8, 16))
    steps = _steps(output_stride, "SAME" if align_feature_maps else "VALID", activation_fn)
    if output_stride == 8 and final_endpoint in ("Mixed_7a", "Conv2d_7b_1x1"):
        raise ValueError(
            "final_endpoint must be PreAuxLogits or one before it for output_stride 8,"
            f" got {final_endpoint!r}"
        )
    layers = [slim.conv2d, slim.max_pool2d, slim.avg_pool2d]
    with (
        tf.variable_scope(scope, "InceptionResnetV2", [inputs]),
        slim.arg_scope(layers, stride=1, padding="SAME"),
    ):
        return run_steps(inputs, steps, final_endpoint)


@takes(Images(size=299, smallest=smallest_image, other_channels=True))
def inception_resnet_v2(
    inputs: Any,
    num_classes: int | None = 1001,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    reuse: bool | None = None,
    scope: str = "InceptionResnetV2",
    create_aux_logits: bool = True,
    activation_fn: Activation = tf.nn.relu,
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception-ResNet-v2.

    Args:
      inputs: images `[batch, height, width, channels]` float32, at least 107 x 107, or 75 x 75
        without auxiliary logits; designed for 299 x 299.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout is active and batch normalization uses the batch.
      dropout_keep_prob: share of the 1536 features that dropout keeps.
      reuse: whether to take existing variables.
      scope: variable scope.
      create_aux_logits: whether to build the auxiliary head on `PreAuxLogits`. Its weights depend
        on the image size.
      activation_fn: after each residual addition; that of the convolutions is in the arg scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, 1536]`; and the end points of
      `inception_resnet_v2_base`, `AuxLogits`, `global_pool`, `PreLogitsFlatten`, `Logits` and
      `Predictions` (without classes only `global_pool` of these).

    Raises:
      ValueError: if `inputs` has another rank, unknown channels or is too small, `num_classes` is
        negative, or auxiliary logits are to be built for images of unknown size.
    """
    with (
        tf.variable_scope(scope, "InceptionResnetV2", [inputs], reuse=reuse) as variable_scope,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = inception_resnet_v2_base(
            inputs, scope=variable_scope, activation_fn=activation_fn
        )
        if create_aux_logits and num_classes:
            # Its pool has the scope of a convolution, which programs find it by.
            end_points["AuxLogits"] = auxiliary_head(
                end_points["PreAuxLogits"],
                num_classes,
                "Conv2d_1a_3x3",
                "Conv2d_2a_5x5",
                "Logits",
            )

        def features(net: Any) -> Any:
            return slim.dropout(slim.flatten(net), dropout_keep_prob, scope="Dropout")

        net = classification_head(net, num_classes, end_points, "AvgPool_1a_8x8", features)
        return net, end_points


def inception_resnet_v2_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    activation_fn: Activation = tf.nn.relu,
    batch_norm_updates_collections: str | None = tf.GraphKeys.UPDATE_OPS,
    batch_norm_scale: bool = False,
) -> Any:
    """Returns the arg scope of `inception_resnet_v2`.

    Args:
      weight_decay: factor of the L2 losses on the weights and biases of all layers.
      batch_norm_decay: of the moving mean and variance.
      batch_norm_epsilon: added to the variance.
      activation_fn: of the convolutions.
      batch_norm_updates_collections: collection of the moving averages' updates; None updates
        them in place.
      batch_norm_scale: whether normalization has a `gamma`.
    """
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_regularizer=slim.l2_regularizer(weight_decay),
            biases_regularizer=slim.l2_regularizer(weight_decay),
        ),
        slim.arg_scope(
            [slim.conv2d],
            activation_fn=activation_fn,
            normalizer_fn=slim.batch_norm,
            normalizer_params={
                "decay": batch_norm_decay,
                "epsilon": batch_norm_epsilon,
                "updates_collections": batch_norm_updates_collections,
                "scale": batch_norm_scale,
            },
        ) as scope,
    ):
        return scope


NETWORKS = {"inception_resnet_v2": Network(inception_resnet_v2, inception_resnet_v2_arg_scope)}

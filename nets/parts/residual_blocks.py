"""The residual blocks of Inception-ResNet-v2.

After C. Szegedy, S. Ioffe, V. Vanhoucke, A. Alemi, "Inception-v4, Inception-ResNet and the Impact
of Residual Connections on Learning" (2016), https://arxiv.org/abs/1602.07261, figures 16 to 19;
the widths are those of the published checkpoint.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from nets.parts.branches import Layer, branches, chain, conv

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
        return _residual(net, mixed, scale, activation_fn)


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
        return _residual(net, mixed, scale, activation_fn)


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
        return _residual(net, mixed, scale, activation_fn)


def _residual(net: Any, mixed: Layer, scale: float, activation_fn: Activation) -> Any:
    """Adds `scale` times a linear 1x1 convolution of the branches to the input (section 3.3)."""
    up = conv("", 1, 1, net.shape.as_list()[3], normalizer_fn=None, activation_fn=None)
    residual = scale * up(mixed(net))
    if activation_fn is tf.nn.relu6:
        # What is trained for fixed-point numbers has all its values in the range of a relu6.
        residual = tf.clip_by_value(residual, -6.0, 6.0)
    net += residual
    return activation_fn(net) if activation_fn else net

"""PNASNet-5, for ImageNet.

After C. Liu, B. Zoph, M. Neumann, J. Shlens, W. Hua, L.-J. Li, L. Fei-Fei, A. Yuille, J. Huang,
K. Murphy, "Progressive Neural Architecture Search" (2018), https://arxiv.org/abs/1712.00559: the
cell of figure 1, the networks PNASNet-5 (N = 3, F = 54) and (N = 4, F = 216) of tables 4 and 5.
"""

from typing import Any

from nets.nasnet.cell_config import CellNetworkConfig
from nets.nasnet.cell_networks import Architecture, arg_scope, build_network, images_for
from nets.nasnet.nasnet_utils import Cell, Input, identity, max_pool, separable
from nets.parts.network import Network, takes

_CELL = Cell(
    blocks=(
        (Input(separable(5), 1), Input(max_pool, 1)),
        (Input(separable(7), 0), Input(max_pool, 0)),
        (Input(separable(5), 0), Input(separable(3), 0)),
        (Input(separable(3), 4), Input(max_pool, 0)),
        (Input(separable(3), 1), Input(identity, 0)),
    ),
    outputs=(2, 3, 4, 5, 6),
)
_IMAGENET = Architecture(_CELL, reduction=None, stem="imagenet")


def mobile_imagenet_config() -> CellNetworkConfig:
    """Returns the settings of PNASNet-5 (N = 3, F = 54): no drop path."""
    return CellNetworkConfig(num_cells=9, num_conv_filters=54, dense_dropout_keep_prob=0.5)


def large_imagenet_config() -> CellNetworkConfig:
    """Returns the settings of PNASNet-5 (N = 4, F = 216)."""
    return CellNetworkConfig(
        num_cells=12,
        num_conv_filters=216,
        stem_multiplier=3.0,
        drop_path_keep_prob=0.6,
        dense_dropout_keep_prob=0.5,
    )


@takes(images_for(224, mobile_imagenet_config, _IMAGENET))
def build_pnasnet_mobile(
    images: Any,
    num_classes: int | None,
    is_training: bool = True,
    final_endpoint: str | None = None,
    config: CellNetworkConfig | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds PNASNet-5 (N = 3, F = 54).

    Args:
      images: `[batch, height, width, 1 or 3]` float32 of known size, at least 3 x 3, or 67 x 67
        for the auxiliary head in training; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout and drop path are active, batch normalization uses the batch,
        and the auxiliary head is built. Drop path follows the global step, which is created if
        there is none.
      final_endpoint: the last end point to build, any of those below but `AuxLogits`; None builds
        all.
      config: settings; `mobile_imagenet_config()` if None.

    Returns:
      Logits `[batch, num_classes]`, features `[batch, 1080]`, or `final_endpoint`; and the end
      points `Stem`, `Cell_0` to `Cell_8` (`Cell_3` and `Cell_6` halve the map), `AuxLogits` after
      `Cell_5` in training, `global_pool`, `Logits` and `Predictions` (without classes neither of
      these two nor `AuxLogits`).

    Raises:
      ValueError: if `images` has another rank, channel count, an unknown size or is too small,
        `num_classes` is negative, or there is no such `final_endpoint`.
    """
    config = config or mobile_imagenet_config()
    return build_network(images, num_classes, is_training, config, _IMAGENET, final_endpoint)


@takes(images_for(331, large_imagenet_config, _IMAGENET))
def build_pnasnet_large(
    images: Any,
    num_classes: int | None,
    is_training: bool = True,
    final_endpoint: str | None = None,
    config: CellNetworkConfig | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds PNASNet-5 (N = 4, F = 216).

    Args:
      images: `[batch, height, width, 1 or 3]` float32 of known size, at least 3 x 3, or 67 x 67
        for the auxiliary head in training; designed for 331 x 331.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout and drop path are active, batch normalization uses the batch,
        and the auxiliary head is built. Drop path follows the global step, which is created if
        there is none.
      final_endpoint: the last end point to build, any of those below but `AuxLogits`; None builds
        all.
      config: settings; `large_imagenet_config()` if None.

    Returns:
      Logits `[batch, num_classes]`, features `[batch, 4320]`, or `final_endpoint`; and the end
      points `Stem`, `Cell_0` to `Cell_11` (`Cell_4` and `Cell_8` halve the map), `AuxLogits` after
      `Cell_7` in training, `global_pool`, `Logits` and `Predictions` (without classes neither of
      these two nor `AuxLogits`).

    Raises:
      ValueError: if `images` has another rank, channel count, an unknown size or is too small,
        `num_classes` is negative, or there is no such `final_endpoint`.
    """
    config = config or large_imagenet_config()
    return build_network(images, num_classes, is_training, config, _IMAGENET, final_endpoint)


def pnasnet_mobile_arg_scope(
    weight_decay: float = 4e-5, batch_norm_decay: float = 0.9997, batch_norm_epsilon: float = 1e-3
) -> Any:
    """Returns the arg scope of `build_pnasnet_mobile`: L2 on all weights, scaled normalization."""
    return arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


def pnasnet_large_arg_scope(
    weight_decay: float = 4e-5, batch_norm_decay: float = 0.9997, batch_norm_epsilon: float = 1e-3
) -> Any:
    """Returns the arg scope of `build_pnasnet_large`: L2 on all weights, scaled normalization."""
    return arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


NETWORKS = {
    "pnasnet_mobile": Network(build_pnasnet_mobile, pnasnet_mobile_arg_scope),
    "pnasnet_large": Network(build_pnasnet_large, pnasnet_large_arg_scope),
}

"""PNASNet-5, for ImageNet.

After C. Liu, B. Zoph, M. Neumann, J. Shlens, W. Hua, L.-J. Li, L. Fei-Fei, A. Yuille, J. Huang,
K. Murphy, "Progressive Neural Architecture Search" (2018), https://arxiv.org/abs/1712.00559: the
cell of figure 1, the networks PNASNet-5 (N = 3, F = 54) and (N = 4, F = 216) of tables 4 and 5.
"""

from typing import Any

from model_deploy import slim
from nets.nasnet.cell_config import CellNetworkConfig
from nets.nasnet.cell_networks import build_network, cells_arg_scope, images_for
from nets.nasnet.cell_plan import Architecture
from nets.nasnet.nasnet_utils import NasNetABaseCell
from nets.parts.network import Network, takes

arg_scope = slim.arg_scope


class PNasNetNormalCell(NasNetABaseCell):
    """The cell of PNASNet-5 (figure 1); arguments of `NasNetABaseCell`."""

    def __init__(
        self,
        num_conv_filters: float,
        drop_path_keep_prob: float,
        total_num_cells: int,
        total_training_steps: int,
        use_bounded_activation: bool = False,
    ) -> None:
        super().__init__(
            num_conv_filters,
            [
                *("separable_5x5_2", "max_pool_3x3"),
                *("separable_7x7_2", "max_pool_3x3"),
                *("separable_5x5_2", "separable_3x3_2"),
                *("separable_3x3_2", "max_pool_3x3"),
                *("separable_3x3_2", "none"),
            ],
            [1, 1, 0, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 0, 4, 0, 1, 0],
            drop_path_keep_prob,
            total_num_cells,
            total_training_steps,
            use_bounded_activation,
        )


_IMAGENET = Architecture(PNasNetNormalCell, reduction=None, stem="imagenet")


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
      images: `[batch, height, width, channels]` float32 of known size, at least 3 x 3, or 67 x 67
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
      ValueError: if `images` has another rank, an unknown channel count or size, or is too small,
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
      images: `[batch, height, width, channels]` float32 of known size, at least 3 x 3, or 67 x 67
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
      ValueError: if `images` has another rank, an unknown channel count or size, or is too small,
        `num_classes` is negative, or there is no such `final_endpoint`.
    """
    config = config or large_imagenet_config()
    return build_network(images, num_classes, is_training, config, _IMAGENET, final_endpoint)


def pnasnet_mobile_arg_scope(
    weight_decay: float = 4e-5, batch_norm_decay: float = 0.9997, batch_norm_epsilon: float = 1e-3
) -> Any:
    """Returns the arg scope of `build_pnasnet_mobile`: L2 on all weights, scaled normalization."""
    return cells_arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


def pnasnet_large_arg_scope(
    weight_decay: float = 4e-5, batch_norm_decay: float = 0.9997, batch_norm_epsilon: float = 1e-3
) -> Any:
    """Returns the arg scope of `build_pnasnet_large`: L2 on all weights, scaled normalization."""
    return cells_arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


NETWORKS = {
    "pnasnet_mobile": Network(build_pnasnet_mobile, pnasnet_mobile_arg_scope),
    "pnasnet_large": Network(build_pnasnet_large, pnasnet_large_arg_scope),
}
SETTINGS = {"pnasnet_mobile": mobile_imagenet_config, "pnasnet_large": large_imagenet_config}

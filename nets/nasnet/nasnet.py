"""NASNet-A, for CIFAR-10 and for ImageNet.

After B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable Architectures for Scalable
Image Recognition" (2018), https://arxiv.org/abs/1707.07012: the cells of figure 4, the networks
NASNet-A (6 @ 768), (4 @ 1056) and (6 @ 4032) of tables 1 and 2.
"""

from typing import Any

from model_deploy import slim
from nets.nasnet.cell_config import CellNetworkConfig
from nets.nasnet.cell_networks import build_network, cells_arg_scope, images_for
from nets.nasnet.cell_plan import Architecture
from nets.nasnet.nasnet_utils import NasNetANormalCell, NasNetAReductionCell
from nets.parts.network import Network, takes

arg_scope = slim.arg_scope

_CIFAR = Architecture(NasNetANormalCell, NasNetAReductionCell, stem="cifar")
_IMAGENET = Architecture(NasNetANormalCell, NasNetAReductionCell, stem="imagenet")


def cifar_config() -> CellNetworkConfig:
    """Returns the settings of NASNet-A (6 @ 768), trained for 600 epochs in batches of 32."""
    return CellNetworkConfig(
        num_cells=18,
        num_conv_filters=32,
        stem_multiplier=3.0,
        drop_path_keep_prob=0.6,
        total_training_steps=937_500,
    )


def mobile_imagenet_config() -> CellNetworkConfig:
    """Returns the settings of NASNet-A (4 @ 1056): no drop path."""
    return CellNetworkConfig(num_cells=12, num_conv_filters=44, dense_dropout_keep_prob=0.5)


def large_imagenet_config() -> CellNetworkConfig:
    """Returns the settings of NASNet-A (6 @ 4032)."""
    return CellNetworkConfig(
        num_cells=18,
        num_conv_filters=168,
        stem_multiplier=3.0,
        drop_path_keep_prob=0.7,
        dense_dropout_keep_prob=0.5,
        skip_reduction_layer_input=True,
    )


@takes(images_for(32, cifar_config, _CIFAR))
def build_nasnet_cifar(
    images: Any,
    num_classes: int | None,
    is_training: bool = True,
    config: CellNetworkConfig | None = None,
    current_step: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds NASNet-A (6 @ 768) for CIFAR-10.

    Args:
      images: `[batch, height, width, channels]` float32 of known size, at least 9 x 9 for the
        auxiliary head in training; designed for 32 x 32.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout and drop path are active, batch normalization uses the batch,
        and the auxiliary head is built.
      config: settings; `cifar_config()` if None.
      current_step: scalar for the schedule of drop path; None takes the global step, which is
        created if there is none.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 768]`; and the end points `Stem`,
      `Cell_0` to `Cell_17` with `Reduction_Cell_0` before `Cell_6` and `Reduction_Cell_1` before
      `Cell_12`, `AuxLogits` after `Cell_11` in training, `global_pool`, `Logits` and
      `Predictions` (without classes neither of these two nor `AuxLogits`).

    Raises:
      ValueError: if `images` has another rank, an unknown channel count or size, or is too small,
        or `num_classes` is negative.
    """
    config = config or cifar_config()
    return build_network(
        images, num_classes, is_training, config, _CIFAR, current_step=current_step
    )


@takes(images_for(224, mobile_imagenet_config, _IMAGENET))
def build_nasnet_mobile(
    images: Any,
    num_classes: int | None,
    is_training: bool = True,
    final_endpoint: str | None = None,
    config: CellNetworkConfig | None = None,
    current_step: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds NASNet-A (4 @ 1056) for ImageNet.

    Args:
      images: `[batch, height, width, channels]` float32 of known size, at least 3 x 3, or 67 x 67
        for the auxiliary head in training; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout and drop path are active, batch normalization uses the batch,
        and the auxiliary head is built.
      final_endpoint: the last end point to build, any of those below but `AuxLogits`; None builds
        all.
      config: settings; `mobile_imagenet_config()` if None.
      current_step: scalar for the schedule of drop path; None takes the global step, which is
        created if there is none.

    Returns:
      Logits `[batch, num_classes]`, features `[batch, 1056]`, or `final_endpoint`; and the end
      points `Stem`, `Cell_0` to `Cell_11` with `Reduction_Cell_0` before `Cell_4` and
      `Reduction_Cell_1` before `Cell_8`, `AuxLogits` after `Cell_7` in training, `global_pool`,
      `Logits` and `Predictions` (without classes neither of these two nor `AuxLogits`).

    Raises:
      ValueError: if `images` has another rank, an unknown channel count or size, or is too small,
        `num_classes` is negative, or there is no such `final_endpoint`.
    """
    config = config or mobile_imagenet_config()
    return build_network(
        images, num_classes, is_training, config, _IMAGENET, final_endpoint, current_step
    )


@takes(images_for(331, large_imagenet_config, _IMAGENET))
def build_nasnet_large(
    images: Any,
    num_classes: int | None,
    is_training: bool = True,
    final_endpoint: str | None = None,
    config: CellNetworkConfig | None = None,
    current_step: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds NASNet-A (6 @ 4032) for ImageNet.

    Args:
      images: `[batch, height, width, channels]` float32 of known size, at least 3 x 3, or 67 x 67
        for the auxiliary head in training; designed for 331 x 331.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout and drop path are active, batch normalization uses the batch,
        and the auxiliary head is built.
      final_endpoint: the last end point to build, any of those below but `AuxLogits`; None builds
        all.
      config: settings; `large_imagenet_config()` if None.
      current_step: scalar for the schedule of drop path; None takes the global step, which is
        created if there is none.

    Returns:
      Logits `[batch, num_classes]`, features `[batch, 4032]`, or `final_endpoint`; and the end
      points `Stem`, `Cell_0` to `Cell_17` with `Reduction_Cell_0` before `Cell_6` and
      `Reduction_Cell_1` before `Cell_12`, `AuxLogits` after `Cell_11` in training, `global_pool`,
      `Logits` and `Predictions` (without classes neither of these two nor `AuxLogits`).

    Raises:
      ValueError: if `images` has another rank, an unknown channel count or size, or is too small,
        `num_classes` is negative, or there is no such `final_endpoint`.
    """
    config = config or large_imagenet_config()
    return build_network(
        images, num_classes, is_training, config, _IMAGENET, final_endpoint, current_step
    )


def nasnet_cifar_arg_scope(
    weight_decay: float = 5e-4, batch_norm_decay: float = 0.9, batch_norm_epsilon: float = 1e-5
) -> Any:
    """Returns the arg scope of `build_nasnet_cifar`: L2 on all weights, scaled normalization."""
    return cells_arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


def nasnet_mobile_arg_scope(
    weight_decay: float = 4e-5, batch_norm_decay: float = 0.9997, batch_norm_epsilon: float = 1e-3
) -> Any:
    """Returns the arg scope of `build_nasnet_mobile`: L2 on all weights, scaled normalization."""
    return cells_arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


def nasnet_large_arg_scope(
    weight_decay: float = 5e-5, batch_norm_decay: float = 0.9997, batch_norm_epsilon: float = 1e-3
) -> Any:
    """Returns the arg scope of `build_nasnet_large`: L2 on all weights, scaled normalization."""
    return cells_arg_scope(weight_decay, batch_norm_decay, batch_norm_epsilon)


NETWORKS = {
    "nasnet_cifar": Network(build_nasnet_cifar, nasnet_cifar_arg_scope),
    "nasnet_mobile": Network(build_nasnet_mobile, nasnet_mobile_arg_scope),
    "nasnet_large": Network(build_nasnet_large, nasnet_large_arg_scope),
}
SETTINGS = {
    "nasnet_cifar": cifar_config,
    "nasnet_mobile": mobile_imagenet_config,
    "nasnet_large": large_imagenet_config,
}

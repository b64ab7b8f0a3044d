"""`preprocessing_factory`: how the images of a network are prepared."""

from collections.abc import Callable
from typing import Any

from model_deploy import inputs
from model_deploy.tf1.preprocessing import (
    cifarnet_preprocessing,
    inception_preprocessing,
    lenet_preprocessing,
    vgg_preprocessing,
)

_MODULES: dict[str, Any] = {
    "cifarnet": cifarnet_preprocessing,
    "inception": inception_preprocessing,
    "lenet": lenet_preprocessing,
    "vgg": vgg_preprocessing,
}


def get_preprocessing(
    name: str, is_training: bool = False, use_grayscale: bool = False
) -> Callable[..., Any]:
    """The preprocessing of a network.

    Args:
      name: that of a network, or of a kind of preprocessing: cifarnet, inception, lenet, vgg.
      is_training: whether images are changed at random.
      use_grayscale: whether the result has one grey channel.

    Returns:
      `fn(image, output_height, output_width, **kwargs)`, from one image [h, w, c] to float32
      [output_height, output_width, c]; `kwargs` go to `preprocess_image` of that kind.

    Raises:
      ValueError: for an unknown name.
    """
    kind = inputs.get_preprocessing(name).name
    if kind not in _MODULES:  # registered by the program
        raise ValueError(f"name must be one that TF-Slim had, got {name!r}")
    module = _MODULES[kind]

    def preprocessing_fn(image: Any, output_height: int, output_width: int, **kwargs: Any) -> Any:
        return module.preprocess_image(
            image,
            output_height,
            output_width,
            is_training=is_training,
            use_grayscale=use_grayscale,
            **kwargs,
        )

    return preprocessing_fn

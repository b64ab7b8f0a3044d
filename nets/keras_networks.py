"""The image classifiers of `keras.applications`, as networks `keras/<name>`.

They are built by the Keras that is installed, without weights, and get images as they are in files:
0 to 255, in colour.  What Keras calls the network's own preprocessing is the first thing that
they do; where it is a layer of the network, as in EfficientNet, that is all of it.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.keras_names import PREFIX, names
from nets.parts.network import Images, Network, check_choice, takes

# Height and width that `keras.applications` has where none is given; 224 for the others.
_SIZES = {
    "EfficientNetB1": 240,
    "EfficientNetB2": 260,
    "EfficientNetB3": 300,
    "EfficientNetB4": 380,
    "EfficientNetB5": 456,
    "EfficientNetB6": 528,
    "EfficientNetB7": 600,
    "EfficientNetV2B1": 240,
    "EfficientNetV2B2": 260,
    "EfficientNetV2B3": 300,
    "EfficientNetV2S": 384,
    "EfficientNetV2M": 480,
    "EfficientNetV2L": 480,
    "InceptionResNetV2": 299,
    "InceptionV3": 299,
    "NASNetLarge": 331,
    "Xception": 299,
}
_SIZE = 224
# The least height and width that it takes; 32 for the others.
_SMALLEST = {"InceptionResNetV2": 75, "InceptionV3": 75, "Xception": 71}
_SMALLEST_SIZE = 32
# Names of weights; `depthwise_kernel` is another one.
_DECAYED = ("kernel", "pointwise_kernel")
# The graph's models.  Not a string: those collections go into checkpoints.
_MODELS = ("nets", "keras_networks")


def get_network(name: str) -> Network:
    """Returns the function of the network called `name` and that of its arg scope.

    Raises:
      ValueError: if Keras has no such network.
    """
    check_choice("name", name, names())
    name = name.removeprefix(PREFIX)
    images = Images(
        size=_SIZES.get(name, _SIZE), smallest=_SMALLEST.get(name, _SMALLEST_SIZE), channels=(1, 3)
    )

    @takes(images)
    def keras_network(
        images: Any, num_classes: int | None = 1000, is_training: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        """Builds a network of `keras.applications`.

        Args:
          images: `[batch, height, width, channels]` float32, 0 to 255; grey or RGB, of a known
            size.
          num_classes: width of the logits; 0 or None returns the features before them.
          is_training: whether dropout is active and batch normalization uses the batch.

        Returns:
          Logits `[batch, num_classes]`, or features `[batch, channels]`; and with classes the end
          points `Logits` and `Predictions`.

        Raises:
          ValueError: if `images` has another rank or channel count, is too small, or its size is
            not known; or `num_classes` is negative.
        """
        height, width, channels = images.shape.as_list()[1:]
        if height is None or width is None:
            raise ValueError(f"images must have a known height and width, got {images.shape}")
        if channels == 1:
            images = tf.image.grayscale_to_rgb(images)
        model = _model(name, num_classes or 0, height, width)
        net = model(_module(name).preprocess_input(images), training=is_training)
        if not num_classes:
            return net, {}
        return net, {"Logits": net, "Predictions": tf.nn.softmax(net, name="Predictions")}

    keras_network.__name__ = name
    return Network(keras_network, _arg_scope)


def built_model() -> Any:
    """Returns the Keras model of the network that was built last in the default graph.

    Raises:
      ValueError: if none was.
    """
    models = tf.get_collection(_MODELS)
    if not models:
        raise ValueError("a network of keras.applications must be built before, got none")
    return models[-1]()[1]


def _arg_scope(weight_decay: float = 0.0) -> Any:
    """Returns the arg scope of the networks: L2 on the weights."""
    with slim.arg_scope([_model], weight_decay=weight_decay) as scope:
        return scope


@slim.add_arg_scope
def _model(name: str, num_classes: int, height: int, width: int, weight_decay: float = 0.0) -> Any:
    """The model of the current variable scope: a new one, or, if that reuses, that of before."""
    key = (name, num_classes, height, width)
    model = None
    if tf.get_variable_scope().reuse:
        same = [made for of, made in (get() for get in tf.get_collection(_MODELS)) if of == key]
        model = same[-1] if same else None
    if model is None:
        model = _new_model(name, num_classes, (height, width, 3))
        # A function: copies of clones would look into the model for what to copy.
        tf.add_to_collection(_MODELS, lambda: (key, model))
    # tf-slim's L2 loss is half of Keras'.
    decay = _keras().regularizers.L2(weight_decay / 2) if weight_decay else None
    for variable in _decayed(model):
        variable.regularizer = decay
    return model


def _decayed(layer: Any) -> list[Any]:
    """The weights of convolutions, not of depthwise ones, and of dense layers in a layer."""
    if hasattr(layer, "layers"):
        return [variable for inner in layer.layers for variable in _decayed(inner)]
    is_depthwise = isinstance(layer, _keras().layers.DepthwiseConv2D)
    if is_depthwise or getattr(layer, "groups", 1) > 1:
        return []
    return [variable for variable in layer.trainable_variables if variable.name in _DECAYED]


def _new_model(name: str, num_classes: int, shape: tuple[int, int, int]) -> Any:
    build = _builders()[name]
    if not num_classes:
        return build(include_top=False, weights=None, input_shape=shape, pooling="avg")
    return build(
        include_top=True,
        weights=None,
        input_shape=shape,
        classes=num_classes,
        classifier_activation=None,
    )


def _keras() -> Any:
    import keras  # noqa: PLC0415 - not before it is needed

    return keras


@functools.cache
def _builders() -> dict[str, Callable[..., Any]]:
    """The functions of `keras.applications` that make a classifier, by name."""
    return {
        name: function
        for name, function in vars(_keras().applications).items()
        if inspect.isfunction(function) and name[0].isupper()
    }


def _module(name: str) -> Any:
    """The public module of `keras.applications` with the preprocessing of a network."""
    module = _builders()[name].__module__.rpartition(".")[2]
    return getattr(_keras().applications, module)

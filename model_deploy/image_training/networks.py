"""`Networks`: the functions that build networks, passed in by the caller; this package has none."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Networks(NamedTuple):
    """Functions that build networks by name, such as those of the package `nets`.

    Attributes:
      get_network_fn: as `nets_factory.get_network_fn`: takes a name, the number of classes, the
        weight decay and `is_training`; returns the network as a function of images, float32
        [batch, height, width, channels], that returns logits, float32 [batch, classes], and end
        points by name.
      built_keras_model: as `keras_networks.built_model`: returns the Keras model built last in the
        default graph.  Only networks `keras/...` need it.
    """

    get_network_fn: Callable[..., Any]
    built_keras_model: Callable[[], Any] | None = None

    def keras_model(self) -> Any:
        """Returns the Keras model that was built last in the default graph.

        Raises:
          ValueError: if `built_keras_model` is None.
        """
        if self.built_keras_model is None:
            raise ValueError("built_keras_model must be given for files of Keras, got None")
        return self.built_keras_model()

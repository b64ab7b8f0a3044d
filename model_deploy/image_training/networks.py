"""The networks, which whoever trains hands in: this package has none."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Networks(NamedTuple):
    """Networks by their names, as the package `nets` has them.

    Attributes:
      get_network_fn: as `nets_factory.get_network_fn`: a function of a name, the number of
        classes, the weight decay, and whether it is for training, that returns the network as a
        function of images, float32 [batch, height, width, channels], which gives logits, float32
        [batch, classes], and end points by name.
      built_keras_model: as `keras_networks.built_model`: returns the Keras model of the network
        that was built last in the default graph.  Only networks `keras/...` need it.
    """

    get_network_fn: Callable[..., Any]
    built_keras_model: Callable[[], Any] | None = None

    def keras_model(self) -> Any:
        """The Keras model that was built last in the default graph.

        Raises:
          ValueError: if there is no function that knows it.
        """
        if self.built_keras_model is None:
            raise ValueError("built_keras_model must be given for files of Keras, got None")
        return self.built_keras_model()

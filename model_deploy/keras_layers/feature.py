"""`KerasLayers`: Keras layers that `model_fn` calls do what a clone needs."""

from typing import Any

from model_deploy.feature import Build, Feature
from model_deploy.keras_layers.layers import seeing_layers
from model_deploy.parts import Call, Part


class KerasLayers(Feature):
    """Variables, updates, losses and seeds of Keras layers are those of the clone."""

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        with seeing_layers(self.config, part.number, part.variables_device):
            return build(call)

"""Keras layers in `model_fn`: variables, updates, losses and seeds are those of a clone."""

from model_deploy.keras_layers.assignments import update_after
from model_deploy.keras_layers.feature import KerasLayers
from model_deploy.keras_layers.layers import seeing_layers
from model_deploy.keras_layers.variables import by_no_layer, using_own_variables

__all__ = ["KerasLayers", "by_no_layer", "seeing_layers", "update_after", "using_own_variables"]

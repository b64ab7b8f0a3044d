"""`model_deploy.keras`: Keras models deployed as `model.compile` would have them."""

from model_deploy.keras.optimizers import Translation, translate_optimizer

__all__ = ["Translation", "translate_optimizer"]

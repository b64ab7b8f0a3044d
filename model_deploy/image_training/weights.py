"""Restores the weights that a run starts from; exports its weights for Keras."""

from collections.abc import Callable
from typing import Any

from model_deploy import keras, training
from model_deploy.commands import named_as
from model_deploy.image_training.networks import Networks
from model_deploy.image_training.train_options import TrainOptions


def restore_fn(options: TrainOptions, networks: Networks) -> Callable[[Any], None] | None:
    """Returns a function that restores a checkpoint, or a Keras file, to fine-tune; or None."""
    if keras.is_weights_file(options.checkpoint_path or ""):
        with named_as(path="checkpoint_path"):
            return keras.restore_fn(options, networks.keras_model())
    return training.restore_fn(options)


def export_keras(options: TrainOptions, networks: Networks, path: str) -> None:
    """Writes the newest checkpoint, or its moving averages, as a Keras file."""
    averages = options.moving_average_decay is not None
    model = networks.keras_model()
    keras.export_checkpoint(model, options.train_dir, path, use_averages=averages)
    print(f"{options.model_name}: {options.train_dir} -> {path}")

"""`keras.utils.multi_gpu_model`, which Keras and TensorFlow dropped: a batch split over GPUs."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import keras


def multi_gpu_model(
    model: Any,
    gpus: int | Sequence[int] | None = None,
    cpu_merge: bool = True,
    cpu_relocation: bool = False,
) -> Any:
    """A model that computes each batch on several GPUs, with the variables of another one.

    Its outputs, and with them its loss, are those of the model, to rounding: each GPU gets an equal
    part of the batch, the last one also what is left over.  Layers that normalize a batch see the
    part of their GPU.

    Args:
      model: a model of tf-keras, with inputs and outputs of any shapes, the batch first.
      gpus: how many GPUs, or the number of each; None for all of this machine.
      cpu_merge: whether outputs are put together on the CPU, or else on the first of the GPUs.
      cpu_relocation: whether the variables are new ones on the CPU.

    Raises:
      ValueError: if they are not at least 2 GPUs that TensorFlow sees.
    """
    numbers = _numbers(gpus)
    if cpu_relocation:
        with tf.device("/cpu:0"):
            model = keras.models.clone_model(model)
    parts: list[list[Any]] = []
    for i, number in enumerate(numbers):
        with tf.device(f"/gpu:{number}"), tf.name_scope(f"replica_{number}"):
            cut = keras.layers.Lambda(_part, arguments={"i": i, "num_parts": len(numbers)})
            inputs = [cut(each) for each in model.inputs]
            parts.append(tf.nest.flatten(model(inputs if len(inputs) > 1 else inputs[0])))
    with tf.device("/cpu:0" if cpu_merge else f"/gpu:{numbers[0]}"):
        outputs = [
            keras.layers.concatenate(list(of_output), axis=0, name=name)
            for name, of_output in zip(model.output_names, zip(*parts, strict=True), strict=True)
        ]
    return keras.models.Model(model.inputs, outputs)


def _numbers(gpus: int | Sequence[int] | None) -> list[int]:
    """The numbers of the GPUs."""
    seen = len(tf.config.list_physical_devices("GPU"))
    if gpus is None:
        gpus = seen
    numbers = list(range(gpus)) if isinstance(gpus, int) else list(gpus)
    if len(numbers) < 2 or not set(numbers) <= set(range(seen)):
        raise ValueError(
            f"gpus must be at least 2 of the {seen} GPU(s) that TensorFlow sees, got {gpus!r}"
        )
    return numbers


def _part(batch: Any, i: int, num_parts: int) -> Any:
    """Part i of a batch, [batch, ...]; the last one has what is left over, too."""
    size = tf.shape(batch)[0] // num_parts
    return batch[i * size :] if i == num_parts - 1 else batch[i * size : (i + 1) * size]

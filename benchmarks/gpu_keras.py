"""Keras `fit` on a GPU, in a process of its own: classifiers of `keras.applications`."""

from typing import Any

import tensorflow as tf

from benchmarks.child import Requests
from benchmarks.gpu_work import LEARNING_RATE, NUM_CLASSES, GpuWork, rates
from benchmarks.keras_classifiers import APPLICATIONS
from benchmarks.keras_peer import Clock

keras = tf.keras
_NETWORKS = {**APPLICATIONS, "vgg_16": keras.applications.VGG16}


def serve(requests: Requests, **arguments: Any) -> None:
    """Trains what a `GpuWork` of these arguments says; answers its rate and memory."""
    work = GpuWork(**arguments)
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.experimental.enable_tensor_float_32_execution(work.precision == "tf32")
    policy = "float32" if work.in_float32 else f"mixed_{work.precision}"
    keras.mixed_precision.set_global_policy(policy)
    keras.utils.set_random_seed(1)
    side = work.image_size
    model = _NETWORKS[work.network](
        weights=None,
        input_shape=(side, side, 3),
        classes=NUM_CLASSES,
        classifier_activation=None,
    )
    model.compile(
        keras.optimizers.SGD(LEARNING_RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=work.compiled,
    )
    batch = (
        tf.random.uniform([work.batch_size, side, side, 3]),
        tf.random.uniform([work.batch_size], 0, NUM_CLASSES, tf.int32),
    )
    dataset = tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)
    clock = Clock()

    def fit(steps: int) -> None:
        model.fit(dataset, steps_per_epoch=steps, callbacks=[clock], verbose=0)

    def measure() -> dict[str, float]:
        fit(1 + work.steps)  # its first step is not timed
        return rates(clock.steps_per_sec, work)

    fit(work.warm_up)
    requests.serve(measure)

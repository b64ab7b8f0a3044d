"""Classifiers of `keras.applications`, and cifarnet, in a process of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import keras_peer
from benchmarks.child import Requests
from benchmarks.classifiers import LEARNING_RATE, Work, measure, num_threads

keras = tf.keras


def serve(requests: Requests, **arguments: Any) -> None:
    """Trains what a `Work` of these arguments says; answers "images/s" and "parameters"."""
    work = Work(**arguments)
    tf.config.threading.set_intra_op_parallelism_threads(num_threads())
    tf.config.threading.set_inter_op_parallelism_threads(num_threads())
    keras.utils.set_random_seed(1)
    model = build(work)
    step = step_function(model, work)
    step()
    parameters = sum(int(np.prod(each.shape)) for each in model.trainable_variables)
    requests.serve(lambda: {"parameters": parameters, **measure(step, work)})


def build(work: Work) -> Any:
    """The network of `work`, which computes in its precision from now on, and returns logits."""
    policy = "mixed_bfloat16" if work.precision == "bfloat16" else "float32"
    keras.mixed_precision.set_global_policy(policy)
    shape = (work.image_size, work.image_size, 3)
    if work.network == "cifarnet":
        return keras.Sequential([keras.Input(shape), *keras_peer.cifarnet_layers()])
    return APPLICATIONS[work.network](
        weights=None, input_shape=shape, classes=work.num_classes, classifier_activation=None
    )


def step_function(model: Any, work: Work, jit_compile: bool = False) -> Callable[[], float]:
    """A function that makes a step on a constant batch and returns its loss.

    Args:
      model: makes logits.
      work: the batch.
      jit_compile: whether XLA compiles the step, which is what Keras does by default.
    """
    shape = [work.batch_size, work.image_size, work.image_size, 3]
    images = tf.random.uniform(shape)
    labels = tf.random.uniform([work.batch_size], 0, work.num_classes, tf.int32)
    model.compile(
        keras.optimizers.SGD(LEARNING_RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    return lambda: float(model.train_on_batch(images, labels))


APPLICATIONS: dict[str, Callable[..., Any]] = {
    "resnet_v1_50": keras.applications.ResNet50,
    "inception_v3": keras.applications.InceptionV3,
    "mobilenet_v1": keras.applications.MobileNet,
}

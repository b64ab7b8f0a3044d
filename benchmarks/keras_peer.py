"""Keras `fit` under `MirroredStrategy`, in a process of its own: it needs eager execution."""

import time
from typing import Any

import tensorflow as tf

from benchmarks import images, sizes
from benchmarks.child import Requests

keras = tf.keras


class Clock(keras.callbacks.Callback):
    """Notes the time at the ends of the first and the last execution of a `fit`."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.times: list[tuple[int, float]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # Only the first and the last one are kept.
        self.times[1:] = [(batch, time.perf_counter())]

    @property
    def steps_per_sec(self) -> float:
        """Between these two."""
        (first, began), (last, ended) = self.times
        return (last - first) / (ended - began)


class Model(keras.Sequential):
    """Keras's `fit` with a loop of its own over the steps of an execution.

    Keras 3 puts each step of an execution into a `tf.cond` within a `tf.while_loop`, for datasets
    that end in the middle; on several logical CPUs that fails with "You must feed a value for
    placeholder".  The loop here is what TensorFlow's guides to custom training have.
    """

    def make_train_function(self, force: bool = False) -> None:
        if self.steps_per_execution == 1:
            super().make_train_function(force)
            return
        strategy = self.distribute_strategy

        def run_step(iterator: Any) -> dict[str, Any]:
            logs = strategy.run(self.train_step, args=(next(iterator),))
            return {name: strategy.reduce("MEAN", log, axis=None) for name, log in logs.items()}

        @tf.function
        def run_steps(iterator: Any) -> dict[str, Any]:
            for _ in tf.range(self.steps_per_execution - 1):
                run_step(iterator)
            return run_step(iterator)

        self.train_function = run_steps


def serve(
    requests: Requests,
    *,
    network: str,
    num_clones: int,
    steps: int,
    steps_per_execution: int = 1,
    data_dir: str | None = None,
) -> None:
    """Trains `steps` steps per request; answers "steps/s"."""
    names = use_logical_cpus(num_clones)
    with tf.distribute.MirroredStrategy(names).scope():
        builders = {
            "tiny": lambda: tiny(num_clones),
            "embedding": embedding,
            "cifarnet": lambda: cifarnet(data_dir),
        }
        model, dataset = builders[network]()
        model.compile(
            keras.optimizers.SGD(sizes.LEARNING_RATE),
            "mse"
            if network == "embedding"
            else keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            steps_per_execution=steps_per_execution,
        )
    clock = Clock()

    def fit(num_executions: int) -> None:
        model.fit(
            dataset,
            steps_per_epoch=num_executions * steps_per_execution,
            callbacks=[clock],
            verbose=0,
        )

    def measure() -> dict[str, float]:
        # The first execution of a `fit` starts its iterator and is not timed.
        fit(1 + max(1, steps // steps_per_execution))
        return {"steps/s": clock.steps_per_sec}

    fit(1)
    requests.serve(measure)


def use_logical_cpus(count: int) -> list[str]:
    """Divides the CPU into `count` logical devices; returns their names."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )
    return [f"/cpu:{i}" for i in range(count)]


def tiny(num_clones: int) -> tuple[Any, Any]:
    """The network of `networks.tiny`, and its batch again and again."""
    batch_size = num_clones * sizes.TINY_BATCH_SIZE
    batch = (tf.ones([batch_size, sizes.TINY_INPUTS]), tf.zeros([batch_size], tf.int64))
    model = Model([keras.layers.Dense(sizes.TINY_CLASSES)])
    return model, tf.data.Dataset.from_tensors(batch).repeat()


def embedding() -> tuple[Any, Any]:
    """Random rows of a table that are pulled towards one, as in `sparse_embedding`."""
    shape = [sizes.SENTENCES, sizes.WORDS]

    def random_batch(_: Any) -> tuple[Any, Any]:
        return tf.random.uniform(shape, 0, sizes.ROWS, tf.int64), tf.ones([*shape, sizes.WIDTH])

    model = Model([keras.layers.Embedding(sizes.ROWS, sizes.WIDTH, "zeros")])
    return model, tf.data.Dataset.range(1).repeat().map(random_batch)


class Normalization(keras.layers.Layer):
    """Local response normalization, as in `nets.cifarnet`."""

    def call(self, net: Any) -> Any:
        return tf.nn.lrn(net, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75)


def cifarnet(data_dir: str | None) -> tuple[Any, Any]:
    """The network of `nets.cifarnet`, and the usual input for it."""
    # slim's L2 loss is half of Keras's.
    layers = cifarnet_layers(keras.regularizers.L2(sizes.WEIGHT_DECAY / 2))
    return Model(layers), images.usual_input(data_dir, sizes.BATCH_SIZE)


def cifarnet_layers(decay: Any = None) -> list[Any]:
    """The layers of `nets.cifarnet`; `decay` regularizes the weights of two of them."""
    layers = keras.layers

    def conv() -> Any:
        return layers.Conv2D(64, 5, padding="same", activation="relu")

    def normalization() -> Any:
        # TensorFlow has no kernel for bfloat16 on CPUs.
        return Normalization(dtype="float32")

    def dense(units: int) -> Any:
        return layers.Dense(units, activation="relu", kernel_regularizer=decay)

    return [
        conv(),
        layers.MaxPool2D(2),
        normalization(),
        conv(),
        normalization(),
        layers.MaxPool2D(2),
        layers.Flatten(),
        dense(384),
        layers.Dropout(0.5),
        dense(192),
        layers.Dense(10),
    ]

"""Time of building clones of inception_v3 with their gradients, by calls and by copies.

    python -m benchmarks.graph_building [--rounds=3]

Builds 1, 2, 4 and 8 clones, calling `model_fn` for each one and copying the first one, each
in a process of its own, as `train_image_classifier` does (without tensor equality, with which
calls take longer).  Measures seconds of the processor, which other programs change less than
those of the clock: all is built in one thread.  Goal: 8 clones by copy take at most 2.0 times
the time of one.
"""

import contextlib
import functools
import time
from collections.abc import Iterable, Mapping

from benchmarks.child import Requests, measure_in_new_process
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

UNIT = "processor seconds"
CLONES = (1, 2, 4, 8)
GOAL = 2.0
BATCH_SIZE, NUM_CLASSES = 32, 1000


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table of both ways."""
    network = "cifarnet" if settings.quick else "inception_v3"

    def start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            _name(n, copy): functools.partial(
                measure_in_new_process,
                "benchmarks.graph_building",
                "serve",
                num_clones=n,
                copy=copy,
                network=network,
            )
            for n in CLONES
            for copy in (False, True)
            if n > 1 or not copy
        }

    yield Benchmark(
        title="Graph building",
        does=(
            f"`deploy` of 1 to 8 clones of {network} with gradients: `model_fn` is called for "
            "each clone, or once, and the other clones are copies."
        ),
        quantities=(UNIT,),
        reference=_name(1, False),
        start=start,
        goals=(Goal(UNIT, _name(max(CLONES), True), _name(1, False), GOAL, at_most=True),),
    )


def _name(num_clones: int, copy: bool) -> str:
    return f"{num_clones} by {'copy' if copy else 'call'}"


def serve(requests: Requests, num_clones: int, copy: bool, network: str) -> None:
    """Answers by the seconds of one `deploy`, after a small one that loads what is needed."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    tf.disable_eager_execution()
    tf.disable_tensor_equality()
    _seconds_to_build("cifarnet", 2, copy)
    requests.serve(lambda: {UNIT: _seconds_to_build(network, num_clones, copy)})


def _seconds_to_build(name: str, num_clones: int, copy: bool) -> float:
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - as above

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415
    from nets import nets_factory  # noqa: PLC0415

    network_fn = nets_factory.get_network_fn(name, NUM_CLASSES, 4e-5, is_training=True)
    size = network_fn.default_image_size

    def model_fn() -> None:
        images = tf.random_uniform([BATCH_SIZE, size, size, 3])
        labels = tf.random_uniform([BATCH_SIZE], 0, NUM_CLASSES, tf.int64)
        logits, end_points = network_fn(images)
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if "AuxLogits" in end_points:
            tf.losses.sparse_softmax_cross_entropy(labels, end_points["AuxLogits"], 0.4)

    config = DeploymentConfig(num_clones=num_clones, copy_clones=copy)
    with tf.Graph().as_default():
        start = time.thread_time()
        deploy(config, model_fn, optimizer=tf.train.RMSPropOptimizer(0.1))
        return time.thread_time() - start


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")

"""Time of building clones of inception_v3 with their gradients, and of a large graph's first step.

    python -m benchmarks.graph_building [--rounds=3]

Builds 1, 2, 4 and 8 clones, calling `model_fn` for each one and copying the first one, each
in a process of its own, as `train_image_classifier` does (without tensor equality, with which
calls take longer).  Measures seconds of the processor, which other programs change less than
those of the clock: all is built in one thread.  Goal: 8 clones by copy take at most 2.0 times
the time of one.

The second table is what comes after building: the first step of clones of nasnet_mobile, in which
TensorFlow rewrites the graph, with the options of a session that are TensorFlow's own, and with
`session_config`.  Goal: half of TensorFlow's, and steps that take as long.
"""

import contextlib
import functools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.child import Requests, measure_in_new_process
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

UNIT = "processor seconds"
FIRST, LATER = "processor seconds of the first step", "of a later step"
BUILDING, VARIABLES, REWRITING = "building", "first values", "before the first step"
ALL = "processor seconds of all"
TENSORFLOWS, OURS = "TensorFlow's options", "session_config"
CLONES = (1, 2, 4, 8)
GOAL = 2.0
BATCH_SIZE, NUM_CLASSES = 32, 1000


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """A table of both ways to build, and a table of sessions."""
    yield _building(settings)
    yield _first_steps(settings)


def _building(settings: Settings) -> Benchmark:
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

    return Benchmark(
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


def _first_steps(settings: Settings) -> Benchmark:
    network, num_clones = ("cifarnet", 2) if settings.quick else ("nasnet_mobile", 2)

    return Benchmark(
        title="First step of a large graph",
        does=f"The first step of {num_clones} clones of {network} by copy, and the steps after it.",
        quantities=(FIRST, LATER),
        reference=TENSORFLOWS,
        start=by_options((TENSORFLOWS, True), (OURS, True), network, num_clones, num_later=5),
        goals=(
            Goal(FIRST, OURS, TENSORFLOWS, 0.5, at_most=True),
            Goal(LATER, OURS, TENSORFLOWS, 1.03, at_most=True),
        ),
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


def by_options(
    theirs: tuple[str, bool], ours: tuple[str, bool], network: str, num_clones: int, num_later: int
) -> Callable[[contextlib.ExitStack], Mapping[str, Measure | Absent]]:
    """Returns a benchmark's `start`: a session of TensorFlow's options, and of `session_config`.

    Args:
      theirs: name of the contender with TensorFlow's options, and whether it copies clones.
      ours: the same of the contender with `session_config`.
      network: name of the network.
      num_clones: number of clones.
      num_later: number of steps after the first one.
    """

    def start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            name: functools.partial(
                measure_in_new_process,
                "benchmarks.graph_building",
                "serve_stages",
                network=network,
                num_clones=num_clones,
                copy=copy,
                as_ours=name == ours[0],
                num_later=num_later,
            )
            for name, copy in (theirs, ours)
        }

    return start


def serve_stages(
    requests: Requests, *, network: str, num_clones: int, copy: bool, as_ours: bool, num_later: int
) -> None:
    """Answers by the processor seconds of each stage; a small graph has loaded all modules."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - as above

    from model_deploy import training  # noqa: PLC0415

    tf.disable_eager_execution()
    tf.disable_tensor_equality()
    with tf.Graph().as_default():
        _deploy("cifarnet", 2, copy, batch_size=1)
    with tf.Graph().as_default():
        start = time.process_time()
        model = _deploy(network, num_clones, copy, batch_size=1)
        building = time.process_time() - start
        proto = training.session_config(model.config) if as_ours else None
        initializer = tf.global_variables_initializer()
        with tf.Session(config=proto) as session:
            values = _processor_seconds(session, initializer)
            first, *others = [
                _processor_seconds(session, model.train_op) for _ in range(1 + num_later)
            ]
    later = statistics.median(others)
    taken = {BUILDING: building, VARIABLES: values, REWRITING: first - later}
    measured = {ALL: sum(taken.values()), **taken, FIRST: first, LATER: later}
    requests.serve(lambda: measured)


def _processor_seconds(session: Any, op: Any) -> float:
    start = time.process_time()
    session.run(op)
    return time.process_time() - start


def _seconds_to_build(name: str, num_clones: int, copy: bool) -> float:
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - as above

    with tf.Graph().as_default():
        start = time.thread_time()
        _deploy(name, num_clones, copy, BATCH_SIZE)
        return time.thread_time() - start


def _deploy(name: str, num_clones: int, copy: bool, batch_size: int) -> Any:
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - as above

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415
    from nets import nets_factory  # noqa: PLC0415

    network_fn = nets_factory.get_network_fn(name, NUM_CLASSES, 4e-5, is_training=True)
    size = network_fn.default_image_size

    def model_fn() -> None:
        images = tf.random_uniform([batch_size, size, size, 3])
        labels = tf.random_uniform([batch_size], 0, NUM_CLASSES, tf.int64)
        logits, end_points = network_fn(images)
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if "AuxLogits" in end_points:
            tf.losses.sparse_softmax_cross_entropy(labels, end_points["AuxLogits"], 0.4)

    config = DeploymentConfig(num_clones=num_clones, copy_clones=copy, clone_on_cpu=True)
    return deploy(config, model_fn, optimizer=tf.train.RMSPropOptimizer(0.1))


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")

"""Says what training on many machines would take, by each way, and which to choose.

    python -m model_deploy.plan --model_name=resnet_v1_50 --batch_size=64 --workers=4,16,64 \\
        --bandwidth=10Gbit --step_secs=0.3

Without --step_secs a few steps are made here, on a GPU if there is one.  Nothing is sent anywhere.
"""

import dataclasses
import re
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import model_deploy
from model_deploy import plan
from model_deploy.commands import Options, option, run_command
from model_deploy.importing import lazy_imports
from model_deploy.plan import failures
from model_deploy.settings import PS_STRATEGIES
from nets import nets_factory
from nets.parts.network import Tokens

# Comes with the first step of the plan, as help and refusals need none of the seconds it takes.
tf: Any = lazy_imports.Later("tensorflow.compat.v1")
_UNITS = {"Mbit": 1e6 / 8, "Gbit": 1e9 / 8}
_FRAMES = 64  # of a clip, for networks that take video
_WARM_STEPS, _TIMED_STEPS = 2, 5
_OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.01),
    "momentum": lambda: tf.train.MomentumOptimizer(0.01, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.001),
}


@dataclasses.dataclass(frozen=True)
class PlanOptions(Options):
    """The network to train, and the machines to train it on."""

    model_name: str = option("resnet_v1_50", "name of the network", topic="network")
    num_classes: int = option(1000, "classes of the network", minimum=1, topic="network")
    batch_size: int = option(32, "examples of a clone's step", minimum=1, topic="inputs")
    image_size: int | None = option(
        None, "height and width; default: those of the network", minimum=1, topic="inputs"
    )
    optimizer: str = option(
        "momentum", "for its memory", choices=tuple(_OPTIMIZERS), topic="optimizer"
    )
    num_clones: int = option(1, "clones of each worker", minimum=1, topic="deployment")
    workers: str = option("1,2,4,8,16,32,64", "numbers of workers", topic="deployment")
    ps: str = option("1,2,4,8", "numbers of parameter servers", topic="deployment")
    ps_strategy: str = option(
        "round_robin",
        "how variables are spread",
        choices=PS_STRATEGIES,
        topic="deployment",
    )
    rotate_steps: bool = option(
        False,
        "also all-reduce that leaves a part of each step to the next one, and synchronous "
        "parameter servers that send new values beside the backward pass",
        topic="deployment",
    )
    bandwidth: str = option("10Gbit", "of each link, such as 400Mbit", topic="cluster")
    latency_secs: float = option(0.0002, "of a message", minimum=0, topic="cluster")
    step_secs: float | None = option(
        None, "of a worker by itself; default: measured here", above=0, topic="loop"
    )
    step_deviation: float = option(
        0.0, "standard deviation of step_secs, in seconds", minimum=0, topic="loop"
    )
    hours_between_failures: float | None = option(
        None, "of one machine, on average; default: none fails", above=0, topic="cluster"
    )
    restart_secs: float = option(60.0, "from a failure until steps go on", minimum=0)
    save_secs: float = option(10.0, "how long a save holds up the training", above=0)
    picture: str | None = option(None, "file for images/s over workers, .png or .svg")

    def __post_init__(self) -> None:
        super().__post_init__()
        nets_factory.check_network_name("model_name", self.model_name)
        whole_numbers("workers", self.workers)
        whole_numbers("ps", self.ps)
        bytes_per_sec(self.bandwidth)


def main(options: PlanOptions) -> None:
    """Prints the plan, and draws the picture if asked for."""
    workers, ps = whole_numbers("workers", options.workers), whole_numbers("ps", options.ps)
    link = plan.Link(bytes_per_sec(options.bandwidth), options.latency_secs)
    network, step_secs = _measured(options)
    between = options.hours_between_failures
    given = plan.Circumstances(
        link,
        step_secs,
        options.step_deviation,
        None if between is None else between * failures.HOUR,
        options.restart_secs,
        options.save_secs,
    )
    found = plan.plan_for(network, given, workers, ps, rotate_steps=options.rotate_steps)
    print(
        f"{options.model_name}: {network.trained_bytes / 1e6:,.1f} MB of gradients, "
        f"{network.batch_size} examples and {step_secs:.3g} s of computation per worker and step, "
        f"links of {options.bandwidth}"
    )
    print(plan.table(found))
    if options.picture is not None:
        plan.draw(found, options.picture)


def bytes_per_sec(bandwidth: str) -> float:
    """Parses a bandwidth such as `10Gbit` into bytes per second.

    Raises:
      ValueError: if it has another form.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(Mbit|Gbit)", bandwidth)
    if found is None or not float(found.group(1)):
        raise ValueError(f"bandwidth must be such as 400Mbit or 10Gbit, got {bandwidth!r}")
    return float(found.group(1)) * _UNITS[found.group(2)]


def whole_numbers(flag: str, text: str) -> list[int]:
    """Parses whole numbers such as `4,16,64`, each at least 1.

    Raises:
      ValueError: for anything else.
    """
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"{flag} must be whole numbers such as 4,16,64, got {text!r}")
    return [int(part) for part in parts]


def _measured(options: PlanOptions) -> "tuple[plan.Network, float]":
    """Returns the network, and the seconds of a worker's step, measured if not given."""
    on_cpu = not tf.config.list_physical_devices("GPU")
    config = model_deploy.DeploymentConfig(
        options.num_clones, clone_on_cpu=on_cpu, ps_strategy=options.ps_strategy
    )
    with tf.Graph().as_default():
        model = model_deploy.deploy(
            config, lambda: _add_loss(options), optimizer=_OPTIMIZERS[options.optimizer]()
        )
        network = plan.network_of(model, options.batch_size * options.num_clones)
        if options.step_secs is not None:
            return network, options.step_secs
        return network, _step_secs(model.train_op)


def _add_loss(options: PlanOptions) -> None:
    network_fn = nets_factory.get_network_fn(
        options.model_name, options.num_classes, is_training=True
    )
    logits, _ = network_fn(_examples(options))
    labels = tf.zeros([options.batch_size], tf.int64)
    tf.losses.sparse_softmax_cross_entropy(labels, logits)


def _examples(options: PlanOptions) -> Any:
    taken = nets_factory.get_network(options.model_name).function.inputs  # type: ignore[attr-defined]
    if isinstance(taken, Tokens):
        return tf.zeros([options.batch_size, taken.size], tf.int64)
    size = options.image_size or taken.size
    # Networks for 28 x 28, such as LeNet, take grey images.
    channels = 1 if taken.size == 28 else 3
    frames = [_FRAMES] if taken.rank == 5 else []
    # Random: TensorFlow would compute what depends on constants only once, before the steps.
    return tf.random.uniform([options.batch_size, *frames, size, size, channels])


def _step_secs(train_op: Any) -> float:
    """Returns the median time of a few steps."""
    seconds = []
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        run = session.make_callable(train_op)
        for _ in range(_WARM_STEPS + _TIMED_STEPS):
            began = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[_WARM_STEPS:])


def run(arguments: Sequence[str]) -> int:
    """Runs the command; returns the exit status."""
    return run_command(["plan", *arguments], PlanOptions, main, __doc__)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

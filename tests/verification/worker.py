"""A worker by all-reduce of which a bit flips, once: of a weight that it has stored.

python -m tests.verification.worker --mode=all_reduce --flip_worker=1 --flip_step=33 [more flags]
"""

import dataclasses
import functools
import sys

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import deploy
from model_deploy.commands import option, run_command
from tests import modes
from tests.processes.training import TrainingOptions, build, main
from tests.verification.injector import Injector, flipped


@dataclasses.dataclass(frozen=True)
class FlippingOptions(TrainingOptions):
    """Settings of the run, and which bit flips when."""

    flip_worker: int = option(1, "the worker", minimum=0)
    flip_step: int = option(33, "after this step, counted as the worker has made them", minimum=1)
    flip_bit: int = option(20, "the bit of the first weight", minimum=0, maximum=31)


def _build(options, mode, config, learning_rate):
    """The model of `tests.processes.training`, with an update op that may flip a bit."""
    if config.replica_id != options.flip_worker:
        return build(mode, config, learning_rate)
    injector = Injector()

    def flip():
        [weights] = [v for v in tf.trainable_variables() if v.op.name == "weights"]
        mask = injector.mask("weights", weights.shape, weights.dtype.base_dtype)
        executions = options.flip_step - 1
        if options.verify_every_n_steps:  # these steps are made twice
            executions += (options.flip_step - 1) // options.verify_every_n_steps
        injector.arm("weights", executions, (0, options.flip_bit))
        return tf.assign(weights, flipped(weights.read_value(), mask)).op

    make = functools.partial(deploy, update_ops=[flip])
    return build(mode, config, learning_rate, make)


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")

    def run(options):
        """Runs this process's task."""
        main(options, functools.partial(_build, options))

    cluster_lib.end_process(run_command(sys.argv, FlippingOptions, run, __doc__))

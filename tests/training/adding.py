"""A small program that trains alone: each step adds 1 to weights of 1 MB; the loss is 1.

python -m tests.training.adding --train_dir=DIR [flags of the loop]
"""

import dataclasses
import sys
import time
from pathlib import Path

import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, training
from model_deploy import cluster as cluster_lib
from model_deploy.commands import option, run_command
from tests import modes

SHAPE = [512, 512]


@dataclasses.dataclass(frozen=True)
class AddingOptions(training.LoopOptions):
    """The settings of the loop, and when it may be fast."""

    log_every_n_steps: int = option(1, "steps between lines", minimum=1)
    train_dir: str = option("", "folder for checkpoints")
    gate: str = option("", "file at which the run ends")


class StopAt(tf.train.SessionRunHook):
    """Ends the run after the step that finds a file; steps take 0.02 s."""

    def __init__(self, path):
        self._path = Path(path)

    def due(self, step):
        """Waits a little; takes part in the last step."""
        del step
        time.sleep(0.02)
        return self._path.exists()

    def after_run(self, run_context, run_values):
        """Ends the run."""
        del run_values
        run_context.request_stop()


def main(options):
    """Trains to the end."""

    def model_fn():
        weight = tf.get_variable("weight", SHAPE, initializer=tf.zeros_initializer())
        tf.losses.add_loss(1 + tf.reduce_sum(tf.stop_gradient(weight) - weight))

    model = deploy(
        DeploymentConfig(clone_on_cpu=True),
        model_fn,
        optimizer=tf.train.GradientDescentOptimizer(1),
    )
    training.train(
        model,
        options.train_dir,
        hooks=[StopAt(options.gate)],
        **options.part(training.LoopOptions),
    )


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    cluster_lib.end_process(run_command(sys.argv, AddingOptions, main, __doc__))

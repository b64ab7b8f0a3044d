"""Trains an image classifier on the GPUs of this machine, or as one process of a cluster.

    train_image_classifier --train_dir=digits_run

trains a LeNet on scikit-learn's handwritten digits, on all visible GPUs or else on
two clones on the CPU, and ends with its accuracy on images that it has not seen.  Checkpoints,
metrics and a picture are in the folder; the same command again goes on from there.

    train_image_classifier --dataset_name=folder --dataset_dir=photos --model_name=inception_v3

trains on your own images, `photos/<class>/*.jpg`.
"""

import dataclasses
import os
import sys

from model_deploy import image_training
from model_deploy.cluster import end_process
from model_deploy.commands import run_command
from nets import nets_factory

NETWORKS = image_training.Networks(nets_factory.get_network_fn, nets_factory.built_keras_model)


@dataclasses.dataclass(frozen=True)
class TrainOptions(image_training.TrainOptions):
    """All settings of a training run; each is a flag.

    Raises:
      ValueError: as `image_training.TrainOptions`; for a network that there is not.
    """

    def check_network_name(self) -> None:
        """Lists the networks where the name is of none.

        Raises:
          ValueError: with all names.
        """
        nets_factory.check_network_name("model_name", self.model_name)


def train(options: TrainOptions) -> float | None:
    """Trains by itself and evaluates; returns the test accuracy, see `image_training.train`.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written.
    """
    return image_training.train(options, NETWORKS)


def run_task(options: TrainOptions) -> float | None:
    """Does the part of this process in its cluster; without one, trains by itself.

    Reads the environment.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written, or other tasks are missing.
      SystemExit: in a parameter server, once the run has ended.
    """
    return image_training.train_task(options, NETWORKS, os.environ)


def check_task(options: TrainOptions) -> None:
    """Refuses what `run_task` would refuse, as far as that needs no TensorFlow.

    Raises:
      ValueError: for a setting that breaks a rule.
    """
    image_training.check_task(options, os.environ)


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    return run_command(argv, TrainOptions, run_task, __doc__, check=check_task)


def run() -> None:
    """The command `train_image_classifier`."""
    end_process(main(sys.argv))


if __name__ == "__main__":
    run()

"""Evaluates an image classifier: accuracy, recall at 5, each class, each image.

    eval_image_classifier --train_dir=digits_run

evaluates the newest checkpoint of a run, with the settings that the run has saved, on the
test split.  With `--eval_interval_secs` it evaluates each checkpoint as it appears, until the
run has ended.  `--checkpoint_path` names any other checkpoint; flags describe its network.
"""

import dataclasses
import sys
from typing import TYPE_CHECKING

from model_deploy import image_training
from model_deploy.commands import run_command
from nets import nets_factory

if TYPE_CHECKING:
    from model_deploy.training import Evaluation

NETWORKS = image_training.Networks(nets_factory.get_network_fn)


@dataclasses.dataclass(frozen=True)
class EvalOptions(image_training.EvalOptions):
    """All settings of an evaluation; each is a flag.

    Raises:
      ValueError: as `image_training.EvalOptions`; for a network that there is not.
    """

    def check_network_name(self) -> None:
        """Lists the networks where the name is of none.

        Raises:
          ValueError: with all names.
        """
        nets_factory.check_network_name("model_name", self.model_name)


def evaluate(options: EvalOptions) -> "Evaluation":
    """Evaluates what the options name, writes and prints the results; returns the last one.

    Raises:
      ValueError: for a setting that breaks a rule, or if there is no checkpoint.
      OSError: if the results cannot be written.
    """
    return image_training.evaluate(options, NETWORKS)


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    return run_command(argv, EvalOptions, evaluate, __doc__, saved_in="train_dir")


def run() -> None:
    """The command `eval_image_classifier`."""
    sys.exit(main(sys.argv))


if __name__ == "__main__":
    run()

"""Exports a trained image classifier, to be served or to be used without this package.

    export_image_classifier --train_dir=digits_run --output_dir=digits_model

writes the newest checkpoint of a run as a SavedModel; `--output_file` writes a frozen graph.
"""

import dataclasses
import sys

from model_deploy import image_training
from model_deploy.commands import run_command
from nets import nets_factory

NETWORKS = image_training.Networks(nets_factory.get_network_fn)


@dataclasses.dataclass(frozen=True)
class ExportOptions(image_training.ExportOptions):
    """All settings of an export; each is a flag.

    Raises:
      ValueError: as `image_training.ExportOptions`; for a network that there is not.
    """

    def check_network_name(self) -> None:
        """Lists the networks where the name is of none.

        Raises:
          ValueError: with all names.
        """
        nets_factory.check_network_name("model_name", self.model_name)


def export(options: ExportOptions) -> None:
    """Exports a checkpoint.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the outputs cannot be written.
    """
    image_training.export(options, NETWORKS)


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    return run_command(argv, ExportOptions, export, __doc__, saved_in="train_dir")


def run() -> None:
    """The command `export_image_classifier`."""
    sys.exit(main(sys.argv))


if __name__ == "__main__":
    run()

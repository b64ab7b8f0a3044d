"""The settings of a run in its folder, for other commands and for TensorBoard."""

import dataclasses

from model_deploy import training
from model_deploy.commands import write_options
from model_deploy.image_training.run import PlannedRun


def note_settings(run: PlannedRun) -> None:
    """Writes the settings of the run into its folder, for other commands and for TensorBoard.

    To be called when nothing else can be refused: `training.fitting_checkpoint` has found that the
    checkpoint in the folder is one of this model, and `restore_fn` that another one fits.  So the
    settings of another run stay as they are, and a refused one leaves none.
    """
    # With the step at which it will end: who watches the run wants to know.
    resolved = dataclasses.replace(run.options, max_number_of_steps=run.max_steps)
    write_options(resolved, resolved.train_dir)
    board = training.Board(resolved.train_dir, suffix=".options")
    board.add_settings(dataclasses.asdict(resolved))
    board.close()

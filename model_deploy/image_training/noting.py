"""Writes the options of a run into its folder, for other commands and for TensorBoard."""

import dataclasses

from model_deploy import training
from model_deploy.commands import write_options
from model_deploy.image_training.run import PlannedRun


def note_settings(run: PlannedRun) -> None:
    """Writes the options of the run into its folder, for other commands and for TensorBoard.

    Call it after all checks (`training.fitting_checkpoint` and `restore_fn`), so that a refused run
    does not overwrite the options of an earlier one.
    """
    # With the last step filled in: an evaluation that watches the run stops there.
    resolved = dataclasses.replace(run.options, max_number_of_steps=run.max_steps)
    write_options(resolved, resolved.train_dir)
    board = training.Board(resolved.train_dir, suffix=".options")
    board.add_settings(dataclasses.asdict(resolved))
    board.close()

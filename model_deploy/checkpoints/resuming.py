"""Which checkpoint a run goes on from."""

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints.choosing import check_undamaged, naming_damage
from model_deploy.checkpoints.files import (
    CHANGES_NAME,
    check_fits,
    is_checkpoint,
    steps_in,
)
from model_deploy.checkpoints.good import GoodCheckpoints, listing_of
from model_deploy.checkpoints.manifest import files_of


def checkpoint_to_resume(train_dir: str, resume: str) -> str | None:
    """Returns the checkpoint from which a run starts.

    With `auto` the calling process must be the run's chief: damaged checkpoints are set aside.

    Args:
      train_dir: the folder of the run.
      resume: `auto` for the newest good checkpoint in `train_dir`, if there is any; `never`
        to start anew, in a folder without checkpoints; or the path of a checkpoint.

    Returns:
      The checkpoint's path, or None to start anew.

    Raises:
      ValueError: if a new run would overwrite checkpoints, or `resume` names none; naming the
        file, if all checkpoints are damaged, or the one that `resume` names.
    """
    if resume == "auto":
        return GoodCheckpoints(train_dir, is_own=True).newest()
    if resume == "never":
        if found := listing_of(train_dir).newest_first:
            raise ValueError(
                f"train_dir must hold no checkpoint with resume='never', got {found[0]}; choose "
                "another train_dir, or resume='auto' to go on"
            )
        return None
    path, step = _named_checkpoint(resume)
    every = [*steps_in(train_dir), *steps_in(train_dir, CHANGES_NAME)]
    later = sorted(each for each in every if each > step)
    if later:
        raise ValueError(
            f"train_dir must hold no checkpoint after step {step} of resume={resume!r}, got "
            f"step {later[-1]}, which the run would overwrite; choose another train_dir"
        )
    return path


def resume_under_way(train_dir: str, resume: str) -> str:
    """Returns the `resume` setting with which a run that has begun continues.

    Args:
      train_dir: the folder of the run.
      resume: the setting with which the run began, see `checkpoint_to_resume`.

    Returns:
      `auto`; or the given path, while the run has no checkpoint of its own.

    Raises:
      ValueError: if there is no checkpoint where `resume` says.
    """
    if resume in ("auto", "never"):
        return "auto"
    _, step = _named_checkpoint(resume)
    return "auto" if any(each > step for each in steps_in(train_dir)) else resume


def _named_checkpoint(resume: str) -> tuple[str, int]:
    """Returns the checkpoint that `resume` names, or the newest in that folder, and its step."""
    is_folder = not is_checkpoint(resume) and file_systems.is_folder(resume)
    path = GoodCheckpoints(resume).newest() if is_folder else resume
    if path is None or not (is_checkpoint(path) or files_of(path)):
        raise ValueError(
            f"resume must be 'auto', 'never' or the path of a checkpoint, got {resume!r}"
        )
    check_undamaged("resume", path)
    reader = tf.train.NewCheckpointReader(path)
    if not reader.has_tensor(tf.GraphKeys.GLOBAL_STEP):
        raise ValueError(f"resume must be a checkpoint with a global_step, got {path} without")
    with naming_damage("resume", path):
        return path, int(reader.get_tensor(tf.GraphKeys.GLOBAL_STEP))


def fitting_checkpoint(train_dir: str, resume: str) -> str | None:
    """Returns the checkpoint to continue from, checked against the graph's global variables.

    Args:
      train_dir: folder of the run.
      resume: as for `checkpoint_to_resume`.

    Returns:
      The checkpoint's path; None to start anew.

    Raises:
      ValueError: as `checkpoint_to_resume`; if the checkpoint is of another model.
    """
    path = checkpoint_to_resume(train_dir, resume)
    if path is not None:
        check_fits(path, resume)
    return path

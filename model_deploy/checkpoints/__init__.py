"""Checkpoints: finding, restoring, comparing and saving them."""

from model_deploy.checkpoints.background import OneAtATime
from model_deploy.checkpoints.best import BEST_DIR, BestCheckpoint
from model_deploy.checkpoints.changes import changes_since, merge
from model_deploy.checkpoints.choosing import Restorer, checkpoints_in
from model_deploy.checkpoints.files import (
    checkpoint_to_resume,
    describe_counts,
    few,
    fitting_checkpoint,
    is_checkpoint,
    resume_under_way,
    step_of,
)
from model_deploy.checkpoints.restoring import (
    MISSING,
    RESTORED,
    SKIPPED,
    FineTuneOptions,
    VariableRow,
    by_name,
    check_rows,
    check_start,
    compare,
    excluded_names,
    find_checkpoint,
    restore_fn,
    table,
    variables_to_train,
)
from model_deploy.checkpoints.saved import variables_to_save
from model_deploy.checkpoints.saving import CheckpointWriter, report_unfinished
from model_deploy.checkpoints.storage import NotSavedError, Storage, is_lost_connection
from model_deploy.checkpoints.watching import CheckpointWatch, clear_end, mark_end

__all__ = [
    "BEST_DIR",
    "MISSING",
    "RESTORED",
    "SKIPPED",
    "BestCheckpoint",
    "CheckpointWatch",
    "CheckpointWriter",
    "FineTuneOptions",
    "NotSavedError",
    "OneAtATime",
    "Restorer",
    "Storage",
    "VariableRow",
    "by_name",
    "changes_since",
    "check_rows",
    "check_start",
    "checkpoint_to_resume",
    "checkpoints_in",
    "clear_end",
    "compare",
    "describe_counts",
    "excluded_names",
    "few",
    "find_checkpoint",
    "fitting_checkpoint",
    "is_checkpoint",
    "is_lost_connection",
    "mark_end",
    "merge",
    "report_unfinished",
    "restore_fn",
    "resume_under_way",
    "step_of",
    "table",
    "variables_to_save",
    "variables_to_train",
]

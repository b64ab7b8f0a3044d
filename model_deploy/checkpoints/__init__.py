"""Checkpoints: finding, restoring, comparing and saving them."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.checkpoints.background import OneAtATime
    from model_deploy.checkpoints.best import BEST_DIR, BestCheckpoint
    from model_deploy.checkpoints.best_value import BEST_FILE
    from model_deploy.checkpoints.changes import changes_since, merge
    from model_deploy.checkpoints.choosing import (
        Restorer,
        checkpoints_in,
        find_checkpoint,
        with_checkpoint,
    )
    from model_deploy.checkpoints.damage import UNREADABLE, DamagedCheckpointError
    from model_deploy.checkpoints.files import (
        check_fits,
        describe_counts,
        few,
        is_checkpoint,
        step_of,
    )
    from model_deploy.checkpoints.fine_tune_options import FineTuneOptions
    from model_deploy.checkpoints.good import GoodCheckpoints, say_once
    from model_deploy.checkpoints.restoring import (
        MISSING,
        RESTORED,
        SKIPPED,
        VariableRow,
        by_name,
        check_rows,
        check_start,
        compare,
        excluded_names,
        restore_fn,
        table,
        variables_to_train,
    )
    from model_deploy.checkpoints.resuming import (
        checkpoint_to_resume,
        fitting_checkpoint,
        resume_under_way,
    )
    from model_deploy.checkpoints.saved import variables_to_save
    from model_deploy.checkpoints.saving import CheckpointWriter, report_unfinished
    from model_deploy.checkpoints.source import Source
    from model_deploy.checkpoints.storage import NotSavedError, Storage, is_lost_connection
    from model_deploy.checkpoints.watching import CheckpointWatch, clear_end, mark_end

__all__ = [
    "BEST_DIR",
    "BEST_FILE",
    "MISSING",
    "RESTORED",
    "SKIPPED",
    "UNREADABLE",
    "BestCheckpoint",
    "CheckpointWatch",
    "CheckpointWriter",
    "DamagedCheckpointError",
    "FineTuneOptions",
    "GoodCheckpoints",
    "NotSavedError",
    "OneAtATime",
    "Restorer",
    "Source",
    "Storage",
    "VariableRow",
    "by_name",
    "changes_since",
    "check_fits",
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
    "say_once",
    "step_of",
    "table",
    "variables_to_save",
    "variables_to_train",
    "with_checkpoint",
]

import_when_used(__name__)

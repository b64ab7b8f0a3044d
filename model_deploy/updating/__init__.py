"""Changes of variables in a step: which ops make them, on which condition, which ops come after."""

from model_deploy.updating.after_update import ops_after
from model_deploy.updating.applying import apply_changes, split_functions, with_functions
from model_deploy.updating.changes import (
    Change,
    ChangeOfParts,
    PartUpdates,
    changes_by_parts,
    part_updates,
)
from model_deploy.updating.conditions import Condition, may_change_state
from model_deploy.updating.gates import check_updates_wait, gate_op, note_gate
from model_deploy.updating.late import note_late, read_late
from model_deploy.updating.loss_scale import LossScale
from model_deploy.updating.replica_counts import note_replica_counts, replica_counts, shared_out

__all__ = [
    "Change",
    "ChangeOfParts",
    "Condition",
    "LossScale",
    "PartUpdates",
    "apply_changes",
    "changes_by_parts",
    "check_updates_wait",
    "gate_op",
    "may_change_state",
    "note_gate",
    "note_late",
    "note_replica_counts",
    "ops_after",
    "part_updates",
    "read_late",
    "replica_counts",
    "shared_out",
    "split_functions",
    "with_functions",
]

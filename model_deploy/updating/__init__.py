"""What changes a variable in a step, on which condition, and what comes after it."""

from model_deploy.updating.after_update import ops_after
from model_deploy.updating.changes import Change, PartUpdates, changes_by_parts, part_updates
from model_deploy.updating.gates import check_updates_wait, gate_op, note_gate
from model_deploy.updating.guards import AlwaysOpen, Guard
from model_deploy.updating.loss_scale import LossScale
from model_deploy.updating.replica_counts import note_replica_counts, replica_counts, shared_out

__all__ = [
    "AlwaysOpen",
    "Change",
    "Guard",
    "LossScale",
    "PartUpdates",
    "changes_by_parts",
    "check_updates_wait",
    "gate_op",
    "note_gate",
    "note_replica_counts",
    "ops_after",
    "part_updates",
    "replica_counts",
    "shared_out",
]

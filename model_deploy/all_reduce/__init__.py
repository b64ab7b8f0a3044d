"""Copies of the variables for training by all-reduce: one copy per clone, kept equal."""

from model_deploy.all_reduce.equal_copies import average_state, copies_difference, note_alike
from model_deploy.all_reduce.fingerprints import CopiesFingerprints
from model_deploy.all_reduce.own_values import (
    OwnValues,
    has_own_values,
    note_common,
    note_own,
    own_variables,
    rows_of_replicas,
)
from model_deploy.all_reduce.sessions import (
    added_by,
    session_config,
    set_up_session,
    uses_nccl,
)
from model_deploy.all_reduce.start import StartHook, add_start_hook, sendable_variables
from model_deploy.all_reduce.state_updates import mean_changes
from model_deploy.all_reduce.variable_copies import VariableCopies

__all__ = [
    "CopiesFingerprints",
    "OwnValues",
    "StartHook",
    "VariableCopies",
    "add_start_hook",
    "added_by",
    "average_state",
    "copies_difference",
    "has_own_values",
    "mean_changes",
    "note_alike",
    "note_common",
    "note_own",
    "own_variables",
    "rows_of_replicas",
    "sendable_variables",
    "session_config",
    "set_up_session",
    "uses_nccl",
]

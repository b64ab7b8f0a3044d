"""Training by all-reduce: each clone has its own variables, and all sum their gradients."""

from model_deploy.all_reduce.sessions import added_by, session_config, uses_nccl
from model_deploy.all_reduce.start import add_start_hook, numeric_variables
from model_deploy.all_reduce.step import (
    apply_gradients,
    average_state,
    copies_difference,
)
from model_deploy.all_reduce.variable_copies import VariableCopies

__all__ = [
    "VariableCopies",
    "add_start_hook",
    "added_by",
    "apply_gradients",
    "average_state",
    "copies_difference",
    "numeric_variables",
    "session_config",
    "uses_nccl",
]

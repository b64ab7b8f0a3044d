"""Parameter servers: shared reads of variables, synchronous updates, the global step."""

from model_deploy.parameter_servers.early_updates import EarlyUpdates
from model_deploy.parameter_servers.feature import SharedReads
from model_deploy.parameter_servers.fence import Fence, note_fence, noted_fence, repeats_steps
from model_deploy.parameter_servers.messages import keep_indices, send_ids, send_rows
from model_deploy.parameter_servers.reads_ahead import noted_reads_ahead
from model_deploy.parameter_servers.shared_reads import is_remote, pack_gradients
from model_deploy.parameter_servers.step_counter import StepCounter
from model_deploy.parameter_servers.synchronous import SynchronousOptimizer
from model_deploy.parameter_servers.unsaved import unsaved_variable, value_of

__all__ = [
    "EarlyUpdates",
    "Fence",
    "SharedReads",
    "StepCounter",
    "SynchronousOptimizer",
    "is_remote",
    "keep_indices",
    "note_fence",
    "noted_fence",
    "noted_reads_ahead",
    "pack_gradients",
    "repeats_steps",
    "send_ids",
    "send_rows",
    "unsaved_variable",
    "value_of",
]

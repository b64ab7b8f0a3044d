"""Parameter servers: shared reads, synchronous updates, the count of steps."""

from model_deploy.parameter_servers.fence import Fence, note_fence, noted_fence, repeats_steps
from model_deploy.parameter_servers.narrow_reads import narrow_reads
from model_deploy.parameter_servers.shared_reads import pack_gradients, pack_reads, share_reads
from model_deploy.parameter_servers.step_counter import StepCounter
from model_deploy.parameter_servers.synchronous import SharedUpdate, SynchronousOptimizer

__all__ = [
    "Fence",
    "SharedUpdate",
    "StepCounter",
    "SynchronousOptimizer",
    "narrow_reads",
    "note_fence",
    "noted_fence",
    "pack_gradients",
    "pack_reads",
    "repeats_steps",
    "share_reads",
]

"""Parameter servers: shared reads, synchronous updates, the count of steps."""

from model_deploy.parameter_servers.narrow_reads import narrow_reads
from model_deploy.parameter_servers.shared_reads import pack_gradients, pack_reads, share_reads
from model_deploy.parameter_servers.step_counter import StepCounter
from model_deploy.parameter_servers.synchronous import SynchronousOptimizer

__all__ = [
    "StepCounter",
    "SynchronousOptimizer",
    "narrow_reads",
    "pack_gradients",
    "pack_reads",
    "share_reads",
]

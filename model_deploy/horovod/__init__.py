"""Programs of Horovod in graph mode: its API, over TensorFlow's collective ops and servers.

`import model_deploy.horovod as hvd` in place of `import horovod.tensorflow as hvd`.
"""

from model_deploy.horovod.built import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from model_deploy.horovod.operations import allgather, allreduce, alltoall, broadcast
from model_deploy.horovod.optimizer import DistributedGradientTape, DistributedOptimizer
from model_deploy.horovod.reductions import Adasum, Average, Compression, Sum
from model_deploy.horovod.variables import (
    BroadcastGlobalVariablesHook,
    broadcast_global_variables,
    broadcast_variables,
)
from model_deploy.horovod.world import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    session_config,
    session_target,
    shutdown,
    size,
)

__all__ = [
    "Adasum",
    "Average",
    "BroadcastGlobalVariablesHook",
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "Sum",
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "rocm_built",
    "session_config",
    "session_target",
    "shutdown",
    "size",
]

"""GPUs: settings, sessions, ops without GPU kernels, and errors that say what to do."""

from model_deploy.gpus.kernels import cpu_beside, has_gpu_kernel, is_gpu, placing
from model_deploy.gpus.memory import Holder, device_errors_explained, gpu_holders
from model_deploy.gpus.sessions import is_divided, session_config, use_tf32

__all__ = [
    "Holder",
    "cpu_beside",
    "device_errors_explained",
    "gpu_holders",
    "has_gpu_kernel",
    "is_divided",
    "is_gpu",
    "placing",
    "session_config",
    "use_tf32",
]

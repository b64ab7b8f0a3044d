"""Options that sessions and servers need for the GPUs of a deployment."""

import copy
from typing import Any

import tensorflow as tf

from model_deploy.settings import GpuSettings


def session_config(settings: GpuSettings, *, on_cpu: bool, base: Any = None) -> Any:
    """Returns a `ConfigProto` for the servers and sessions of a process.

    Clones on the CPU hide all GPUs, as even an unused GPU would cost memory.  For clones on GPUs:

    - memory is allocated as needed (`allow_growth`), or a fraction of it at the start;
    - tensors for a GPU are in pinned memory (`force_gpu_compatible`), so that they are copied while
      the GPU computes, and not copied twice;
    - TensorFlow's layout rewriting is off where `data_format` names a layout.

    CPUs have no kernels for `NCHW`: there TensorFlow rewrites the ops.  For clones on the CPU
    TensorFlow rewrites a graph once, not twice, and does not change how sums are made to save
    memory, which pays on GPUs: the first step of a large graph takes half as long, later steps as
    long as before.  Other values of the two options in `base` stay.

    The first session of a process fixes the GPU options of all later ones.

    Args:
      settings: settings of the deployment.
      on_cpu: whether the clones are on the CPU.
      base: a `tf.compat.v1.ConfigProto` to copy and extend; by default an empty one.
    """
    proto = tf.compat.v1.ConfigProto() if base is None else copy.deepcopy(base)
    if on_cpu:
        proto.device_count["GPU"] = 0
        rewriting = proto.graph_options.rewrite_options
        if settings.data_format == "NCHW":
            rewriting.cpu_layout_conversion = rewriting.NCHW_TO_NHWC
        if rewriting.meta_optimizer_iterations == rewriting.DEFAULT_NUM_ITERS:
            rewriting.meta_optimizer_iterations = rewriting.ONE
        if rewriting.memory_optimization == rewriting.DEFAULT_MEM_OPT:
            rewriting.memory_optimization = rewriting.NO_MEM_OPT
        return proto
    if settings.gpu_memory_fraction is None:
        proto.gpu_options.allow_growth = True
    else:
        proto.gpu_options.per_process_gpu_memory_fraction = settings.gpu_memory_fraction
    proto.gpu_options.force_gpu_compatible = True
    if settings.data_format != "auto":
        rewriting = proto.graph_options.rewrite_options
        rewriting.layout_optimizer = rewriting.OFF
    return proto


def is_divided(proto: Any) -> bool:
    """Whether a `ConfigProto` divides a GPU into logical ones, between which NCCL does not work."""
    cut = proto.gpu_options.experimental.virtual_devices
    return any(len(each.memory_limit_mb) > 1 for each in cut)


def use_tf32(settings: GpuSettings) -> None:
    """Turns TF32, which rounds factors of float32 products on GPUs, on or off for this process.

    It is a setting of the process, and on by default.
    """
    tf.config.experimental.enable_tensor_float_32_execution(settings.tf32)

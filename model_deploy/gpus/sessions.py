"""What sessions and servers need for the GPUs of a deployment."""

import copy
from typing import Any

import tensorflow as tf

from model_deploy.settings import GpuSettings


def session_config(settings: GpuSettings, *, on_cpu: bool, base: Any = None) -> Any:
    """A `ConfigProto` for the servers and sessions of a process.

    Clones on the CPU take no GPU, not even the memory that a GPU costs which is not used.  For
    clones on GPUs:

    - memory is taken as it is needed (`allow_growth`), or a share of it at the start;
    - what the CPU hands to a GPU lies in pinned memory (`force_gpu_compatible`), from where a copy
      goes on while the GPU computes; else it would be copied once more on the way;
    - the rewriting of layouts is off where `data_format` names one.

    The CPU has no kernels for `NCHW`: there TensorFlow rewrites such ops.

    The first session of a process decides for its GPUs, and later ones get what is there.

    Args:
      settings: those of the deployment.
      on_cpu: whether its clones are on the CPU.
      base: a `tf.compat.v1.ConfigProto` to start from; it is not changed.
    """
    proto = tf.compat.v1.ConfigProto() if base is None else copy.deepcopy(base)
    if on_cpu:
        proto.device_count["GPU"] = 0
        if settings.data_format == "NCHW":
            rewriting = proto.graph_options.rewrite_options
            rewriting.cpu_layout_conversion = rewriting.NCHW_TO_NHWC
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
    """Whether sessions of a `ConfigProto` see a GPU as several, between which there is no NCCL."""
    cut = proto.gpu_options.experimental.virtual_devices
    return any(len(each.memory_limit_mb) > 1 for each in cut)


def use_tf32(settings: GpuSettings) -> None:
    """Lets the GPUs of this process round the factors of float32 products, or not.

    That is TensorFlow's setting of the whole process, which has it on unless somebody says.
    """
    tf.config.experimental.enable_tensor_float_32_execution(settings.tf32)

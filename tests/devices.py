"""On which devices tests put clones: logical CPUs, or GPUs with `pytest --gpu`.

One GPU is cut into four logical ones: kernels, copies between devices and memory are real, NCCL and
speed are not.  Several GPUs are used as they are.
"""

import functools
import os
import subprocess

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

# For the programs that tests start, too.
_GPU = "MODEL_DEPLOY_TESTS_GPU"
_PARTS = 4
# Where `nvidia-smi` does not say how much is free.
_MEGABYTES = 8000
# Of the free memory; what is left is for the libraries of CUDA, in this process and others.
_SHARE = 0.8


def use_gpus():
    """Lets the tests of this process, and the programs that they start, use GPUs."""
    os.environ[_GPU] = "1"
    # Sessions that say nothing shall not take a whole GPU.
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    # A product in float32 is one, as on the CPU.
    tf.config.experimental.enable_tensor_float_32_execution(False)


def on_gpus():
    """Whether clones are on GPUs."""
    return bool(os.environ.get(_GPU))


def num_gpus():
    """How many GPUs TensorFlow sees, before they are cut."""
    return len(tf.config.list_physical_devices("GPU"))


def count():
    """How many devices there are for clones; None where there are as many as anybody asks for."""
    if not on_gpus():
        return None
    return _PARTS if num_gpus() == 1 else num_gpus()


def of_clone(device):
    """The device on which tests put what is asked for on a GPU.

    More clones than GPUs share them in turn.
    """
    if not on_gpus():
        return device.replace("GPU", "CPU")
    spec = tf.DeviceSpec.from_string(device)
    return spec.replace(device_index=spec.device_index % count()).to_string()


def need(number):
    """Skips a test that needs more devices than there are, each for itself."""
    if on_gpus() and count() < number:
        pytest.skip(f"needs {number} GPUs, got {count()}")


@functools.cache
def _has_channels_first():
    """Whether TensorFlow has kernels for images with channels first where the clones are."""
    with tf1.Graph().as_default(), tf1.Session(config=session_config(4)) as session:
        images = tf1.placeholder_with_default(tf.zeros([1, 3, 4, 4]), None)
        try:
            session.run(tf.nn.max_pool2d(images, 2, 2, "SAME", data_format="NCHW"))
        except tf.errors.InvalidArgumentError:
            return False
    return True


def need_channels_first():
    """Skips a test of images with channels first where TensorFlow cannot compute with them."""
    if not on_gpus() and not _has_channels_first():
        pytest.skip("TensorFlow has no channels first on this CPU: oneDNN is off without AVX-512")


def session_config(num_devices):
    """A session config with several devices, and no other placement than asked for."""
    proto = tf1.ConfigProto(device_count={"CPU": num_devices})
    if on_gpus():
        proto.gpu_options.allow_growth = True
        if num_gpus() == 1:
            cut = proto.gpu_options.experimental.virtual_devices.add()
            cut.memory_limit_mb.extend([_megabytes() // _PARTS] * _PARTS)
    return proto


def _megabytes():
    """Memory that may be used of the one GPU; noted, as sessions have to agree."""
    noted = os.environ.get(f"{_GPU}_MB")
    if noted is None:
        noted = str(int(_SHARE * _free_megabytes()))
        os.environ[f"{_GPU}_MB"] = noted
    return int(noted)


def _free_megabytes():
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, check=True, timeout=10)
        return int(found.stdout.split()[0])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return _MEGABYTES

"""Errors of devices say what to do, and who else holds a GPU."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, gpus, train
from model_deploy.commands import Options, run_command
from tests import harness

pytestmark = pytest.mark.one_mode

# What `nvidia-smi` answers on a machine with two GPUs, the second of which two processes hold.
TOOL = """#!/bin/sh
case "$1" in
  --query-gpu=index,uuid,name) echo "0, GPU-aa, NVIDIA H100"; echo "1, GPU-bb, NVIDIA H100" ;;
  --query-compute-apps=*) echo "GPU-bb, 4242, python3, 70000"; echo "GPU-bb, 17, /opt/a b, 9" ;;
esac
"""
HELD = "process 4242 (python3) holds 70000 MiB of GPU 1 (NVIDIA H100)"
# As TensorFlow gives it, with another line before.
MESSAGE = """Graph execution error:

OOM when allocating tensor with shape[32,64] and type float on GPU:0 by allocator GPU_0_bfc
\t [[{{node clone_0/conv}}]]"""
FULL = tf.errors.ResourceExhaustedError(None, None, MESSAGE)
LINE = "OOM when allocating tensor with shape[32,64] and type float on GPU:0 by allocator GPU_0_bfc"


def _fake_tool(monkeypatch, folder, source):
    path = folder / "nvidia-smi"
    path.write_text(source)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """An `nvidia-smi` on the path."""
    _fake_tool(monkeypatch, tmp_path, TOOL)


@pytest.mark.usefixtures("tool")
def test_holders_are_named():
    """Each process that holds a GPU is named with the GPU's number and name."""
    assert [str(each) for each in gpus.gpu_holders()] == [
        HELD,
        "process 17 (/opt/a b) holds 9 MiB of GPU 1 (NVIDIA H100)",
    ]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("#!/bin/sh\nexit 9\n", id="fails"),
        pytest.param("#!/bin/sh\necho no devices were found\n", id="answers otherwise"),
    ],
)
def test_holders_are_not_known(tmp_path, monkeypatch, source):
    """A tool that does not know names nobody."""
    _fake_tool(monkeypatch, tmp_path, source)
    assert gpus.gpu_holders() == []


def test_no_tool(tmp_path, monkeypatch):
    """Where there is no `nvidia-smi` nobody is named."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.gpu_holders() == []


@pytest.mark.usefixtures("tool")
def test_out_of_memory_says_what_to_try():
    """An allocation that fails names batch size, ways out, and who else holds a GPU."""
    with pytest.raises(MemoryError) as raised, gpus.device_errors_explained(32, own_pid=17):
        raise FULL
    assert str(raised.value) == (
        f"a batch of 32 for each clone does not fit into memory: {LINE}; try a smaller batch_size, "
        "more accumulate_steps of smaller batches, which make the same update, or "
        f"precision=bfloat16; {HELD}"
    )
    assert raised.value.__cause__ is FULL


@pytest.mark.slow
def test_tensorflow_says_so_when_memory_is_used_up():
    """More than any machine has is what TensorFlow calls so; it tries for 10 seconds."""
    too_much = tf.fill(tf.placeholder_with_default([1 << 45], [1]), 1.0)
    with (
        tf.Session() as session,
        pytest.raises(MemoryError, match="a batch does not fit into memory: OOM when allocating"),
        gpus.device_errors_explained(),
    ):
        session.run(tf.reduce_max(too_much))


@pytest.mark.usefixtures("tool")
def test_a_gpu_that_cannot_be_used_names_its_holder():
    """What CUDA refuses is an error of one line, with the processes that hold a GPU."""
    error = tf.errors.InternalError(
        None, None, "cudaSetDevice() on GPU:0 failed. Status: CUDA-capable device(s) is/are busy\n"
    )
    message = r"a GPU could not be used: cudaSetDevice.* busy; process 4242 \(python3\)"
    with pytest.raises(OSError, match=message), gpus.device_errors_explained():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "Sent message larger than max (5 vs. 4)"),
        tf.errors.InternalError(None, None, "a kernel of its own"),
        ValueError("another"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_stay(error):
    """What has nothing to do with a device's memory goes through as it is."""
    with pytest.raises(type(error)) as raised, gpus.device_errors_explained(32):
        raise error
    assert raised.value is error


class Full(tf.train.SessionRunHook):
    """Fails as a step does on a GPU that is full."""

    def before_run(self, run_context):
        """Raises TensorFlow's error."""
        raise FULL


def test_training_says_what_to_try(tmp_path):
    """`train` says how large the batch of a clone was that did not fit."""
    config = DeploymentConfig(num_clones=2, clone_on_cpu=True, accumulate_steps=3)

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.identity(weight))

    model = deploy(config, model_fn, optimizer=harness.sgd())
    with pytest.raises(MemoryError, match="a batch of 4 for each clone does not fit into memory"):
        train(model, tmp_path, max_steps=2, images_per_step=24, hooks=[Full()])


def test_commands_say_it_in_a_line(capsys):
    """A command ends with the message, and exit code 1."""

    def function(options):
        with gpus.device_errors_explained(8):
            raise FULL

    assert run_command(["command"], Options, function, "") == 1
    assert "error: a batch of 8 for each clone does not fit" in capsys.readouterr().err

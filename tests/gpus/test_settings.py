"""Settings of GPUs: their rules, where gradients are summed, and which GPUs a process sees."""

import io
import os

import pytest

import train_image_classifier as script
from model_deploy import DeploymentConfig, training
from model_deploy.cluster import Cluster, ClusterOptions, own_gpus
from model_deploy.commands import parse_options
from model_deploy.image_training.banner import print_banner
from model_deploy.image_training.run import plan
from model_deploy.launch import Launcher, LaunchOptions
from model_deploy.launch.task import task_gpus
from model_deploy.processes import visible_gpus
from tests import harness
from tests.goldens import BATCH_LAW_GOLDENS, GOLDENS
from tests.launch.programs import program

RULES = [
    ({"aggregate_on": "tpu"}, "aggregate_on must be one of cpu, gpu, all_reduce.*, got 'tpu'"),
    (
        {"aggregate_on": "gpu", "clone_on_cpu": True},
        "aggregate_on must be cpu or all_reduce with clone_on_cpu=True, got 'gpu'",
    ),
    (
        {"aggregate_on": "gpu", "all_reduce": True},
        "aggregate_on must be all_reduce with all_reduce=True, got 'gpu'",
    ),
    (
        {"aggregate_on": "cpu", "all_reduce": True},
        "aggregate_on must be all_reduce with all_reduce=True, got 'cpu'",
    ),
    (
        {"aggregate_on": "all_reduce", "num_ps_tasks": 1},
        "num_ps_tasks must be 0 with all_reduce=True, got 1",
    ),
    (
        {"gpu_memory_fraction": 0.0},
        "gpu_memory_fraction must be more than 0 and at most 1, got 0.0",
    ),
    ({"gpu_memory_fraction": 1.5}, "gpu_memory_fraction must be .* at most 1, got 1.5"),
    ({"gpu_memory_fraction": "0.5"}, "gpu_memory_fraction must be .* at most 1, got '0.5'"),
    ({"gpu_memory_fraction": True}, "gpu_memory_fraction must be .* at most 1, got True"),
    ({"tf32": 1}, "tf32 must be True or False, got 1"),
    ({"data_format": "CHWN"}, "data_format must be one of auto, NHWC, NCHW, got 'CHWN'"),
]


@pytest.mark.parametrize(("options", "message"), RULES)
def test_config_rejects(options, message):
    """A setting that breaks a rule is an error that names field, rule and value."""
    with pytest.raises(ValueError, match=message):
        DeploymentConfig(**options)


def test_all_reduce_by_its_other_name():
    """`aggregate_on="all_reduce"` is `all_reduce=True`, in configs and in options."""
    assert DeploymentConfig(aggregate_on="all_reduce").all_reduce
    assert training.DeploymentOptions(aggregate_on="all_reduce").all_reduce
    assert not DeploymentConfig(aggregate_on="cpu").all_reduce


def test_asynchronous_clones_sum_nothing():
    """Clones that update by themselves have no sum that could be on a GPU."""
    with pytest.raises(ValueError, match="aggregate_on must be cpu with asynchronous=True"):
        training.DeploymentOptions(aggregate_on="gpu", asynchronous=True)


def test_flags_are_those_of_the_config():
    """Each setting of GPUs has a flag of its name, which reaches the config."""
    given = {"aggregate_on": "gpu", "gpu_memory_fraction": 0.5, "tf32": True, "data_format": "NHWC"}
    config = training.deployment_config(training.DeploymentOptions(**given), num_gpus=2)
    assert {name: getattr(config, name) for name in given} == given


class SumsOnCPUs(DeploymentConfig):
    """Asks for GPUs, and puts clone i on `CPU:i`."""

    def clone_device(self, clone_index):
        """The clone's GPU, with CPU in place of GPU."""
        return super().clone_device(clone_index).replace("GPU", "CPU")


def _run(name, **options):
    """The run, and the device of each sum of gradients."""
    run = harness.Replica(SumsOnCPUs(num_clones=4, **options), GOLDENS[name], harness.adam)
    sums = {
        op.name.removesuffix("/sum_grads"): op.device
        for op in run.graph.get_operations()
        if op.type == "AddN" and op.name.endswith("/sum_grads")
    }
    return run(), sums


@pytest.mark.one_mode
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_sums_on_the_devices_of_clones_train_as_on_the_cpu(name):
    """Shared sums of gradients are the same sums, each on the device that had the least to do."""
    plain, of_cpu = _run(name)
    run, of_clones = _run(name, aggregate_on="gpu")
    assert set(of_cpu.values()) <= {"/device:CPU:0"}
    assert of_clones.keys() == of_cpu.keys()
    expected = {f"/device:CPU:{i}" for i in range(min(4, len(of_clones)))}
    assert set(of_clones.values()) == expected
    harness.assert_equal(run, plain)


def test_sums_on_gpus_ask_for_gpus():
    """In the graph the sums of dense gradients are on the GPUs of the clones, rows on the CPU."""
    config = DeploymentConfig(num_clones=2, aggregate_on="gpu")
    graph = harness.Replica(config, GOLDENS["embedding"], harness.adam).graph
    devices = {op.name: op.device for op in graph.get_operations() if op.name.endswith("sum_grads")}
    assert devices == {
        "table/sum_grads": "/device:CPU:0",
        "logits/weights/sum_grads": "/device:GPU:0",
        "logits/biases/sum_grads": "/device:GPU:1",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,1", ["0", "1"]),
        (" 3 , GPU-8f1a", ["3", "GPU-8f1a"]),
        ("MIG-aa/1/0,2", ["MIG-aa/1/0", "2"]),
        ("1,-1,2", ["1"]),
    ],
)
def test_visible_gpus_are_read_as_cuda_reads_them(text, expected):
    """Numbers and names count up to the first that is none."""
    environ = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    assert visible_gpus.listed(environ) == expected


def test_gpus_of_the_machine(tmp_path, monkeypatch):
    """Without `CUDA_VISIBLE_DEVICES` it is `nvidia-smi` that counts them, if it is there."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\n[ "$1" = --query-gpu=index ] && echo 0 && echo 1\n')
    tool.chmod(0o755)
    assert visible_gpus.on_this_machine() == ["0", "1"]
    tool.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus.on_this_machine() is None


@pytest.mark.parametrize(
    ("num_workers", "gpus", "expected"),
    [
        pytest.param(1, ["0", "1"], {"worker 0": None, "ps 0": "-1"}, id="one worker has all"),
        pytest.param(
            2, ["4", "5", "6"], {"worker 0": "4", "worker 1": "5", "ps 0": "-1"}, id="equal shares"
        ),
        pytest.param(
            2, ["7"], {"worker 0": "7", "worker 1": "7", "ps 0": "-1"}, id="one GPU for two"
        ),
        pytest.param(
            2, None, {"worker 0": None, "worker 1": None, "ps 0": "-1"}, id="nobody knows"
        ),
        pytest.param(2, [], {"worker 0": "-1", "worker 1": "-1", "ps 0": "-1"}, id="none"),
    ],
)
def test_launched_tasks_divide_the_gpus(num_workers, gpus, expected):
    """Workers get equal shares of the GPUs that the launcher sees, parameter servers none."""
    assert task_gpus(num_workers, 1, gpus) == expected


SLURM = {"SLURM_STEP_GPUS": "0,1,2,3", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}


@pytest.mark.parametrize(
    ("task", "environ", "expected"),
    [
        pytest.param(("worker", 0), SLURM, "0,1", id="first of two on a machine"),
        pytest.param(
            ("worker", 1), {**SLURM, "SLURM_LOCALID": "2"}, "2,3", id="second, after a ps"
        ),
        pytest.param(("worker", 2), SLURM, None, id="alone on its machine"),
        pytest.param(("ps", 0), SLURM, "-1", id="parameter server"),
        pytest.param(("ps", 0), {}, "-1", id="parameter server without SLURM"),
        pytest.param(
            ("worker", 1), {**SLURM, "CUDA_VISIBLE_DEVICES": "1"}, None, id="bound by --gpu-bind"
        ),
        pytest.param(
            ("worker", 1), {**SLURM, "SLURM_GPUS_PER_TASK": "4"}, None, id="--gpus-per-task"
        ),
        pytest.param(("worker", 1), {"SLURM_STEP_GPUS": "0,1"}, None, id="no GPU is visible"),
        pytest.param(("worker", 1), {"CUDA_VISIBLE_DEVICES": "0,1"}, None, id="without SLURM"),
        pytest.param(
            ("worker", 1),
            {"SLURM_JOB_GPUS": "4,5", "CUDA_VISIBLE_DEVICES": "0,1"},
            "1",
            id="of a job whose step says nothing",
        ),
    ],
)
def test_workers_of_slurm_divide_what_all_of_them_see(task, environ, expected):
    """What SLURM has bound stays; else workers of a machine divide its GPUs in their order."""
    cluster = Cluster(["a:2", "a:3", "b:1"], ["a:1"], *task)
    assert own_gpus(environ, cluster) == expected


def test_launched_tasks_see_their_gpus(tmp_path):
    """The processes of a launch have their share in the environment, and the launcher says so."""
    terminal = io.BytesIO()
    source = 'print(task["type"], task["index"], os.environ.get("CUDA_VISIBLE_DEVICES"))'
    options = LaunchOptions(num_workers=2, num_ps=1)
    addresses = ["h:1", "h:2", "h:3"]
    launcher = Launcher(
        options, addresses, program(source), tmp_path, terminal, gpus=["0", "1", "2", "3"]
    )
    assert launcher.run() == 0
    lines = terminal.getvalue().decode().splitlines()
    assert lines[0] == "launch| GPUs of worker 0: 0,1, worker 1: 2,3"
    assert {line.partition("| ")[2] for line in lines[1:] if "| process " not in line} == {
        "chief 0 0,1",
        "worker 0 2,3",
        "ps 0 -1",
    }


def test_a_worker_of_slurm_takes_its_share(monkeypatch, capsys):
    """A task that joins its cluster sees its GPUs only, and says which."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    options = ClusterOptions(worker_hosts="a:1,a:2", task_id=1)
    environ = {"SLURM_STEP_GPUS": "4,5", "CUDA_VISIBLE_DEVICES": "4,5"}
    training.join_cluster(environ, options)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
    assert "CUDA_VISIBLE_DEVICES=5" in capsys.readouterr().out


def test_banner_says_what_adds_up(capsys):
    """One line of the banner says by what all-reduce sums gradients."""
    options = parse_options(
        ["train", "--all_reduce", "--num_clones=2", "--clone_on_cpu"], script.TrainOptions
    )
    print_banner(plan(options))
    assert (
        "all-reduce: each clone has its own copy of the variables, added up by a ring in the "
        "memory of the CPU\n"
    ) in capsys.readouterr().out

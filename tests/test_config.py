"""`DeploymentConfig`: devices and scopes as TF-Slim users know them, and clear errors."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig

CPU = "/device:CPU:0"


def test_fields_are_those_of_tf_slim_in_order():
    """Old code may pass the fields by position; the rest is by keyword only, and off."""
    fields = dataclasses.fields(DeploymentConfig)
    assert [(f.name, f.default) for f in fields if not f.kw_only] == [
        ("num_clones", 1),
        ("clone_on_cpu", False),
        ("replica_id", 0),
        ("num_replicas", 1),
        ("num_ps_tasks", 0),
        ("worker_job_name", "worker"),
        ("ps_job_name", "ps"),
    ]
    assert {f.name: f.default for f in fields if f.kw_only} == {
        **dict.fromkeys(("accumulate_steps", "devices_per_clone"), 1),
        **dict.fromkeys(("precision", "wire_precision"), "float32"),
        **{"data_format": "auto", "first_part": 0, "ps_strategy": "round_robin"},
        **dict.fromkeys(("all_reduce", "asynchronous", "copy_clones"), False),
        **dict.fromkeys(("rotate_steps", "sync_batch_norm", "tf32", "xla"), False),
        **dict.fromkeys(("aggregate_on", "global_parts", "gpu_memory_fraction"), None),
        **dict.fromkeys(("loss_scale", "replicas_to_aggregate", "worker_task"), None),
        **dict.fromkeys(("local_steps", "gradient_rank"), None),
        **{"outer_learning_rate": 1.0, "outer_momentum": 0.0},
        **{"outer_parts": 1, "outer_overlap": 0},
    }


def test_config_is_frozen():
    """A config cannot change after its check."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        DeploymentConfig().num_clones = 2


@pytest.mark.parametrize(
    ("options", "clone_devices", "worker_cpu"),
    [
        pytest.param({}, ["/device:GPU:0"], CPU, id="one clone"),
        pytest.param({"clone_on_cpu": True}, [CPU], CPU, id="on the CPU"),
        pytest.param({"num_clones": 2}, ["/device:GPU:0", "/device:GPU:1"], CPU, id="two"),
        pytest.param({"num_clones": 2, "clone_on_cpu": True}, [CPU, CPU], CPU, id="two on the CPU"),
        pytest.param(
            {"num_ps_tasks": 1}, ["/job:worker/device:GPU:0"], f"/job:worker{CPU}", id="ps"
        ),
        pytest.param(
            {"num_ps_tasks": 1, "num_replicas": 2, "replica_id": 1, "worker_task": 5},
            ["/job:worker/task:5/device:GPU:0"],
            f"/job:worker/task:5{CPU}",
            id="a server of another number",
        ),
        pytest.param(
            {"num_ps_tasks": 2, "num_replicas": 3, "replica_id": 1, "num_clones": 2},
            ["/job:worker/task:1/device:GPU:0", "/job:worker/task:1/device:GPU:1"],
            f"/job:worker/task:1{CPU}",
            id="replicas name their task",
        ),
        pytest.param(
            {"num_ps_tasks": 1, "worker_job_name": "w", "ps_job_name": "p"},
            ["/job:w/device:GPU:0"],
            f"/job:w{CPU}",
            id="other job names",
        ),
        pytest.param({"num_clones": np.int64(1)}, ["/device:GPU:0"], CPU, id="NumPy integer"),
        pytest.param(
            {"num_clones": 3, "devices_per_clone": 2},
            ["/device:GPU:0", "/device:GPU:2", "/device:GPU:4"],
            CPU,
            id="two devices each",
        ),
        pytest.param(
            {"num_clones": 2, "devices_per_clone": 2, "clone_on_cpu": True},
            ["/device:CPU:0", "/device:CPU:2"],
            CPU,
            id="two CPU devices each",
        ),
    ],
)
def test_devices(options, clone_devices, worker_cpu):
    """Clones sit on GPUs or the CPU of their worker, optimizer and inputs on its CPU."""
    config = DeploymentConfig(**options)
    assert [config.clone_device(i) for i in range(config.num_clones)] == clone_devices
    assert config.optimizer_device() == config.inputs_device() == worker_cpu


def test_clone_scopes():
    """One clone has no scope; several are numbered."""
    assert DeploymentConfig().clone_scope(0) == ""
    config = DeploymentConfig(num_clones=2)
    assert [config.clone_scope(i) for i in range(2)] == ["clone_0", "clone_1"]


def test_part_scopes():
    """A clone's parts are numbered in its scope; one part alone has the scope of the clone."""
    assert DeploymentConfig(accumulate_steps=2).part_scope(0, 1) == "part_1"
    config = DeploymentConfig(num_clones=2, accumulate_steps=3)
    assert [config.part_scope(1, part) for part in (0, 2)] == ["clone_1/part_0", "clone_1/part_2"]
    assert DeploymentConfig(num_clones=2).part_scope(1, 0) == "clone_1"
    assert DeploymentConfig().part_scope(0, 0) == ""


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (3, "part must be less than accumulate_steps=3, got 3"),
        (-1, "part must be at least 0, got -1"),
        (1.0, "part must be an integer, got 1.0"),
    ],
)
def test_part_is_checked(part, message):
    """A part that a clone does not have is an error, not a scope."""
    with pytest.raises(ValueError, match=message):
        DeploymentConfig(accumulate_steps=3).part_scope(0, part)


def test_batches_per_step():
    """Each part of each clone has a batch of its own, on the device of the clone."""
    config = DeploymentConfig(num_clones=2, accumulate_steps=3)
    assert config.batches_per_step == 6
    arguments = config.input_arguments()
    assert arguments["num_clones"] == 6
    assert arguments["clone_devices"] == ["/device:GPU:0"] * 3 + ["/device:GPU:1"] * 3


def test_without_ps():
    """Without ps tasks variables are on the CPU and are not cached elsewhere."""
    config = DeploymentConfig(num_clones=2)
    assert config.variables_device() == CPU
    assert config.caching_device() is None
    assert (config.ps_device, config.worker_device) == ("", "")


def test_with_ps(variable_kind):
    """With ps tasks variables take them in turn; ops and caches stay where they are."""
    config = DeploymentConfig(num_ps_tasks=2)
    assert (config.ps_device, config.worker_device) == ("/job:ps", "/job:worker")
    with tf.device(config.variables_device()):
        a, b, c = (tf.get_variable(name, [3]) for name in "abc")
        op = tf.no_op()
    assert [v.device for v in (a, b, c)] == [f"/job:ps/task:{t}{CPU}" for t in (0, 1, 0)]
    assert op.device == ""
    cached = config.caching_device()
    assert cached(op) == ""
    with tf.device("/device:GPU:1"):
        assert cached(tf.no_op()) == "/device:GPU:1"


def test_variables_device_starts_anew():
    """Each device function starts with task 0, so that two graphs agree."""
    config = DeploymentConfig(num_ps_tasks=2)
    for name in "ab":
        with tf.device(config.variables_device()):
            assert tf.get_variable(name, []).device == f"/job:ps/task:0{CPU}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"num_clones": 0}, "num_clones must be at least 1, got 0", id="zero"),
        pytest.param({"num_clones": -2}, "num_clones must be at least 1, got -2", id="negative"),
        pytest.param({"num_clones": "2"}, "num_clones must be an integer, got '2'", id="string"),
        pytest.param({"num_clones": 2.0}, "num_clones must be an integer, got 2.0", id="float"),
        pytest.param({"num_clones": True}, "num_clones must be an integer, got True", id="bool"),
        pytest.param({"worker_task": -1}, "worker_task must be at least 0, got -1", id="no task"),
        pytest.param({"clone_on_cpu": 1}, "clone_on_cpu must be True or False, got 1", id="int"),
        pytest.param(
            {"first_part": 1}, "first_part must be 0 without global_parts, got 1", id="1st"
        ),
        pytest.param(
            {"global_parts": 2},
            "global_parts must be None without all_reduce=True and without num_ps_tasks, got 2",
            id="alone",
        ),
        pytest.param(
            {"all_reduce": True, "global_parts": 2, "sync_batch_norm": True},
            "sync_batch_norm must be False with global_parts, got True",
            id="norms by parts",
        ),
        pytest.param(
            {"num_ps_tasks": 1, "global_parts": 2, "copy_clones": True},
            "copy_clones must be False with global_parts, got True",
            id="copies of parts",
        ),
        pytest.param(
            {"all_reduce": True, "global_parts": 3, "accumulate_steps": 2, "first_part": 2},
            r"at least num_replicas=1 and first_part \+ accumulate_steps = 2 \+ 2, got 3",
            id="parts",
        ),
        pytest.param(
            {"sync_batch_norm": "all"}, "sync_batch_norm must be True or False, got 'all'", id="all"
        ),
        pytest.param(
            {"copy_clones": True, "all_reduce": True},
            "copy_clones must be False with all_reduce=True, got True",
            id="copies of variables",
        ),
        pytest.param(
            {"devices_per_clone": 2, "all_reduce": True},
            "devices_per_clone must be 1 with all_reduce=True, got 2",
            id="stages and all-reduce",
        ),
        pytest.param({"xla": 1}, "xla must be True or False, got 1", id="xla"),
        pytest.param(
            {"copy_clones": None}, "copy_clones must be True or False, got None", id="copy"
        ),
        pytest.param(
            {"devices_per_clone": 0}, "devices_per_clone must be at least 1, got 0", id="no device"
        ),
        pytest.param(
            {"devices_per_clone": 1.5}, "devices_per_clone must be an integer, got 1.5", id="half"
        ),
        pytest.param(
            {"accumulate_steps": 0}, "accumulate_steps must be at least 1, got 0", id="no batch"
        ),
        pytest.param(
            {"accumulate_steps": True}, "accumulate_steps must be an integer, got True", id="yes"
        ),
        pytest.param(
            {"accumulate_steps": "4"}, "accumulate_steps must be an integer, got '4'", id="text"
        ),
        pytest.param({"replica_id": -1}, "replica_id must be at least 0, got -1", id="replica"),
        pytest.param(
            {"replica_id": 1}, "replica_id must be less than num_replicas=1, got 1", id="too large"
        ),
        pytest.param({"num_replicas": 0}, "num_replicas must be at least 1, got 0", id="none"),
        pytest.param(
            {"num_replicas": 2},
            "num_ps_tasks must be at least 1 with num_replicas=2, got 0",
            id="replicas without ps",
        ),
        pytest.param({"num_ps_tasks": -1}, "num_ps_tasks must be at least 0, got -1", id="ps"),
        pytest.param(
            {"worker_job_name": ""}, "worker_job_name must be a letter .* got ''", id="no worker"
        ),
        pytest.param({"ps_job_name": None}, "ps_job_name must be a letter .* got None", id="no ps"),
        pytest.param(
            {"ps_job_name": "worker"},
            "ps_job_name must differ from worker_job_name, got 'worker'",
            id="one job",
        ),
        pytest.param(
            {"ps_strategy": "random"},
            "ps_strategy must be one of round_robin, balanced, got 'random'",
            id="strategy",
        ),
        pytest.param(
            {"num_ps_tasks": 1, "wire_precision": "float16"},
            "wire_precision must be one of float32, bfloat16, got 'float16'",
            id="wire",
        ),
        pytest.param(
            {"num_clones": 2, "wire_precision": "bfloat16"},
            "wire_precision must be 'float32' with num_replicas=1 and num_ps_tasks=0, where "
            "nothing crosses a process border, got 'bfloat16'",
            id="nothing on the wire",
        ),
        pytest.param(
            {"all_reduce": True, "wire_precision": "bfloat16"},
            "wire_precision must be 'float32' with num_replicas=1 .* got 'bfloat16'",
            id="all-reduce of one process",
        ),
    ],
)
def test_config_rejects(options, message):
    """A config that cannot be built names the field, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        DeploymentConfig(**options)


@pytest.mark.parametrize("method", ["clone_device", "clone_scope"])
@pytest.mark.parametrize(
    ("index", "message"),
    [
        (-1, "clone_index must be at least 0, got -1"),
        (2, "clone_index must be less than num_clones=2, got 2"),
        ("0", "clone_index must be an integer, got '0'"),
    ],
)
def test_clone_index_is_checked(method, index, message):
    """A clone that the config does not have is an error, not a device."""
    with pytest.raises(ValueError, match=message):
        getattr(DeploymentConfig(num_clones=2), method)(index)


@pytest.mark.parametrize(
    ("options", "devices"),
    [
        pytest.param({}, ["/device:GPU:{}"] * 4, id="GPUs"),
        pytest.param({"clone_on_cpu": True}, ["/device:CPU:{}"] * 4, id="CPUs"),
        pytest.param({"num_ps_tasks": 1}, ["/job:worker/device:GPU:{}"] * 4, id="ps"),
    ],
)
def test_stage_devices(options, devices):
    """Clone i of k stages owns the devices i k to i k + k - 1."""
    config = DeploymentConfig(num_clones=2, devices_per_clone=2, **options)
    owned = [config.stage_device(clone, stage) for clone in (0, 1) for stage in (0, 1)]
    assert owned == [name.format(i) for i, name in enumerate(devices)]
    assert [config.clone_device(clone) for clone in (0, 1)] == [owned[0], owned[2]]


@pytest.mark.parametrize(
    ("clone", "stage", "message"),
    [
        (0, 2, "stage must be less than devices_per_clone=2, got 2"),
        (0, -1, "stage must be at least 0, got -1"),
        (0, "1", "stage must be an integer, got '1'"),
        (1, 0, "clone_index must be less than num_clones=1, got 1"),
    ],
)
def test_stage_is_checked(clone, stage, message):
    """A stage or a clone that the config does not have is an error, not a device."""
    with pytest.raises(ValueError, match=message):
        DeploymentConfig(devices_per_clone=2).stage_device(clone, stage)


def test_partitioner_rejects():
    """Variables cannot be cut below one byte."""
    with pytest.raises(ValueError, match="min_bytes must be at least 1, got 0"):
        DeploymentConfig().partitioner(0)

"""The place of a process, what its environment says, and who gets its variables."""

import json
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import model_deploy.horovod as hvd
from model_deploy.horovod.environment import Job, job_of
from model_deploy.tf1.importing import OldProgram
from model_deploy.tf1.running import _GONE
from tests.horovod import jobs

pytestmark = pytest.mark.one_mode


def _tf_config(index, workers=("a:1", "b:1", "a:2", "b:2", "a:3"), ps=()):
    cluster = {"worker": list(workers), **({"ps": list(ps)} if ps else {})}
    return {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
    }


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, {"rank": 0, "size": 1, "cross_size": 1}, id="alone"),
        pytest.param(
            _tf_config(3),
            {"rank": 3, "size": 5, "local_rank": 1, "local_size": 2, "cross_rank": 1},
            id="second-of-its-machine",
        ),
        pytest.param(
            _tf_config(4), {"local_rank": 2, "local_size": 3, "cross_size": 1}, id="third"
        ),
        pytest.param(
            {**_tf_config(1), "HOROVOD_RANK": "1", "HOROVOD_SIZE": "5"}, {"rank": 1}, id="agrees"
        ),
        pytest.param(
            {
                "HOROVOD_FUSION_THRESHOLD": "0",
                "HOROVOD_START_TIMEOUT": "30",
                "HOROVOD_STALL_CHECK_TIME_SECONDS": "5",
                "HOROVOD_LOG_LEVEL": "WARNING",
                "HOROVOD_TIMELINE": "a",
                "HOROVOD_AUTOTUNE": "1",
            },
            {
                "pack_bytes": 0,
                "start_timeout": 30.0,
                "stall_secs": 5.0,
                "log_level": "warning",
                "unheeded": ("HOROVOD_AUTOTUNE", "HOROVOD_TIMELINE"),
            },
            id="settings",
        ),
        pytest.param(
            {"HOROVOD_STALL_CHECK_DISABLE": "1"}, {"stall_secs": float("inf")}, id="no-stalls"
        ),
    ],
)
def test_jobs(environ, expected):
    """The place comes from the cluster, settings from Horovod's variables; others are named."""
    job = job_of(environ)
    assert {name: getattr(job, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        pytest.param({"HOROVOD_SIZE": "4"}, "HOROVOD_SIZE must be .* 1, got 4: start", id="none"),
        pytest.param(
            {**_tf_config(1), "HOROVOD_LOCAL_RANK": "1"}, "LOCAL_RANK must .* 0, got 1", id="other"
        ),
        pytest.param({"HOROVOD_FUSION_THRESHOLD": "1e"}, "at least 0, got '1e'", id="number"),
        pytest.param({"HOROVOD_LOG_LEVEL": "loud"}, "trace, .*, got 'loud'", id="level"),
        pytest.param(_tf_config(0, ps=["c:1"]), "workers only .* got 1 parameter", id="ps"),
    ],
)
def test_refused_environments(environ, message):
    """A variable that cannot be heeded says which it is."""
    with pytest.raises(ValueError, match=message):
        job_of(environ)


def test_init_is_once_and_first(monkeypatch, capsys):
    """Calls before `init` say so; a second `init` changes nothing; variables are named once."""
    monkeypatch.setenv("HOROVOD_CYCLE_TIME", "1")
    hvd.shutdown()
    with pytest.raises(ValueError, match=r"hvd\.init\(\) must be called first"):
        hvd.rank()
    for _ in range(2):
        hvd.init()
    assert (hvd.is_initialized(), hvd.size(), hvd.local_size(), hvd.cross_rank()) == (True, 1, 1, 0)
    assert (hvd.session_target(), hvd.session_config()) == ("", None)
    assert capsys.readouterr().err.count("change nothing here: HOROVOD_CYCLE_TIME") == 1
    hvd.shutdown()
    assert not hvd.is_initialized()
    with pytest.raises(ValueError, match=r"comm must be None.*, got \[0\]"):
        hvd.init(comm=[0])


@pytest.mark.parametrize(
    ("optimizer", "arguments", "message"),
    [
        pytest.param(None, {}, "must be a tf.train.Optimizer or one of Keras, got None", id="kind"),
        pytest.param(
            tf.train.AdamOptimizer, {}, "or one of Keras, got <class .*AdamOptimizer'>", id="class"
        ),
        pytest.param(..., {"backward_passes_per_step": 0}, "at least 1, got 0", id="passes"),
        pytest.param(
            ...,
            {"op": hvd.Sum, "gradient_predivide_factor": 2.0},
            "must be 1 but for hvd.Average, got 2",
            id="predivide",
        ),
    ],
)
def test_refused_optimizers(optimizer, arguments, message):
    """An optimizer that graph mode cannot have, and arguments that do not go together."""
    optimizer = tf.train.GradientDescentOptimizer(1.0) if optimizer is ... else optimizer
    with jobs.joined_as(), pytest.raises(ValueError, match=message):
        hvd.DistributedOptimizer(optimizer, **arguments)


@pytest.mark.parametrize(("pack_bytes", "packs"), [(0, 3), (1 << 20, 1)])
def test_small_gradients_travel_together(pack_bytes, packs):
    """Up to so many bytes of gradients are summed by one op; with 0 each by its own."""
    values = [tf.get_variable(name, [4]) for name in "abc"]
    loss = tf.add_n([tf.reduce_sum(value) for value in values])
    with jobs.joined_as(0, 2, pack_bytes=pack_bytes):
        hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(1.0)).minimize(loss)
    types_ = [op.type for op in tf.get_default_graph().get_operations()]
    assert types_.count("CollectiveReduce") == packs


def test_sparse_gradients_of_several_passes_are_refused():
    """They would have to be made dense, which is for the program to ask for."""
    table = tf.get_variable("table", [3, 2])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1]))
    with jobs.joined_as():
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        made = hvd.DistributedOptimizer(optimizer, backward_passes_per_step=2)
        with pytest.raises(ValueError, match=r"sparse_as_dense must be True .* gradient of table"):
            made.minimize(loss)


def test_a_restored_process_gives_all_its_values(tmp_path):
    """Worker 0 alone has a checkpoint: after the hook all have its values, the step too."""

    def build(rank, value):
        weights = tf.get_variable("weights", initializer=[value + rank])
        hook = hvd.BroadcastGlobalVariablesHook(0)
        step = tf.train.get_or_create_global_step()
        hook.begin()  # here, where rank and size are those of the process
        return hook, step.assign_add(1), [weights, step]

    jobs.run_monitored(1, lambda rank: build(rank, 7.0), tmp_path)
    found = jobs.run_monitored(2, lambda rank: build(rank, 0.0), tmp_path)
    assert [int(step) for _, step in found] == [2, 2]
    assert [np.ravel(weights).tolist() for weights, _ in found] == [[7.0], [7.0]]


def test_other_frameworks_are_refused(tmp_path):
    """To programs of the runner `horovod.torch` is an ImportError that names what to use."""
    module = types.ModuleType("program")
    program = OldProgram([str(tmp_path)])
    program.prepare(module)
    exec("import horovod.tensorflow as hvd", module.__dict__)
    assert module.hvd.DistributedOptimizer is hvd.DistributedOptimizer
    for line in ("import horovod.torch as hvd", "from horovod import torch"):
        with pytest.raises(ImportError, match=r"horovod\.torch is not for .*torch\.distributed"):
            exec(line, module.__dict__)
    with pytest.raises(ImportError) as refused:
        exec("import horovod.mxnet", module.__dict__)
    assert _GONE.search(str(refused.value))  # one line, by the runner


def test_job_alone():
    """A job that nobody describes is of one process."""
    assert job_of({}) == Job()

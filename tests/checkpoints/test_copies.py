"""Copies of values in memory: what is written from them is what the variables had, bit by bit."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import CheckpointWriter, OneAtATime
from model_deploy.checkpoints.copies import Copies
from model_deploy.checkpoints.free_memory import free_memory
from model_deploy.checkpoints.kept import save
from model_deploy.checkpoints.saved import variables_to_save
from model_deploy.checkpoints.state_file import read_state
from model_deploy.training import RowAdamOptimizer
from tests import clusters, harness
from tests.embeddings import models
from tests.goldens import GOLDENS, LogicalDevices

_SERVERS = {"num_ps_tasks": 2}


def _row_adam():
    return RowAdamOptimizer(0.02)


def _read(path):
    """All values of a checkpoint as bytes, by name."""
    reader = tf.train.load_checkpoint(path)
    return {n: reader.get_tensor(n).tobytes() for n in reader.get_variable_to_shape_map()}


def _assign_all():
    """Gives each float variable other values, as a whole and by rows."""
    done = []
    for variable in tf.global_variables():
        if variable.dtype.base_dtype == tf.float32:
            with tf.device(variable.device):
                whole = tf.assign(variable, 2 * variable + 1)
            with tf.control_dependencies([whole]), tf.device(variable.device):
                done.append(tf.assign_add(variable, tf.ones_like(whole)))
                if variable.shape.rank:
                    row = tf.zeros_like(variable.read_value()[:1])
                    done.append(tf.scatter_update(variable, [0], row))
    return tf.group(*done)


@pytest.mark.parametrize(
    ("model", "make", "fields", "by_servers"),
    [
        pytest.param("slim_mlp", harness.adam, {"num_clones": 2}, False, id="dense"),
        pytest.param("embedding", harness.momentum, {}, False, id="sparse"),
        pytest.param("embedding", _row_adam, {}, False, id="by rows", marks=pytest.mark.one_mode),
        pytest.param(
            "batch_norm",
            harness.sgd,
            {"num_clones": 2},
            False,
            id="batch norm",
            marks=pytest.mark.one_mode,
        ),
        pytest.param(
            "tied_embedding",
            harness.adam,
            _SERVERS,
            False,
            id="servers",
            marks=pytest.mark.one_mode,
        ),
        pytest.param("tied_embedding", harness.adam, _SERVERS, True, id="by servers"),
        pytest.param(
            "convolution",
            harness.momentum,
            {"num_clones": 2, "all_reduce": True},
            False,
            id="all-reduce",
        ),
        # Variables of tables are resource variables in both modes.
        pytest.param(
            models.growing(),
            harness.momentum,
            {},
            False,
            id="growing",
            marks=pytest.mark.one_mode,
        ),
        pytest.param(
            models.growing(),
            _row_adam,
            _SERVERS,
            True,
            id="growing, by servers",
            marks=pytest.mark.one_mode,
        ),
    ],
)
def test_later_updates_do_not_change_copies(model, make, fields, by_servers, tmp_path):
    """A checkpoint of copies has the bits of one that was written before the steps after them."""
    target = ""
    if "num_ps_tasks" in fields:
        [target] = clusters.workers(1)
    golden = GOLDENS[model] if isinstance(model, str) else models.golden(model)
    replica = harness.Replica(LogicalDevices(**fields), golden, make)
    with replica.graph.as_default():
        change = _assign_all()
        old, copies = (
            kind(variables_to_save(), lambda saved: tf.train.Saver(saved, sharded=by_servers), *of)
            for kind, of in ((lambda saved, new: new(saved), ()), (Copies, ("test",)))
        )
        with replica.open(target) as session:
            replica.start()
            replica.step()
            expected, now, later = (str(tmp_path / name) for name in ("old", "copies", "later"))
            save(old, session, expected)
            copies.take(session)
            for _ in range(2):
                replica.step()
                session.run(change)
            save(copies.saver, session, now, in_thread=True)
            save(old, session, later)
            copies.free(session)
            with pytest.raises((tf.errors.FailedPreconditionError, tf.errors.NotFoundError)):
                save(copies.saver, session, later)
            assert copies.is_whole
    assert _read(now) == _read(expected)
    changed = [name for name, value in _read(later).items() if value != _read(now)[name]]
    assert len(changed) >= len(replica.variables) / 2


@pytest.mark.one_mode
@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "remote"])
def test_steps_go_on_while_it_is_written(is_remote, tmp_path, capsys):
    """Steps are made while 32 MB are written, and the file has the values of the step it is of."""
    folder = f"ram:/{tmp_path}" if is_remote else str(tmp_path)
    step = tf.train.get_or_create_global_step()
    shape = [8, 1024, 1024]
    weight = tf.get_variable("weight", shape, initializer=tf.zeros_initializer())
    update = tf.group(tf.assign_add(step, 1), tf.assign_add(weight, tf.ones(shape)))
    proto = tf.ConfigProto(inter_op_parallelism_threads=1)  # which writing does not take
    writer = CheckpointWriter(folder, 1, in_background=True)
    with tf.Session(config=proto) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(update)
            saved = int(session.run(step))
            writer.save_soon(session, saved)
            while f"model.ckpt-{saved}.index" not in file_systems.names_in(folder, "*.index"):
                session.run(update)
            writer.wait()
            assert session.run(step) > saved
            reader = tf.train.NewCheckpointReader(f"{folder}/model.ckpt-{saved}")
            assert reader.get_tensor("global_step") == saved
            np.testing.assert_array_equal(reader.get_tensor("weight"), np.full(shape, saved))
    assert file_systems.names_in(folder, "*.index") == [f"model.ckpt-{saved}.index"]
    assert read_state(folder).newest == f"{folder}/model.ckpt-{saved}"
    assert capsys.readouterr().err == "whole checkpoints are copied in memory: 33.6 MB\n"


_GROUP = {
    "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 5000 kB\n",
    "proc/self/cgroup": "0::/job/task\n",
    "sys/fs/cgroup/job/task/memory.max": "max\n",
    "sys/fs/cgroup/job/task/memory.current": "500\n",
}
_LIMIT = {"sys/fs/cgroup/job/memory.max": "9000", "sys/fs/cgroup/job/memory.current": "7000"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, None, id="unknown"),
        pytest.param(_GROUP, 5000 * 1024, id="no limit"),
        pytest.param(_GROUP | _LIMIT, 9000 - 7000, id="limit"),
        pytest.param(
            _GROUP | _LIMIT | {"sys/fs/cgroup/job/memory.stat": "anon 1\ninactive_file 600\n"},
            9000 - 7000 + 600,
            id="cached files",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:memory:/docker/1\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "800",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "300",
            },
            800 - 300,
            id="version 1, in a container",
        ),
    ],
)
@pytest.mark.one_mode
def test_free_memory(files, expected, tmp_path):
    """It is what the machine has, or what is left of the least limit of the process's groups."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert free_memory(tmp_path) == expected


@pytest.mark.one_mode
def test_copies_that_do_not_fit(tmp_path, monkeypatch, capsys):
    """Without memory for copies steps wait for the checkpoint, which is said once."""
    monkeypatch.setattr("model_deploy.checkpoints.copies.free_memory", lambda: 1_000_000)
    tf.get_variable("weight", [512, 1024])
    writer = CheckpointWriter(str(tmp_path), 5, in_background=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in (1, 2):
            writer.save_soon(session, step)
            assert writer.newest == str(tmp_path / f"model.ckpt-{step}")
    assert capsys.readouterr().err == (
        "no copies for whole checkpoints, which stop the steps: they take 2.1 MB of memory, and "
        "1.0 MB are free\n"
    )


@pytest.mark.one_mode
def test_one_at_a_time(capsys):
    """The next one waits a moment for a short one, and is skipped behind a long one, in a line."""
    release, written = threading.Event(), []
    thread = OneAtATime()
    assert thread.is_free("a")
    thread.start("a", lambda: written.append(time.sleep(0.1)))
    assert thread.is_free("b")
    assert written == [None]
    thread.start("b", release.wait)
    assert not thread.is_free("c")
    assert not thread.is_free("d")
    release.set()
    thread.wait()
    assert capsys.readouterr().err == "c is skipped: b is still being written, for 1 s\n"

    def fail():
        raise KeyError("of the thread")

    thread.start("e", fail)
    with pytest.raises(KeyError, match="of the thread"):
        thread.wait()
    thread.wait()


@pytest.mark.one_mode
def test_one_thread():
    """All functions of one run in one thread, if asked for, which ends with it."""
    threads, one = set(), OneAtATime(same_thread=True)
    for _ in range(3):
        one.start("a", lambda: threads.add(threading.current_thread()))
        one.wait()
    (thread,) = threads
    assert thread.is_alive()
    one.end()
    thread.join(10)
    assert not thread.is_alive()
    one.start("b", lambda: threads.add(threading.current_thread()))
    one.wait()
    (thread,) = threads - {thread}
    del one
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.one_mode
def test_ended_threads_are_not_kept():
    """A thread that has written one thing, and its queue, are garbage when the next one starts."""
    one = OneAtATime()
    one.start("a", lambda: None)
    one.wait()
    kept = [weakref.ref(one._thread), weakref.ref(one._thread.calls)]
    one.start("b", lambda: None)
    one.wait()
    gc.collect()
    assert [each() for each in kept] == [None, None]

"""Checkpoints: what is kept, what a failed or killed save leaves, where a run starts."""

import re
import resource
import signal
import sys
import textwrap

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import BestCheckpoint, CheckpointWriter, report_unfinished
from model_deploy.checkpoints.files import check_fits, describe_counts, step_of
from model_deploy.checkpoints.resuming import checkpoint_to_resume, resume_under_way
from model_deploy.commands import read_checked
from model_deploy.updating import note_replica_counts
from tests.processes.harness import Processes
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


@pytest.fixture
def session():
    """A session with a variable of 4 MB and the global step."""
    tf.train.get_or_create_global_step()
    tf.get_variable("weight", [1024, 1024])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        yield session


def test_a_full_disk(tmp_path, session, capsys):
    """A save that finds no room says so, removes its parts, and leaves the previous one."""
    writer = CheckpointWriter(str(tmp_path), keep=1)
    first = writer.save(session, 1)
    before = {path.name for path in tmp_path.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))  # like a quota
    try:
        with pytest.raises(OSError, match=r"model.ckpt-2 could not be written, .* is .*ckpt-1: "):
            writer.save(session, 2)
        writer.try_to_save(session, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = (
        r"warning: checkpoints: checkpoint .*-2 could not be written, .*: File too large; training"
    )
    assert re.match(said, capsys.readouterr().err)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert tf.train.latest_checkpoint(str(tmp_path)) == first
    tf.train.Saver().restore(session, first)
    assert writer.save(session, 3) == str(tmp_path / "model.ckpt-3")


def _counting(folder, num_replicas, restored=None, counts=None):
    """A checkpoint with counts of so many replicas, set or restored; and what was said of those."""
    folder.mkdir()
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        counted, said = [], []
        if num_replicas:
            counted = [tf.get_variable("done", [num_replicas], tf.int64, use_resource=True)]
            note_replica_counts(*counted)
        if restored is not None:
            check_fits(restored)
            said = describe_counts(restored)
        writer = CheckpointWriter(str(folder), keep=5)
        if restored is None:
            session.run([step.assign(7), *(each.assign(counts) for each in counted)])
        else:
            writer.saver_of(restored).restore(session, restored)
        assert session.run(step) == 7
        found = session.run(counted[0]).tolist() if counted else []
        return writer.save(session, 7), found, said


@pytest.mark.parametrize(
    ("counts", "expected", "what"),
    [
        ([15, 5], [7, 7, 6], "done of 2 replicas"),
        ([4, 4, 4, 4], [6, 5, 5], "done of 4 replicas"),
        ([2], [1, 1, 0], "done of 1 replicas"),
        ([9, 0, 1], [9, 0, 1], None),
        ([], [3, 2, 2], "the global step"),
    ],
)
def test_counts_of_another_number_of_replicas(tmp_path, counts, expected, what):
    """What replicas have done is shared out among those that go on; as many keep their own."""
    first, found, _ = _counting(tmp_path / "before", len(counts), counts=counts)
    assert found == counts
    second, found, said = _counting(tmp_path / "after", 3, first)
    assert found == expected
    line = f"{first} has {what}, which is shared out among 3 replicas"
    assert said == ([] if what is None else [line])
    assert _counting(tmp_path / "again", 3, second)[1:] == (expected, [])
    assert _counting(tmp_path / "alone", 0, second)[1:] == ([], [])


KILLED_WHILE_SAVING = """
    import sys
    import tensorflow.compat.v1 as tf
    from model_deploy.checkpoints import CheckpointWriter

    tf.disable_eager_execution()
    tf.train.get_or_create_global_step()
    zeros = tf.zeros_initializer()
    # 256 MB
    weights = [tf.get_variable(f"weight{i}", [4096, 1024], None, zeros) for i in range(16)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        writer = CheckpointWriter(sys.argv[1], keep=1, in_background=True)
        writer.save(session, 1)
        print("saving", flush=True)
        getattr(writer, sys.argv[2])(session, 2)
        writer.wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize("save", ["save", "save_soon"])
def test_killed_while_saving(save, tmp_path, capsys):
    """kill -9 in the middle of a save leaves the previous checkpoint the newest, and whole."""
    (tmp_path / "program.py").write_text(textwrap.dedent(KILLED_WHILE_SAVING))
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path), save]
    with Processes(tmp_path) as processes:
        process = processes.start("program", command)
        process.wait_for_line("^saving$")
        while not list(tmp_path.glob("model.ckpt-2*")) and process.is_running:
            pass
        process.signal(signal.SIGKILL)
        assert process.wait() == 128 + signal.SIGKILL
    newest = tf.train.latest_checkpoint(str(tmp_path))
    assert newest == str(tmp_path / "model.ckpt-1")
    reader = tf.train.load_checkpoint(newest)
    assert all(reader.get_tensor(f"weight{i}").shape == (4096, 1024) for i in range(16))
    report_unfinished(str(tmp_path))
    assert re.match(r"not used: .*model.ckpt-2.*temp", capsys.readouterr().err)


def test_the_best_is_kept(tmp_path, session):
    """The checkpoint of the highest metric is in `best`, over several runs too."""
    best = BestCheckpoint(str(tmp_path), "accuracy")
    for step, value in ((1, 0.5), (2, 0.75), (3, 0.7)):
        best.offer(session, step, value)
    assert [path.name for path in (tmp_path / "best").glob("*.index")] == ["model.ckpt-2.index"]
    again = BestCheckpoint(str(tmp_path), "accuracy")
    assert again.value == 0.75
    again.offer(session, 4, 0.75)
    found = read_checked(tmp_path / "best" / "best.json")
    assert found == {"step": 2, "accuracy": 0.75}


def test_resume_never(tmp_path):
    """`never` starts in a new folder, and does not touch one with checkpoints, by their names."""
    assert step_of("/a/model.ckpt-12") == 12
    assert step_of("/a/model.ckpt") is None
    assert checkpoint_to_resume(str(tmp_path), "never") is None
    run_halving(tmp_path, 2)
    with pytest.raises(ValueError, match=r"no checkpoint with resume='never', got .*-2; choose"):
        run_halving(tmp_path, 3, resume="never")


@pytest.mark.slow
def test_resume_a_path(tmp_path):
    """A run goes on from the checkpoint that it is told, into another folder. Checkpoints come at
    multiples of the interval and at the end. One that has begun with a path goes on from its own
    checkpoints, once it has some.
    """
    run_halving(tmp_path / "a", 5, save_interval_steps=2)
    names = sorted(path.name for path in (tmp_path / "a").glob("*.index"))
    assert names == [f"model.ckpt-{step}.index" for step in (2, 4, 5)]
    path, folder = str(tmp_path / "a" / "model.ckpt-2"), str(tmp_path / "b")
    assert [resume_under_way(folder, resume) for resume in ("auto", "never")] == ["auto", "auto"]
    assert resume_under_way(folder, path) == path
    assert run_halving(folder, 3, resume=path) == (3, 1 / 32)
    assert resume_under_way(folder, path) == "auto"
    assert run_halving(tmp_path / "c", 6, resume=str(tmp_path / "a")) == (6, 2**-11)
    with pytest.raises(ValueError, match=r"after step 2 of resume='.*-2', got step 5, which"):
        run_halving(tmp_path / "a", 6, resume=path)
    for resume in (resume_under_way, lambda folder, path: run_halving(folder, 5, resume=path)):
        with pytest.raises(ValueError, match=r"resume must be .* path .*, got .nowhere."):
            resume(folder, "nowhere")

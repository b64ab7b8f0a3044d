"""Checkpoints are found by name or folder, and as they appear until the run ends."""

import shutil

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.checkpoints.choosing import checkpoint_step
from model_deploy.checkpoints.damage import note_on_manifest
from model_deploy.checkpoints.manifest import write_manifest
from model_deploy.checkpoints.watching import read_end
from model_deploy.training import (
    CheckpointWatch,
    checkpoints_in,
    clear_end,
    find_checkpoint,
    is_checkpoint,
    mark_end,
)

pytestmark = pytest.mark.one_mode


class Run:
    """A run that saves checkpoints when it is told to, and a clock that moves when it waits."""

    def __init__(self, folder, script=()):
        self.folder = folder
        self.now = 0.0
        self._script = list(script)

    def save(self, *steps, keep=5, relative=True):
        """Saves checkpoints of these steps."""
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.train.get_or_create_global_step()
            saver = tf.train.Saver(max_to_keep=keep, save_relative_paths=relative)
            saver.set_last_checkpoints_with_time(
                [(path, 0.0) for path in checkpoints_in(self.folder)]
            )
            for number in steps:
                session.run(tf.assign(step, number))
                saver.save(session, str(self.folder / "model.ckpt"), global_step=number)

    def wait(self, seconds):
        """Does what comes next in the script, in place of waiting."""
        self.now += seconds
        if self._script:
            self._script.pop(0)(self)

    def watch(self, **options):
        """A watch over its folder, with 10 seconds between looks."""
        return CheckpointWatch(self.folder, 10, wait=self.wait, clock=lambda: self.now, **options)


def _steps(watch):
    return [checkpoint_step(path) for path in watch]


def test_until_the_last_step(tmp_path):
    """All checkpoints come, oldest first, and no look is taken after that of the last step."""
    run = Run(tmp_path, [lambda run: None, lambda run: run.save(3), lambda run: run.save(4, 5)])
    run.save(1, 2)
    watch = run.watch(last_step=5)
    assert _steps(watch) == [1, 2, 3, 4, 5]
    assert watch.reason == f"the run in {tmp_path} has ended at step 5"
    assert run.now == 30


def test_until_the_mark(tmp_path):
    """A run that ends before its last step says so; what it saved before that still comes."""

    def end(run):
        run.save(7)
        mark_end(tmp_path, 7)

    run = Run(tmp_path, [lambda run: run.save(3), end])
    watch = run.watch(last_step=100)
    assert _steps(watch) == [3, 7]
    assert watch.reason == f"the run in {tmp_path} has ended at step 7"


def test_mark_of_an_earlier_run(tmp_path):
    """A mark that is there from the start waits for the chief, who takes it away or leaves it."""

    def go_on(run):
        clear_end(tmp_path)
        run.save(5)

    run = Run(tmp_path, [lambda run: None, go_on, lambda run: mark_end(tmp_path, 5)])
    run.save(3)
    mark_end(tmp_path, 3)
    assert _steps(run.watch(start_secs=60)) == [3, 5]
    assert run.now == 30  # a new mark counts at once, though the 60 seconds are not over
    finished = Run(tmp_path)
    assert _steps(finished.watch(start_secs=60)) == [3, 5]
    assert finished.now == 60
    assert _steps(finished.watch(start_secs=60, last_step=5)) == [3, 5]
    assert finished.now == 60


def test_timeout(tmp_path):
    """25 seconds without a checkpoint end the watch at the third look; each one starts anew."""
    run = Run(tmp_path, [lambda run: None, lambda run: run.save(3)])
    watch = run.watch(timeout_secs=25, last_step=100)
    assert _steps(watch) == [3]
    assert run.now == 20 + 30
    assert watch.reason == f"no new checkpoint in {tmp_path} for 25 seconds"


def test_checkpoints_that_are_deleted(tmp_path):
    """A run that keeps two checkpoints and saves four meanwhile: only the last two come."""
    run = Run(tmp_path)
    run.save(1, 2, keep=2)
    seen = []
    for path in run.watch(last_step=6):
        seen.append(checkpoint_step(path))
        if seen == [1]:
            run.save(3, 4, 5, 6, keep=2)
    assert seen == [1, 5, 6]


def test_names_and_the_mark(tmp_path):
    """A folder stands for its newest checkpoint, and a file of a checkpoint for all of it. The mark
    of the end is a step, and a run that goes on takes it away.
    """
    assert read_end(tmp_path) is None
    mark_end(tmp_path, 12)
    assert read_end(tmp_path) == 12
    for _ in range(2):
        clear_end(tmp_path)
        assert read_end(tmp_path) is None
    Run(tmp_path).save(1, 2)
    name = str(tmp_path / "model.ckpt-2")
    for given in (str(tmp_path), name, f"{name}.index"):
        assert find_checkpoint(given) == name
    assert is_checkpoint(name)
    assert not is_checkpoint(str(tmp_path / "model.ckpt-3"))


def test_a_folder_that_was_moved(tmp_path):
    """Checkpoints that are listed by their full paths are found where the folder is now."""
    Run(tmp_path / "old").save(1, relative=False)
    new = shutil.move(tmp_path / "old", tmp_path / "new")
    assert checkpoints_in(new) == [str(new / "model.ckpt-1")]


@pytest.mark.parametrize("state", [None, "", "model_checkpoint_path: "])
def test_a_folder_without_checkpoints(tmp_path, state):
    """A folder without a list of checkpoints, or with a broken one, holds none."""
    if state is not None:
        (tmp_path / "checkpoint").write_text(state)
    assert checkpoints_in(tmp_path) == []


@pytest.mark.parametrize("comes", [True, False])
def test_manifest_that_is_being_written(tmp_path, comes):
    """A checkpoint whose manifest is not there yet, as it is written last, is left alone for a
    second; where none comes it is taken all the same. Without any manifest nobody waits.
    """
    run = Run(tmp_path)
    run.save(1, 2)
    assert _steps(run.watch(last_step=2)) == [1, 2]
    assert run.now == 0
    write_manifest(str(tmp_path / "model.ckpt-1"), 1)
    run = Run(tmp_path, [lambda run: comes and write_manifest(str(tmp_path / "model.ckpt-2"), 2)])
    watch = iter(run.watch(last_step=2))
    assert checkpoint_step(next(watch)) == 1
    path = next(watch)
    assert (checkpoint_step(path), run.now, not note_on_manifest(path)) == (2, 1.0, comes)

"""Storage that fails while a run trains: real file systems, full, read-only, gone and stuck."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.commands import NOT_SAVED
from tests.processes.harness import Processes
from tests.training import adding

pytestmark = [pytest.mark.slow, pytest.mark.one_mode]

# The request, and its flag, that make a file system of Linux fail as if its disk had died.
_GOING_DOWN, _WITHOUT_FLUSH = 0x8004587D, 2


def _run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True).returncode


def _mount(folder, *arguments):
    """Mounts a file system, or skips the test with the reason."""
    if os.geteuid():
        pytest.skip("only root may mount file systems")
    folder.mkdir()
    done = subprocess.run(
        ["mount", *arguments, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no mount: {done.stderr.strip()}")


class _Memory:
    """A file system in memory of 8 MB, in which a run has a folder.

    Attributes:
      folder: the folder.
    """

    def __init__(self, tmp_path, options="size=8m"):
        self.root = tmp_path / "mounted"
        _mount(self.root, "-t", "tmpfs", "-o", options, "none")
        self.folder = self.root / "run"

    def unmount(self):
        """Ends it, with all that is mounted there."""
        while _run("umount", "-l", str(self.root), check=False) == 0:
            pass


class Full(_Memory):
    """Its last bytes are taken by somebody else."""

    reason = "No space left on device"

    def fail(self):
        """Takes all bytes."""
        with contextlib.suppress(OSError), (self.root / "other").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def mend(self):
        """Gives them back."""
        (self.root / "other").unlink()


class WithoutInodes(_Memory):
    """Somebody else makes files until there can be no more."""

    reason = "No space left on device"

    def __init__(self, tmp_path):
        super().__init__(tmp_path, "nr_inodes=40")

    def fail(self):
        """Makes them."""
        (self.root / "others").mkdir()
        with contextlib.suppress(OSError):
            for i in range(40):
                (self.root / "others" / str(i)).touch()

    def mend(self):
        """Removes them."""
        shutil.rmtree(self.root / "others")


class ReadOnly(_Memory):
    """The folder is mounted once more, so that nobody can write there."""

    reason = "Read-only file system"

    def fail(self):
        """Mounts it: at first elsewhere, as a mount in which files are open stays writable."""
        aside = self.root.parent / "aside"
        _mount(aside, "--bind", str(self.root))
        _run("mount", "-o", "remount,ro,bind", str(aside))
        _run("mount", "--bind", str(aside), str(self.root))
        _run("umount", "-l", str(aside))

    def mend(self):
        """Takes that away again."""
        _run("umount", "-l", str(self.root))


class _Disk(_Memory):
    """A disk of 24 MB, which is a file, with ext4."""

    def __init__(self, tmp_path):
        image = tmp_path / "disk"
        with image.open("wb") as file:
            file.truncate(24 << 20)
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("there is no mkfs.ext4")
        _run("mkfs.ext4", "-q", str(image))
        self.root = tmp_path / "mounted"
        _mount(self.root, "-o", "loop", "-t", "ext4", str(image))
        self.folder = self.root / "run"


class Dead(_Disk):
    """The disk dies, and another one is mounted in its place."""

    reason = "Input/output error"

    def fail(self):
        """Lets the file system of the disk shut down."""
        handle = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _GOING_DOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(handle)

    def mend(self):
        """Mounts the other one."""
        _run("mount", "-t", "tmpfs", "none", str(self.root))


class Stuck(_Disk):
    """The disk takes no writes: who writes waits."""

    def fail(self):
        """Freezes it."""
        _run("fsfreeze", "--freeze", str(self.root))

    def mend(self):
        """Ends that."""
        _run("fsfreeze", "--unfreeze", str(self.root))

    def unmount(self):
        _run("fsfreeze", "--unfreeze", str(self.root), check=False)
        super().unmount()


@contextlib.contextmanager
def _training(tmp_path, storage, *flags):
    """A run that has a checkpoint there, and is then cut off from its storage."""
    with contextlib.ExitStack() as stack:
        stack.callback(storage.unmount)
        processes = stack.enter_context(Processes(tmp_path))
        gate = tmp_path / "gate"
        command = [sys.executable, "-m", "tests.training.adding", f"--train_dir={storage.folder}"]
        flags = [*flags, f"--gate={gate}", "--keep_checkpoints=1", "--save_interval_secs=0.2"]
        process = processes.start("run", [*command, *flags])
        process.wait_for_line("^step 5 ")
        processes.wait_until((storage.folder / "checkpoint").exists, 60, lambda: "none")
        storage.fail()
        yield process, gate


def _last_step(process):
    return int(re.findall(r"^step (\d+) ", process.log, re.MULTILINE)[-1])


def _wait_for_steps(process, count):
    process.wait_for_line(rf"^step {_last_step(process) + count} ")


def _assert_complete(folder, step):
    """The newest checkpoint is that of a step, and each step has its line of metrics."""
    newest = tf.train.latest_checkpoint(str(folder))
    assert newest == str(folder / f"model.ckpt-{step}")
    weight = tf.train.load_checkpoint(newest).get_tensor("weight")
    np.testing.assert_array_equal(weight, np.full(adding.SHAPE, step))
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    found = set()
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):  # the disk was full in its midst
            found.add(json.loads(line)["step"])
    return found


@pytest.mark.parametrize("kind", [Full, WithoutInodes, ReadOnly, Dead], ids=lambda k: k.__name__)
def test_training_goes_on(kind, tmp_path):
    """Steps go on, the reason is said once, and when the storage is back the run saves all."""
    storage = kind(tmp_path)
    with _training(tmp_path, storage) as (process, gate):
        process.wait_for_line(
            rf"^warning: checkpoints: checkpoint .*: {kind.reason}; training goes"
        )
        _wait_for_steps(process, 30)
        storage.mend()
        process.wait_for_line(r"^checkpoints: written again, after \d+ s$")
        gate.touch()
        assert process.wait() == 0
        assert len(re.findall("^warning: checkpoints", process.log, re.MULTILINE)) == 1
        last = _last_step(process)
        steps = _assert_complete(storage.folder, last)
        assert steps >= set(range(1, last + 1)) or kind is Dead


def test_a_removed_folder(tmp_path):
    """A folder that somebody removes is made anew, which is said, and the run goes on there."""
    storage = _Memory(tmp_path)
    storage.fail = lambda: shutil.rmtree(storage.folder)
    with _training(tmp_path, storage) as (process, gate):
        process.wait_for_line(f"^{storage.folder} was removed: it is made anew$")
        _wait_for_steps(process, 20)
        gate.touch()
        assert process.wait() == 0
        _assert_complete(storage.folder, _last_step(process))


def test_storage_that_is_stuck(tmp_path):
    """While one checkpoint takes its time, steps go on, and later ones are skipped, in a line."""
    storage = Stuck(tmp_path)
    with _training(tmp_path, storage) as (process, gate):
        process.wait_for_line(
            r"^the checkpoint of step \d+ is skipped: .* of step \d+ is still being written, for "
        )
        _wait_for_steps(process, 100)
        assert len(re.findall("skipped", process.log)) == 1
        storage.mend()
        gate.touch()
        assert process.wait() == 0
        last = _last_step(process)
        assert _assert_complete(storage.folder, last) == set(range(1, last + 1))


@pytest.mark.parametrize("ends_by", ["itself", "SIGTERM"])
def test_the_end_without_storage(ends_by, tmp_path):
    """A run that cannot save its last steps says which, and ends with an exit status of its own."""
    storage = Full(tmp_path)
    with _training(tmp_path, storage) as (process, gate):
        process.wait_for_line("^warning: checkpoints")
        kept = int(re.search(r"the newest one is \S+-(\d+):", process.log).group(1))
        gate.touch() if ends_by == "itself" else process.signal(signal.SIGTERM)
        assert process.wait() == NOT_SAVED == 74
        last = _last_step(process)
        line = rf"^error: steps {kept + 1} to {last} are lost: checkpoint .* No space left on"
        assert re.search(line, process.log, re.MULTILINE)
        newest = tf.train.latest_checkpoint(str(storage.folder))
        assert newest == str(storage.folder / f"model.ckpt-{kept}")


@pytest.mark.parametrize("is_mended", [True, False])
def test_the_end_that_waits(is_mended, tmp_path):
    """With a flag the end waits for the storage, so long or until a signal comes."""
    storage = Full(tmp_path)
    with _training(tmp_path, storage, "--wait_for_storage_secs=60") as (process, gate):
        process.wait_for_line("^warning: checkpoints")
        gate.touch()
        process.wait_for_line("^waiting for storage")
        if is_mended:
            storage.mend()
        else:
            process.signal(signal.SIGTERM)
        assert process.wait() == (0 if is_mended else NOT_SAVED)
        if is_mended:
            _assert_complete(storage.folder, _last_step(process))

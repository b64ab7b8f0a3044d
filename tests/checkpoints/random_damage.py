"""Random damage to all files of a run's folder: named and survived, or refused; nothing else.

    python -m tests.checkpoints.random_damage --count=1000 --seed=1

For each case a copy of a run's folder gets one flipped bit, truncated file or missing file.  Then
its options, its end mark, its kept index of records and its newest good checkpoint are read, its
checkpoints listed, and the run goes on to a later step.  Each result is that without damage, or an
error of one line that names the file.
"""

import argparse
import collections
import contextlib
import dataclasses
import io
import random
import shutil
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import deploy, embeddings, train
from model_deploy.checkpoints import with_checkpoint
from model_deploy.checkpoints.listing import checkpoints_found, listing
from model_deploy.checkpoints.watching import read_end
from model_deploy.commands import Options, option, saved_options, write_options
from model_deploy.inputs.files import tfrecords
from model_deploy.inputs.files.corrupt_records import Tolerance
from tests.checkpoint_values import checkpoint_values
from tests.checkpoints.damages import KINDS, damage
from tests.goldens import LogicalDevices, cpu_config

_FIRST, _LAST = 12, 14
_RECORDS = "inputs.tfrecord"
# What a run writes and never reads, for other programs.
_ONLY_WRITTEN = ("metrics.jsonl", "status.json", "training.png", "changes.ckpt")
# What is made again where it is missing.
_MADE_AGAIN = ("options.yaml", "run_ended")


@dataclasses.dataclass(frozen=True)
class _Options(Options):
    """Options as a command writes them into the folder of its run."""

    rate: float = option(0.1, "rate")
    name: str = option("a", "name")


def _dense():
    """A partitioned matrix, a vector, and a text; the batch is a function of the step."""
    step = tf.train.get_global_step()
    x = tf.random.stateless_normal([8, 6], seed=tf.stack([step, 7]))
    with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(3)):
        matrix = tf.get_variable("matrix", [6, 4], initializer=tf.ones_initializer())
    vector = tf.get_variable("vector", [4], initializer=tf.zeros_initializer())
    tf.get_variable("text", [2], tf.string, _texts, trainable=False)
    tf.losses.add_loss(tf.reduce_mean(tf.square(tf.matmul(x, matrix) + vector - 1)))


def _texts(shape, dtype=None, **_):
    return tf.constant(["first", "second text"])


def _tables():
    """A growing table, of whose rows each step uses some."""
    step = tf.train.get_global_step()
    ids = tf.random.stateless_uniform([6], tf.stack([step, 3]), 0, 40, tf.int64)
    table = embeddings.GrowingTable(
        name="items", width=3, max_rows=64, initial=embeddings.Normal(0.5, seed=3)
    )
    rows = embeddings.look_up(table, ids)
    weight = tf.get_variable("weight", [3, 1], initializer=tf.ones_initializer())
    tf.losses.add_loss(tf.reduce_mean(tf.square(tf.matmul(rows, weight) - 1)))


# Name -> model, optimizer, options.
_VARIANTS = {
    "dense": (_dense, lambda: tf.train.MomentumOptimizer(0.1, 0.9), {}),
    "tables": (_tables, lambda: tf.train.AdagradOptimizer(0.1), {"checkpoint_increments": 2}),
}


def _train(variant, folder, last_step):
    """Makes or goes on with a run, which saves and evaluates every 2 steps."""
    model_fn, optimizer, options = _VARIANTS[variant]
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        tf.train.get_or_create_global_step()
        model = deploy(LogicalDevices(), model_fn, optimizer=optimizer())
        train(
            model,
            folder,
            max_steps=last_step,
            session_config=cpu_config(),
            save_interval_steps=2,
            keep_checkpoints=3,
            log_every_n_steps=4,
            eval_every_n_steps=6,
            stop_patience=100,
            evaluate=lambda path: {"accuracy": float(path.rpartition("-")[2]) % 12},
            **options,
        )


def _lengths(folder):
    file = tfrecords.index_file(str(folder / _RECORDS), Tolerance(), keep=True)
    return list(file.lengths)


def _same(found, expected):
    return found.keys() == expected.keys() and all(
        np.array_equal(found[name], expected[name]) for name in expected
    )


class Folder:
    """The folder of a run that has ended at a step, and what is expected of it.

    Args:
      variant: which run.
      path: where to make it.
    """

    def __init__(self, variant, path):
        self.variant, self.path = variant, path
        _train(variant, path, _FIRST)
        write_options(_Options(rate=0.25, name="b"), path)
        with tf.io.TFRecordWriter(str(path / _RECORDS)) as writer:
            for number in range(20):
                writer.write(bytes([number]) * number)
        _lengths(path)
        self.files = sorted(
            each.relative_to(path)
            for each in path.rglob("*")
            if each.is_file() and each.name != _RECORDS
        )
        self.by_step = {
            each.name.removesuffix(".index"): checkpoint_values(str(each)[: -len(".index")])
            for each in path.glob("model.ckpt-*.index")
        }
        self.last, again = (self._undisturbed(name) for name in ("undisturbed", "again"))
        assert _same(again, self.last), "a run must repeat itself"

    def _undisturbed(self, name):
        folder = self.path.with_name(f"{self.variant}-{name}")
        shutil.copytree(self.path, folder)
        with _no_picture():
            return self._go_on(folder)

    def _go_on(self, folder):
        _train(self.variant, folder, _LAST)
        found = checkpoint_values(tf.train.latest_checkpoint(str(folder)))
        return {**found, "best": (folder / "best" / "best.json").read_text()}

    def damaged(self, generator, folder):
        """Copies the folder with one damage; returns the file and what was done to it."""
        shutil.copytree(self.path, folder)
        name, kind = generator.choice(self.files), generator.choice(KINDS)
        size = (folder / name).stat().st_size
        place, bit = generator.randrange(max(1, size)), generator.randrange(8)
        return name, damage(folder / name, kind, place, bit)

    def outcome(self, folder, name, done):
        """Reads and goes on with a damaged copy; returns what became of it.

        Raises:
          AssertionError: if a result is another one, or the damage is not named.
        """
        said, outcomes = io.StringIO(), []
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            for check in (self._lists, self._reads_small_files, self._reads, self._goes_on):
                try:
                    check(folder, name)
                except (ValueError, OSError) as error:
                    line = str(error)
                    assert "\n" not in line, line
                    assert name.name in line, f"{check.__name__}: {line}"
                    said.write(f"{line}\n")
                    outcomes.append(check.__name__)
        only_written = name.name in _ONLY_WRITTEN or name.name.startswith("events.out")
        made_again = done == "removed" and name.name in _MADE_AGAIN
        # An index may as well be of another file: it is made again.
        made_again |= name.name == f".{_RECORDS}.index"
        if name.name.endswith(".manifest") and done == "removed":
            assert "by TensorFlow's own sums" in said.getvalue()  # as of other programs
        elif not only_written and not made_again and not _is_newline(self.path / name, done):
            assert name.name in said.getvalue(), f"not named: {said.getvalue()}"
        if "_goes_on" in outcomes:
            return "refused"
        return "survived, named" if name.name in said.getvalue() else "survived"

    def _lists(self, folder, name):
        found = checkpoints_found(str(folder))
        print(listing(str(folder), found))
        of_checkpoint = ".data-" in name.name or name.name.endswith((".index", ".manifest"))
        if of_checkpoint and not name.name.startswith(".") and (folder / name).exists():
            assert not all(each.is_good for each in found), "not listed"

    def _reads_small_files(self, folder, name):
        if (folder / "options.yaml").exists():
            assert saved_options(_Options, str(folder)) == {"rate": 0.25, "name": "b"}
        assert read_end(folder) in (_FIRST, None)
        assert _lengths(folder) == list(range(20))

    def _reads(self, folder, name):
        path, values = with_checkpoint(str(folder), lambda path: (path, checkpoint_values(path)))
        assert _same(values, self.by_step[Path(path).name]), f"other values of {path}"

    def _goes_on(self, folder, name):
        found, expected = self._go_on(folder), dict(self.last)
        if name.parent.name == "best" and name.name.startswith("model.ckpt"):
            # If the best checkpoint is lost, that of a later evaluation is the best.
            del found["best"], expected["best"]
        assert _same(found, expected), "another result"


def _is_newline(file, done):
    """Whether nothing but the last newline of a file of lines was lost."""
    content = file.read_bytes()
    return content.endswith(b"\n") and done.startswith(f"truncated to {len(content) - 1} ")


def _no_picture():
    """Leaves out the picture at the end of a run: it takes most of the time, and is no result."""
    return mock.patch("model_deploy.training.shown.plots.plot_training")


def _drawing(name):
    """Leaves out the picture at the end of a run, unless it, or what it shows, is damaged."""
    if name.name in ("training.png", "metrics.jsonl"):
        return contextlib.nullcontext()
    return _no_picture()


def run(count, seed, variants=tuple(_VARIANTS), show=lambda text: None):
    """Tries so many damages; returns how many had which outcome, and the failures."""
    counts, failures = collections.Counter(), []
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Folder(each, Path(temporary) / each) for each in variants]
        for number in range(count):
            generator = random.Random(seed * 1_000_003 + number)
            copy = Path(temporary) / f"case-{number}"
            of = folders[number % len(folders)]
            name, done = of.damaged(generator, copy)
            try:
                with _drawing(name):
                    outcome = of.outcome(copy, name, done)
            except Exception as error:
                outcome = "failed"
                failures.append(f"{of.variant} case {number}: {name} {done}: {error!r}")
                show(failures[-1])
            counts[outcome] += 1
            shutil.rmtree(copy)
    return counts, failures


def main():
    """Tries damages as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many damages")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    options = parser.parse_args()
    tf.disable_eager_execution()
    began = time.monotonic()
    counts, failures = run(options.count, options.seed, show=lambda text: print(text, flush=True))
    print(f"{options.count} damages in {time.monotonic() - began:.0f} s: {dict(counts)}")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()

"""Trains for some steps and appends a line per step; is killed by the test and run again.

Arguments: the folder for checkpoints and the logs, and the number of steps.  Two pipelines run side
by side, a log for each: the position of "own" is its own, that of "global_step" the global step.
"""

import contextlib
import pathlib
import sys
import zlib

import tensorflow as tf

from model_deploy import inputs
from tests import modes

tf1 = tf.compat.v1
KINDS = ("own", "global_step")


class LogHook(tf1.train.SessionRunHook):
    """Writes `step clone-0-indices clone-1-indices crc-of-images` of each step."""

    def __init__(self, log, fetches):
        self._log = log
        self._fetches = fetches

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        done, clones = run_values.results
        crc = 0
        for clone in clones:
            crc = zlib.crc32(clone["image"].tobytes(), crc)
        indices = [",".join(map(str, clone["index"])) for clone in clones]
        self._log.write(f"{done} {' '.join(indices)} {crc}\n")
        self._log.flush()


def pipeline(kind):
    """What the two clones get from a pipeline in a step."""
    batches = inputs.train_batches(
        inputs.get_dataset("digits", "train"),
        batch_size=64,
        num_clones=2,
        num_shards=2,
        shard_index=1,
        seed=5,
        preprocessing="cifarnet",
        include_index=True,
        position=tf1.train.get_global_step() if kind == "global_step" else None,
    )
    return [next(batches) for _ in range(2)]


def main(folder, num_steps):
    """Trains up to step `num_steps` in the default graph; the folder has checkpoints and logs."""
    step = tf1.train.create_global_step()
    clones = {kind: pipeline(kind) for kind in KINDS}
    taken = [clone["image"] for pair in clones.values() for clone in pair]
    with tf.control_dependencies(taken):
        train = step.assign_add(1)
    with contextlib.ExitStack() as stack:
        # In this order: a step that is in a checkpoint is in the log, whenever the kill comes.
        logs = [
            LogHook(
                stack.enter_context(pathlib.Path(folder, kind).open("a", encoding="utf-8")),
                [train, clones[kind]],
            )
            for kind in KINDS
        ]
        hooks = [
            *logs,
            tf1.train.CheckpointSaverHook(folder, save_steps=3),
            tf1.train.StopAtStepHook(last_step=int(num_steps)),
        ]
        with tf1.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            hooks=hooks,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(train)


if __name__ == "__main__":
    modes.enter()
    main(*sys.argv[1:])

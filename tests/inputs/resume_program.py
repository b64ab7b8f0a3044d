"""Trains for some steps and appends a line per step; is killed by the test and run again.

Arguments: the folder for checkpoints and the log, the number of steps, and "own" or
"global_step", what the position of the pipeline is.
"""

import pathlib
import sys
import zlib

import tensorflow as tf

from model_deploy import inputs

tf1 = tf.compat.v1


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


def main(folder, num_steps, kind):
    """Trains up to step `num_steps`, with checkpoints and `log` in the folder."""
    tf1.disable_eager_execution()
    step = tf1.train.get_or_create_global_step()
    batches = inputs.train_batches(
        inputs.get_dataset("digits", "train"),
        batch_size=64,
        num_clones=2,
        num_shards=2,
        shard_index=1,
        seed=5,
        preprocessing="cifarnet",
        include_index=True,
        position=step if kind == "global_step" else None,
    )
    clones = [next(batches) for _ in range(2)]
    with tf.control_dependencies([clones[0]["image"], clones[1]["image"]]):
        train = step.assign_add(1)
    with pathlib.Path(folder, "log").open("a", encoding="utf-8") as log:
        # In this order: a step that is in a checkpoint is in the log, whenever the kill comes.
        hooks = [
            LogHook(log, [train, clones]),
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
    main(*sys.argv[1:])

"""A run that was stopped or killed goes on with the examples that it would have seen."""

import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from model_deploy import inputs, slim
from tests.inputs import sessions

tf1 = tf.compat.v1
NUM_STEPS = 16  # of 5 to an epoch


def start(folder, kind, num_steps=NUM_STEPS):
    """Starts the training program."""
    command = [
        sys.executable,
        "-m",
        "tests.inputs.resume_program",
        str(folder),
        str(num_steps),
        kind,
    ]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def lines_of(folder):
    """The whole lines that the program has written."""
    path = pathlib.Path(folder, "log")
    return path.read_text().split("\n")[:-1] if path.exists() else []


def kill_after(process, folder, num_lines):
    """Kills the program when it has written so many lines more."""
    target = len(lines_of(folder)) + num_lines
    deadline = time.monotonic() + 240
    try:
        while len(lines_of(folder)) < target and process.poll() is None:
            assert time.monotonic() < deadline, "the program makes no steps"
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["own", "global_step"])
def test_killed_run_sees_what_an_uninterrupted_run_sees(kind, tmp_path):
    """After kills at random steps, each step has the same examples, augmented alike."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    assert start(whole, kind).wait(timeout=240) == 0
    expected = lines_of(whole)
    assert [line.split()[0] for line in expected] == [str(step + 1) for step in range(NUM_STEPS)]
    seed = random.randrange(2**32)
    steps = random.Random(seed)
    for _ in range(2):
        kill_after(start(killed, kind), killed, steps.randint(1, 6))
    assert start(killed, kind).wait(timeout=240) == 0
    seen = lines_of(killed)
    assert set(seen) == set(expected), f"random seed {seed}"
    assert len(seen) >= NUM_STEPS


def test_slim_training_goes_on_where_it_stopped(tmp_path):
    """`slim.learning.train` restores the position before it initializes the pipeline."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=20, image_size=4)
    expected = sessions.train_indices(dataset, num_runs=12, batch_size=3, num_clones=2)
    seen = []

    def run(num_steps):
        with tf.Graph().as_default():
            step = tf1.train.get_or_create_global_step()
            batches = inputs.train_batches(
                dataset, batch_size=3, num_clones=2, preprocessing="lenet", include_index=True
            )
            index = tf.concat([next(batches)["index"], next(batches)["index"]], axis=0)
            weight = tf1.get_variable("weight", [])
            counted = step.assign_add(1)
            with tf.control_dependencies([counted, index]):
                train_op = tf.identity(weight)

            def train_step(session, train_op, *_):
                value, indices, done = session.run([train_op, index, counted])
                seen.append(indices.tolist())
                return value, done >= num_steps

            slim.learning.train(
                train_op, str(tmp_path), train_step_fn=train_step, summary_writer=None
            )

    run(5)
    run(12)
    assert seen == expected


def test_restored_session_continues_mid_epoch(tmp_path):
    """A plain session that restores a checkpoint and initializes goes on in the epoch."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=11, image_size=4)
    expected = sessions.train_indices(dataset, num_runs=9, batch_size=2)
    with tf.Graph().as_default():
        batches = inputs.train_batches(
            dataset, batch_size=2, preprocessing="lenet", include_index=True
        )
        index = next(batches)["index"]
        saver = tf1.train.Saver()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(batches.initializer)
            first = [session.run(index).tolist() for _ in range(7)]
            saver.save(session, str(tmp_path / "model"))
        with tf1.Session() as session:
            saver.restore(session, str(tmp_path / "model"))
            session.run(batches.initializer)
            rest = [session.run(index).tolist() for _ in range(2)]
    assert first + rest == expected

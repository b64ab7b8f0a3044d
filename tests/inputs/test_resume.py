"""A run that was stopped or killed goes on with the examples that it would have seen."""

import random
import signal
import sys
import time

import pytest
import tensorflow as tf

from model_deploy import inputs, slim
from tests.inputs import resume_program, sessions
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode  # with `--v1` tests/training/test_exact_resume.py kills a run

tf1 = tf.compat.v1
NUM_STEPS = 16  # of 5 to an epoch


def train(folder):
    """Runs the training program in this process, to its end."""
    with tf.Graph().as_default():
        resume_program.main(str(folder), NUM_STEPS)


def lines_of(folder, kind):
    """The whole lines that the program has written for one kind of pipeline."""
    path = folder / kind
    return path.read_text().split("\n")[:-1] if path.exists() else []


def kill_after(folder, num_lines):
    """Runs the training program in a process of its own; kills it after so many lines more."""
    command = [sys.executable, "-m", resume_program.__name__, str(folder), str(NUM_STEPS)]
    kind = resume_program.KINDS[-1]
    target = len(lines_of(folder, kind)) + num_lines
    deadline = time.monotonic() + 240
    with Processes(folder.parent) as processes:
        process = processes.start("killed", command, guarded=False)
        while len(lines_of(folder, kind)) < target and process.is_running:
            assert time.monotonic() < deadline, "the program makes no steps"
            time.sleep(0.005)
        process.signal(signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folders of a run that nothing interrupts and of one with kills at random steps."""
    whole, killed = (tmp_path_factory.mktemp(name) for name in ("whole", "killed"))
    train(whole)
    seed = random.randrange(2**32)
    steps = random.Random(seed)
    for _ in range(2):
        kill_after(killed, steps.randint(1, 6))
    train(killed)
    return whole, killed, seed


@pytest.mark.slow
@pytest.mark.parametrize("kind", resume_program.KINDS)
def test_killed_run_sees_what_an_uninterrupted_run_sees(kind, runs):
    """After kills at random steps, each step has the same examples, augmented alike."""
    whole, killed, seed = runs
    expected, seen = lines_of(whole, kind), lines_of(killed, kind)
    assert [line.split()[0] for line in expected] == [str(step + 1) for step in range(NUM_STEPS)]
    assert set(seen) == set(expected), f"random seed {seed}"
    assert len(seen) >= NUM_STEPS


@pytest.mark.slow
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

            # No saves on a timer: they come from another thread, in the midst of a step.
            slim.learning.train(
                train_op,
                str(tmp_path),
                train_step_fn=train_step,
                summary_writer=None,
                save_interval_secs=0,
            )

    run(5)
    run(12)
    assert seen == expected

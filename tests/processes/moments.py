"""A process that stops itself, by SIGSTOP, or waits, at an exact moment of its training.

Whoever wants to hit it, or another one, at that moment has all the time for it.
"""

import os
import signal
import threading
import time
from pathlib import Path

import tensorflow.compat.v1 as tf
from tensorflow.python.training.saving.saveable_object import SaveableObject, SaveSpec

# Values whose writing takes longer than it takes to see that it has begun.
_NUM_BULK_VALUES = 16_000_000


def stop_once(mark):
    """Stops this process, unless the file `mark` says that it has been done."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)


def die_in_update(step, mark):
    """An op that kills this process in the update that makes a step, unless the file was made.

    Args:
      step: the number of the step.
      mark: file that is made then.
    """

    def die(made):
        if made == step and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return tf.py_func(die, [tf.train.get_global_step().read_value()], [])


class Refuse(tf.train.SessionRunHook):
    """Refuses a step once, as TensorFlow refuses one that it takes for an earlier one.

    Args:
      step: the number of the step.
      mark: file that is made then.
    """

    def __init__(self, step, mark):
        self._step, self._mark = step, Path(mark)

    def due(self, step):
        """Takes part in that step, if nobody has refused it yet."""
        return step == self._step and not self._mark.exists()

    def before_run(self, run_context):
        """Refuses it."""
        self._mark.touch()
        error = "The same RunGraph (RunGraphRequest) request was received twice"
        raise tf.errors.AbortedError(None, None, error)


class Lose(tf.train.SessionRunHook):
    """Has a step wait for ever, once, for the first parameter server, which answers all others.

    So it is with a step of which TensorFlow has lost the cancellation.  Adds to the default graph.

    Args:
      step: the number of the step.
      mark: file that is made then.
    """

    def __init__(self, step, mark):
        self._step, self._mark = step, Path(mark)
        with tf.device("/job:ps/task:0"):
            self._never = tf.FIFOQueue(1, tf.int64, ()).dequeue()

    def due(self, step):
        """Takes part in that step, if none has been lost yet."""
        return step == self._step and not self._mark.exists()

    def before_run(self, run_context):
        """Has it wait."""
        self._mark.touch()
        return tf.train.SessionRunArgs(self._never)


def lose_in_turn(number, mark):
    """A `Lose` for the first or second task that loses a step, with a file of its own."""
    return Lose((15, 35)[number], f"{mark}-{number}")


class WrongOp(tf.train.SessionRunHook):
    """Has an op of a step fail; adds it to the default graph.

    Args:
      step: the number of the step.
    """

    def __init__(self, step):
        made = tf.train.get_or_create_global_step().read_value()
        with tf.control_dependencies(
            [tf.debugging.assert_none_equal(made, tf.cast(step - 1, made.dtype))]
        ):
            self._op = tf.no_op()

    def before_run(self, run_context):
        """Runs it in each step."""
        return tf.train.SessionRunArgs(self._op)


class StopAtEnd(tf.train.SessionRunHook):
    """Stops this process when it has made its last step, before it leaves.

    Args:
      mark: file that is made then.
    """

    def __init__(self, mark):
        self._mark = mark

    def due(self, step):
        """Takes part in no step."""
        return False

    def end(self, session):
        """Stops here."""
        stop_once(self._mark)


class Wait(tf.train.SessionRunHook):
    """Waits when a session has been created, until there is a file.

    Args:
      gate: the file.
      fails: whether it ends with an error then.
    """

    def __init__(self, gate, fails=False):
        self._gate, self._fails = Path(gate), fails

    def after_create_session(self, session, coord):
        """Says that it waits, and does."""
        print("waiting for the gate", flush=True)
        while not self._gate.exists():
            time.sleep(0.02)
        if self._fails:
            raise ValueError("the gate is open")


class StopInSave(tf.train.SessionRunHook):
    """Stops this process while a file of a checkpoint is being written.

    Adds to the default graph values that are saved, too, so that it takes some time.

    Args:
      train_dir: folder of the checkpoints.
      step: looks for a file from this step on.
      mark: file that is made then.
    """

    def __init__(self, train_dir, step, mark):
        self._folder, self._step, self._mark = Path(train_dir), step, mark
        self._thread = None
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, _Bulk())

    def due(self, step):
        """Starts looking; takes part in no step."""
        if step >= self._step and self._thread is None and not Path(self._mark).exists():
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return False

    def _watch(self):
        # Names of files that TensorFlow has not renamed yet.
        while not any(".tempstate" in name for name in os.listdir(self._folder)):
            pass
        stop_once(self._mark)


class _Bulk(SaveableObject):
    """Many values that exist in checkpoints only."""

    def __init__(self):
        with tf.device("/device:CPU:0"):
            values = tf.zeros([_NUM_BULK_VALUES])
        super().__init__(values, [SaveSpec(values, "", "bulk")], "bulk")

    def restore(self, restored_tensors, restored_shapes):
        """Restores nothing."""
        return tf.no_op()

"""Steps that TensorFlow itself refuses: the numbers of their requests come twice.

Each step draws a number from a generator of its own, whose seed is from `std::random_device`.  A
library that is loaded before that of C++ gives the same seed as long as it is told to.
"""

import ctypes
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.training.pace import reporting

_SOURCE = """
#include <sys/random.h>
volatile int same_seed = 0;
unsigned _ZNSt13random_device9_M_getvalEv(void *device) {
  unsigned seed = 7;
  if (!same_seed) getrandom(&seed, sizeof seed, 0);
  return seed;
}
"""
# How long the step is refused, again and again, and how long its worker then waits in it.
_REFUSED_SECS, _WAITING_SECS = 0.1, 0.5


def environment(folder):
    """Builds the library in a folder; returns the variables of processes that load it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler must be there")
    source, library = folder / "seeds.c", folder / "seeds.so"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


class RepeatedNumber(tf.train.SessionRunHook):
    """Gives a step of one worker the number of the step before, once.

    A worker that is in the step already has asked worker 0 for its part, by a ring of two.  The
    process reports nothing: a report is a step as well, which might draw the number.

    Args:
      step: the number of the step.
      mark: file that this worker makes; `mark`.done is made when the step is no longer refused.
      is_own: whether it is a step of this worker; else this is another worker.
      others_wait: whether the other workers begin the step after that; else they are in it before.
    """

    def __init__(self, step, mark, *, is_own, others_wait):
        self._step, self._others_wait = step, others_wait
        self._mark, self._begun, self._done = (
            Path(f"{mark}{end}") for end in ("", ".begun", ".done")
        )
        self._is_own = is_own and not self._mark.exists()
        reporting._STEP_SECS = 3600.0

    def due(self, step):
        """Takes part in the step and the one before it, once."""
        if self._is_own:
            return step in (self._step - 1, self._step) and not self._done.exists()
        if step == self._step:
            self._begun.touch()
            if self._others_wait:
                self._wait_for(self._done)
        return False

    def before_run(self, run_context):
        """Has TensorFlow draw the number; in the second of the steps not for long."""
        is_second = self._mark.exists()
        if is_second:
            self._wait_for(self._begun)  # others have ended the step before
            if not self._others_wait:
                time.sleep(_WAITING_SECS)
        ctypes.c_int.in_dll(ctypes.CDLL(None), "same_seed").value = 1
        if is_second:
            threading.Thread(target=self._end).start()

    def after_run(self, run_context, run_values):
        """Lets numbers be random again."""
        ctypes.c_int.in_dll(ctypes.CDLL(None), "same_seed").value = 0
        self._mark.touch()

    @staticmethod
    def _wait_for(path):
        while not path.exists():
            time.sleep(0.01)

    def _end(self):
        time.sleep(_REFUSED_SECS)
        ctypes.c_int.in_dll(ctypes.CDLL(None), "same_seed").value = 0
        time.sleep(_WAITING_SECS)
        self._done.touch()

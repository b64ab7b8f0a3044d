"""The end of the inputs after a refused step is none: TensorFlow may have ended them."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.training.steps.clone_threads import CloneThreads
from model_deploy.training.steps.course import Course
from model_deploy.training.stopping import StopSignals
from tests.cluster.test_refusals import REFUSAL

pytestmark = pytest.mark.one_mode

_REFUSED = tf.errors.AbortedError(None, None, REFUSAL)
_ENDED = tf.errors.OutOfRangeError(None, None, "End of sequence")
_DOUBT = "the inputs have ended after a refused step, which may have ended them"


class _Runner:
    """Makes steps with these outcomes, one after the other."""

    stop_requested = False

    def __init__(self, outcomes):
        self._outcomes = list(outcomes)

    def run(self, step):
        raise self._outcomes.pop(0)

    def close(self):
        pass


@pytest.mark.parametrize(
    ("outcomes", "is_doubted"), [([_REFUSED, _ENDED], True), ([_ENDED], False)]
)
def test_end_of_the_inputs_of_a_step(outcomes, is_doubted):
    """Without a refused step before it ends the run, with one the session."""
    tf.train.get_or_create_global_step()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        course = Course(session, StopSignals(), lambda step: None)
        if is_doubted:
            with pytest.raises(tf.errors.AbortedError, match=_DOUBT):
                course.make(_Runner(outcomes), 10, lambda done: None)
        else:
            course.make(_Runner(outcomes), 10, lambda done: None)
            assert not course.is_stopped


class _Session:
    """Makes steps of a clone with these outcomes."""

    def __init__(self, outcomes):
        self._outcomes = list(outcomes)

    def make_callable(self, report):
        return self._run

    def _run(self):
        raise self._outcomes.pop(0)


@pytest.mark.parametrize(
    ("outcomes", "error", "message"),
    [
        ([_REFUSED, _ENDED], tf.errors.AbortedError, _DOUBT),
        ([_ENDED], tf.errors.OutOfRangeError, "the inputs of all clones have ended"),
    ],
)
def test_end_of_the_inputs_of_a_clone(outcomes, error, message):
    """So it is for clones that make steps by themselves."""
    threads = CloneThreads(_Session(outcomes), [None], [], first_step=0, max_steps=None)
    with pytest.raises(error, match=message):
        threads.run(1)
    threads.close()

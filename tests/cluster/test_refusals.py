"""Steps that TensorFlow refuses by mistake are run again; other errors are passed on."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster.refusals import is_refusal, is_refused_step, run_unless_refused

pytestmark = pytest.mark.one_mode

# As TensorFlow words it.
REFUSAL = (
    "From /job:ps/replica:0/task:0:\nThe same RunGraph (Worker) request was received twice. "
    'goo.gle/debugonly  graph_handle: "0000000000000003"'
)


def test_refused_step_runs_again():
    """The result is that of the first time it was not refused."""
    outcomes = [tf.errors.AbortedError(None, None, REFUSAL)] * 2

    def run():
        if outcomes:
            raise outcomes.pop()
        return 7

    assert run_unless_refused(run) == 7
    assert outcomes == []


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.AbortedError(None, None, "Session handle is not found: 1f"),
        tf.errors.UnavailableError(None, None, REFUSAL),
    ],
)
def test_other_errors(error):
    """A server that has been restarted or is gone is not a refusal."""

    def run():
        raise error

    assert not is_refusal(error)
    with pytest.raises(type(error)):
        run_unless_refused(run)


@pytest.mark.parametrize(
    ("error", "is_refused"),
    [
        (tf.errors.AbortedError(None, None, REFUSAL), True),
        (
            tf.errors.InternalError(
                None, None, "Collective ops is aborted by: Delete called on non-empty BufRendezvous"
            ),
            True,
        ),
        (tf.errors.InternalError(None, None, "Collective ops is aborted by: Socket closed"), False),
        (tf.errors.UnavailableError(None, None, REFUSAL), False),
        (ValueError(REFUSAL), False),
    ],
)
def test_refused_step_of_all_reduce(error, is_refused):
    """It is told from errors of a worker that is lost, by whoever hears of it."""
    assert is_refused_step(error) == is_refused

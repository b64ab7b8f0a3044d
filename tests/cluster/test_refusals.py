"""Steps that TensorFlow refuses by mistake are run again; other errors are passed on."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster.refusals import is_given_up, is_refusal, run_unless_refused

pytestmark = pytest.mark.one_mode

# As TensorFlow words it.
REFUSAL = (
    "From /job:ps/replica:0/task:0:\nThe same RunGraph (Worker) request was received twice. "
    'goo.gle/debugonly  graph_handle: "0000000000000003"'
)


# TensorFlow lists the errors of several parts; which of them it names is by chance.
LISTED = (
    "\n=====================\nCANCELLED: From /job:worker/replica:0/task:2:\nRunManyGraphs\n"
    f"ABORTED: {REFUSAL}\n=====================\n"
)


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.AbortedError(None, None, REFUSAL),
        tf.errors.CancelledError(None, None, LISTED),
        tf.errors.UnavailableError(None, None, LISTED),
    ],
)
def test_refused_step_runs_again(error):
    """The result is that of the first time it was not refused."""
    outcomes = [error] * 2

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


# As TensorFlow words what another worker has answered.
ANSWER = (
    "Collective ops is aborted by: {}\nAdditional GRPC error information from remote target "
    "/job:worker/replica:0/task:0 while calling /tensorflow.WorkerService/RecvBuf:\n..."
)


@pytest.mark.parametrize(
    ("kind", "text", "is_one"),
    [
        ("InternalError", ANSWER.format("Delete called on non-empty BufRendezvous"), True),
        ("CancelledError", ANSWER.format("Collective ops is aborted by: op cancelled"), True),
        ("CancelledError", "Collective ops is aborted by: op cancelled", False),
        ("UnavailableError", ANSWER.format("recvmsg:Connection reset by peer"), False),
        ("AbortedError", REFUSAL, False),
    ],
)
def test_a_part_that_another_worker_has_given_up(kind, text, is_one):
    """It is told from a worker that is lost, from a refusal, and from this worker's own end."""
    error = getattr(tf.errors, kind)(None, None, text)
    assert is_given_up(error) == is_one

"""Only the latest world that has claimed the variables may update them."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers import Fence
from tests import clusters


@pytest.fixture
def target():
    """A server with a parameter server that all worlds share."""
    return clusters.workers(1)[0]


def _session(target, generation):
    """A fence of a world, in a session of its own, and an op that begins an update."""
    with tf.Graph().as_default():
        fence = Fence(generation, "/job:ps/task:0")
        begin = fence.begin_update()
        with tf.control_dependencies([begin]):
            end = fence.end_update()
        return fence, begin, end, tf.Session(target, graph=tf.get_default_graph())


def test_worlds_follow_each_other(target):
    """A chief sees what the one before has left: values that are ready, or half an update."""
    fence, begin, end, session = _session(target, 1)
    with session:
        assert fence.claim(session) == (1, 0, 0)
        assert not fence.is_ready(session)
        fence.mark(session, True)
        assert fence.is_ready(session)
        session.run(end)
        assert fence.claim(session) == (1, 1, 0)
        session.run(begin)
    later, begin_later, _, session = _session(target, 3)
    with session:
        assert later.claim(session) == (3, 1, 1)
        assert not later.is_ready(session)
        later.mark(session, False)
        later.mark(session, True)
        assert later.claim(session) == (3, 3, 0)
        session.run(begin_later)


def test_late_chief(target):
    """A chief that wakes up in a world that is over can neither claim nor update anything."""
    fence, _, _, session = _session(target, 8)
    with session:
        fence.claim(session)
    late, begin, _, session = _session(target, 7)
    with session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be of world 7"):
            session.run(begin)
        assert late.claim(session).generation == 8
    fence, _, _, session = _session(target, 8)
    with session:
        assert fence.claim(session).updating == 0

"""The chief of a world takes the variables as the servers have them, unless an update was cut."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers import Fence
from model_deploy.training.replicas import shared_variables
from model_deploy.training.replicas.shared_variables import VariablesOfWorld
from tests import clusters


class Process:
    """A process of a world, with a variable and a session."""

    def __init__(self, target, generation, *, is_chief):
        with tf.Graph().as_default() as graph, tf.device("/job:ps/task:0"):
            variable = tf.get_variable("variable", [], initializer=tf.zeros_initializer())
            self.initialize = variable.initializer
            fence = Fence(generation, "/job:ps/task:0")
            self.begin_update = fence.begin_update()
            self.shared = VariablesOfWorld(fence, is_chief)
            self.session = tf.Session(target, graph=graph)

    def are_set(self):
        """Whether it can begin."""
        return self.shared.are_set(self.session)


def test_one_world_after_the_other(monkeypatch, capsys):
    """Others begin when the chief of their world has; a late chief does not begin any more."""
    monkeypatch.setattr(shared_variables, "_UPDATE_SECS", 0.2)
    [target] = clusters.workers(1)
    chief, other = (Process(target, 1, is_chief=is_chief) for is_chief in (True, False))
    assert not chief.are_set()
    chief.session.run(chief.initialize)
    assert not chief.are_set()  # half of them may have got their values
    assert not other.are_set()
    chief.shared.mark(chief.session, True)
    assert other.are_set()
    later = Process(target, 2, is_chief=True)
    assert later.are_set()
    with pytest.raises(tf.errors.CancelledError, match="world 1 is over: world 2 has begun"):
        chief.are_set()
    later.shared.mark(later.session, True)
    assert not other.are_set()
    assert capsys.readouterr().out == ""
    later.session.run(later.begin_update)
    heir = Process(target, 3, is_chief=True)
    assert not heir.are_set()
    assert "an update was cut short: going back to the newest" in capsys.readouterr().out
    heir.shared.mark(heir.session, True)
    assert heir.are_set()

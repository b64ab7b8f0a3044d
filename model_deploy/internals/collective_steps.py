"""Numbers of steps with collective ops, which all processes of a group have to agree on.

TensorFlow numbers such steps by the set of instance keys of their ops: the first number of a set is
random, later ones count up.  Each process asks the leader for the number of its first step of a
set.  Where it asks while the leader is at its own first step of that set, in between
`RpcCollectiveExecutorMgr::NextStepId` and `RefreshStepIdSequenceAsync`, the leader draws twice.
Both then wait for each other in steps of different numbers, for ever: of 19,000 first steps that
two servers on two busy cores began at the same moment 2 did, and of 100,000 none whose number had
been drawn before.

So all ops have one instance key (and a group key each), which makes one sequence of numbers, and
the leader begins it before any other process can ask.

Seen in TensorFlow 2.16 to 2.21.
"""

import tensorflow.compat.v1 as tf

# The instance key of every collective op that more than one process takes part in.
INSTANCE_KEY = 1
# `GraphExecutionState::BuildGraph`: the key of a graph whose ops, of version 2, are given their
# instance keys as inputs.  For others the instance keys are combined with it (`Hash64Combine`).
_OF_VERSION_2 = 0x8774AA605C729C72
_BITS = 64
# Longer than an op that does nothing takes on the busiest machine.
_MOST_MSECS = 60_000


def number_collective_steps(target: str, device: str) -> None:
    """Draws the first number of steps with collective ops, at the leader.

    Makes two steps, which do nothing, as steps of graphs with such ops.

    Wraps `RunOptions.experimental`.

    Args:
      target: of the leader's server, in this process, which need not be started.
      device: the leader's task.

    Raises:
      tf.errors.OpError: if the server does not make a step.
    """
    config = tf.ConfigProto(device_filters=[device])
    with tf.Graph().as_default() as graph, tf.Session(target, graph, config) as session:
        for key in (_graph_key(), _signed(_OF_VERSION_2)):
            options = tf.RunOptions(timeout_in_ms=_MOST_MSECS)
            options.experimental.collective_graph_key = key
            # An op of its own: TensorFlow keeps the key of the first step that ran it.
            session.run(tf.no_op(), options=options)


def _graph_key() -> int:
    """TensorFlow's key of each graph whose collective ops have `INSTANCE_KEY`, of 64 bits."""
    shifted = (INSTANCE_KEY << 10) + (INSTANCE_KEY >> 4)
    combined = INSTANCE_KEY ^ (_OF_VERSION_2 + 0x9E3779B97F4A7800 + shifted) % (1 << _BITS)
    return _signed(combined)


def _signed(number: int) -> int:
    return number - (1 << _BITS) if number >> (_BITS - 1) else number

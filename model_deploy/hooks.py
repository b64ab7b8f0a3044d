"""Session hooks that a deployment needs: noted in the graph, read by the training loop."""

from typing import Any

import tensorflow.compat.v1 as tf

# Not a string: collections with other names do not go into checkpoints.
_HOOKS = ("model_deploy", "hooks")


def add_session_hook(hook: Any) -> None:
    """Notes in the default graph that its sessions need `hook`, a `SessionRunHook`."""
    tf.add_to_collection(_HOOKS, hook)


def session_hooks() -> list[Any]:
    """Returns the hooks that every session which trains the default graph needs, in order.

    `deploy` adds them: with all-reduce one that sends the chief's initial values to all replicas,
    with synchronous replicas one that starts the aggregation.  `train` runs them; in your own loop
    pass them on: `tf.train.MonitoredTrainingSession(..., hooks=session_hooks())`.
    """
    return list(tf.get_collection(_HOOKS))

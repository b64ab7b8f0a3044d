"""`OnceOps`: runs inputs, clocks and random ops once, and hands their values to several makings."""

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus, internals
from model_deploy.verification.step_ops import StepOps


class OnceOps:
    """What a step takes from ops that must run once; changes control inputs of the default graph.

    A session that is fed the value of a tensor does not run the tensor's op, unless another op has
    that op as a control input.  So these other ops get, in its place, a tensor that is fed, too.

    Args:
      step: the ops of the step.

    Attributes:
      feeds: tensors of any shapes.  Fetched together they run the ops; fed they replace them.
    """

    def __init__(self, step: StepOps) -> None:
        self._once = once = set(step.once)
        others = step.needed - once
        taken = (t for op in others for t in op.inputs if t.op in once)
        self.feeds: list[Any] = list({tensor.name: tensor for tensor in taken}.values())
        self.feeds += _waits_by_tensors(others, once)
        # The first ops of a part wait for the part before, but not where they are run alone.
        self._released = dict.fromkeys(_waits_by_tensors(once, others), True)
        # TensorFlow's rewriting takes a control input away where it sees a longer way, also one
        # that leads over what is released.
        _waits_by_tensors(once, once)
        for tensor in self.feeds:
            if not tensor.graph.is_feedable(tensor):
                raise ValueError(
                    "verify_every_n_steps must be None for a step whose inputs no session can "
                    f"feed, got {tensor.name}"
                )

    def values(self, session: Any, feeds: dict[Any, Any]) -> dict[Any, Any]:
        """Runs the ops; returns what to feed, `feeds` included."""
        found = session.run(self.feeds, {**self._released, **feeds})
        return {**dict(zip(self.feeds, found, strict=True)), **feeds}

    def runs_one(self, ops: Iterable[Any]) -> Any:
        """Returns one of the ops that would run with `ops` though its value is fed, or None."""
        return next((c for op in ops for c in op.control_inputs if c in self._once), None)


def _waits_by_tensors(ops: Iterable[Any], before: set[Any]) -> list[Any]:
    """Makes ops wait for others, of `before`, by tensors, which are returned, bool scalars."""
    waiting: dict[Any, list[Any]] = {}
    for op in ops:
        for each in op.control_inputs:
            if each in before:
                waiting.setdefault(each, []).append(op)
    return [_wait_by_tensor(each, waiting[each]) for each in waiting]


def _wait_by_tensor(before: Any, later: Iterable[Any]) -> Any:
    """Makes ops wait for `before` by a tensor, which is returned, a bool scalar."""
    with tf.device(gpus.cpu_beside(before.device)), tf.name_scope(None):
        true = tf.constant(True, name="verification/true")
        with tf.control_dependencies([before]):
            # Not a constant, nor below an identity: TensorFlow's rewriting makes of such ops a
            # control input of what comes before them, which runs though they are fed.
            done = tf.placeholder_with_default(true, [], name="verification/done")
        then = tf.raw_ops.Assert(condition=done, data=[done], name="verification/then")
    for op in later:
        internals.replace_control_input(op, before, then)
    return done

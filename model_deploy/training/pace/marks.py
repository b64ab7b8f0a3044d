"""Marks in a step: when its batches, variables, gradients and sums are there, by a clock."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.deployment import DeployedModel
from model_deploy.op_types import GET_BATCH
from model_deploy.parameter_servers import is_remote


class Marks(NamedTuple):
    """Times of one step, in seconds since 1970 as `time.time()` has them; NaN where not taken.

    Attributes:
      batches: all batches are there.
      variables: what parameter servers send is there.
      computed: losses and gradients are there.
      exchanged: this replica's part in the exchange is done.
    """

    batches: Any = math.nan
    variables: Any = math.nan
    computed: Any = math.nan
    exchanged: Any = math.nan


def marks_of(
    model: DeployedModel,
    computed: Sequence[Any],
    exchanged: Sequence[Any] = (),
    *,
    times_batches: bool = True,
) -> Marks:
    """Adds ops to the default graph that take the times of a step; few, as each costs some us.

    A process alone exchanges nothing, so there only the batches are timed.

    Args:
      model: what `deploy` returned, with an optimizer.
      computed: losses and gradients of the step, tensors of any shapes.
      exchanged: as `DeployedModel.exchanged`: ops, or tensors of any shapes.
      times_batches: whether to look for the ops that get the batches, and to time them.

    Returns:
      For each time a float64 scalar, to be fetched with the step; NaN where it is not taken: all
      of them if ops are deterministic, as a clock is not.
    """
    config = model.config
    if not computed or config is None or internals.ops_are_deterministic():
        return Marks()
    needed = graph_walk.ancestors(tensor.op for tensor in computed)
    # TensorFlow 1's control flow makes what is inside of it useless outside.
    needed = {op for op in needed if not internals.in_old_control_flow(op)}
    device = config.optimizer_device()
    with tf.name_scope("marks"):
        marks = Marks()
        if times_batches:
            marks = Marks(batches=_time_of(_inputs(needed, config), device))
        if config.is_alone:
            return marks
        return marks._replace(
            variables=_time_of(_arrivals(needed, config), device),
            computed=_time_of([tensor.op for tensor in computed], device),
            exchanged=_time_of(exchanged, device),
        )


def _time_of(what: Iterable[Any], device: str) -> Any:
    """Returns the time at which all of some ops or tensors are there; NaN if there are none."""
    what = list(what)
    if not what:
        return math.nan
    # One op for each device first: of other processes each op would send a message of its own.
    ready = tf.group(*what) if len(what) > 1 else what[0]
    with tf.device(device), tf.control_dependencies([ready]):
        return tf.timestamp()


def _inputs(needed: Iterable[Any], config: Any) -> list[Any]:
    return [op for op in needed if op.type in GET_BATCH and not is_remote(config, op.device)]


def _arrivals(needed: Iterable[Any], config: Any) -> list[Any]:
    """Returns the worker's ops that take values of parameter servers and nothing else."""
    found = []
    for op in needed:
        sources = [tensor.op for tensor in op.inputs if tensor.op.type != "Const"]
        are_remote = all(is_remote(config, source.device) for source in sources)
        if sources and are_remote and not is_remote(config, op.device):
            found.append(op)
    return found

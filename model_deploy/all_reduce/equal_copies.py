"""Makes the clones' copies of variables equal after a step, and checks that they are equal."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.own_values import own_variables
from model_deploy.all_reduce.start import assign, sendable_variables
from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.collectives import Collectives, can_be_sent, carried_as, collectives_of
from model_deploy.config import DeploymentConfig

# Variables whose copies change alike by themselves.  Not a string: it does not go into checkpoints.
_ALIKE = ("model_deploy", "variables_that_change_alike")


def note_alike(variable: Any) -> None:
    """Notes that all copies of a variable make the same changes, and need not be made equal."""
    tf.add_to_collection(_ALIKE, variable.op.name)


def average_state(
    collectives: Collectives, copies: VariableCopies, done: Sequence[Sequence[Any]]
) -> Any:
    """Makes the copies of untrained variables, such as batch-norm statistics, equal again.

    Floats become the mean over all clones of all replicas, integers the largest value.

    Args:
      collectives: the collective ops of the step; the new ops run after them.
      copies: the variables of each clone.
      done: for each clone the ops to wait for.

    Returns:
      An op that is done when all copies are assigned.
    """
    alike = set(tf.get_collection(_ALIKE))
    state = [
        (original, *others)
        for original, others in copies.variables()
        if not original.trainable and can_be_sent(original.dtype)
        if original.op.name not in alike
    ]
    floats = [column for column in state if column[0].dtype.base_dtype.is_floating]
    integers = [column for column in state if not column[0].dtype.base_dtype.is_floating]
    size = collectives.size
    assigned = [
        *_make_equal(collectives, floats, done, lambda v, name: collectives.sum(v, name, 1 / size)),
        *_make_equal(collectives, integers, done, collectives.max),
    ]
    return tf.group(*assigned, *(op for ops in done for op in ops))


def copies_difference(
    config: DeploymentConfig,
    copies: VariableCopies,
    collectives: Collectives | None = None,
    variables: Sequence[Any] | None = None,
) -> Any:
    """Returns the largest difference between any two copies of any variable: 0 if all is well.

    All replicas must run it after the same step, and get the same value.  Reads the collection
    `GLOBAL_VARIABLES`.

    Args:
      config: the deployment.
      copies: the variables of each clone.
      collectives: between the clones to compare; by default between all of all replicas.
      variables: the first clone's variables, of any shapes; by default all of which replicas do
        not have values of their own.

    Returns:
      A float64 scalar.
    """
    collectives = collectives or collectives_of(config, "difference")
    if variables is None:
        own = {variable.op.name for variable in own_variables()}
        variables = [each for each in sendable_variables() if each.op.name not in own]

    def copy_of(variable: Any, i: int) -> Any:
        other = copies.of_clone(variable, i)
        value = (variable if other is None else other).read_value()
        return tf.cast(value, carried_as(value.dtype))

    def spread(values: list[Any], label: str) -> list[Any]:
        most = collectives.max(values, label)
        least = collectives.max(collectives.on_devices(lambda i: -values[i]), f"-{label}")
        return collectives.on_devices(lambda i: most[i] + least[i])

    values = collectives.on_devices(lambda i: [copy_of(v, i) for v in variables])
    spreads, *_ = collectives.in_packs(values, variables, spread)
    with tf.control_dependencies([collectives.done()]):
        largest = [tf.cast(tf.reduce_max(value), tf.float64) for value in spreads]
        return tf.reduce_max(tf.stack(largest), name="copies_difference")


def _make_equal(
    collectives: Collectives,
    columns: Sequence[Sequence[Any]],
    done: Sequence[Sequence[Any]],
    collective: Callable[[list[Any], str], list[Any]],
) -> list[Any]:
    """Assigns to each copy the `collective` of all copies' values; returns the ops."""

    def read(i: int) -> list[Any]:
        with tf.control_dependencies(done[i]):
            return [column[i].read_value() for column in columns]

    values = collectives.in_packs(
        collectives.on_devices(read), [column[0] for column in columns], collective
    )
    return [
        assign(column[i], value)
        for i, of_clone in enumerate(values)
        for column, value in zip(columns, of_clone, strict=True)
    ]

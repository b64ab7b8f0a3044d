"""`EarlyUpdates`: a variable's update, and reads of its new value, wait for its own gradients.

A plain step updates all variables when all gradients are there, and the next step reads them: the
links carry one direction after the other, and a third of the computation is all that there is
beside the reads.  Here the last layers' new values travel while the backward pass makes the first
layers' gradients (Jayarajan et al., Priority-based parameter propagation for distributed DNN
training, MLSys 2019, have each layer synchronized by itself; Hashemi et al., TicTac, MLSys 2019,
the order of reads).  All is done when the step ends.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.collectives import packing
from model_deploy.gradients import GradientAndVariable
from model_deploy.parameter_servers.reads_ahead import ReadsAhead
from model_deploy.parameter_servers.update_counts import UpdateCount
from model_deploy.updating import may_change_state


class _Group(NamedTuple):
    """Variables of one parameter server whose gradients, and values, travel together.

    Attributes:
      variables: of any shapes.
      updates: how often they have been updated.
    """

    variables: list[Any]
    updates: UpdateCount


class EarlyUpdates:
    """The groups of variables that are updated and read by themselves.

    Not among them are variables whose gradients are rows, and those that no shared read brings to
    the worker: they are updated when all gradients are there, and read by the next step.

    Args:
      reads: what may be read ahead; None if nothing is.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, or is an
        `IndexedSlices` over its rows.
      num_replicas: number of replicas, all of which take part in each update.
      replica_id: index of this one.
    """

    def __init__(
        self,
        reads: ReadsAhead | None,
        gradients: Sequence[GradientAndVariable],
        num_replicas: int,
        replica_id: int,
    ) -> None:
        self._reads, self._replica_id = reads, replica_id
        places: dict[str, list[Any]] = {}
        for gradient, variable in gradients:
            if reads is None or isinstance(gradient, tf.IndexedSlices):
                continue
            if reads.can_be_made(variable):
                small = packing.is_small(gradient)
                place = variable.device if small else variable.op.name
                places.setdefault(place, []).append(variable)
        self._groups = []
        for variables in places.values():
            name, device = f"{variables[0].op.name}/updates", variables[0].device
            self._groups.append(_Group(variables, UpdateCount(name, device, num_replicas)))

    @property
    def is_any(self) -> bool:
        """Whether there is a group."""
        return bool(self._groups)

    def read(
        self, gradients: Sequence[GradientAndVariable], handed_in: Sequence[Any], step: Any
    ) -> list[Any]:
        """Returns ops that read the new values, each group's as soon as it is updated.

        Args:
          gradients: `(gradient, variable)` pairs.
          handed_in: for each of them, the op that hands this replica's gradient in.
          step: the global step before the update, an integer scalar.
        """
        by_variable = {v.op: op for (_, v), op in zip(gradients, handed_in, strict=True)}
        number = tf.cast(step, tf.int64) + 1
        read = []
        for variables, updates in self._groups:
            with tf.control_dependencies([by_variable[each.op] for each in variables]):
                updated = updates.wait(self._replica_id, number)
            with tf.control_dependencies([updated]):
                read += self._filled(variables)
        return read

    def start(self) -> list[Any]:
        """Returns ops that a session starts with: they read the values as they are."""
        started = []
        for variables, updates in self._groups:
            started += [updates.forget(self._replica_id), *self._filled(variables)]
        return started

    def _filled(self, variables: Sequence[Any]) -> list[Any]:
        return [] if self._reads is None else self._reads.fill(variables)

    def set_counts(self, step: Any) -> list[Any]:
        """Returns ops that make the global step, an integer scalar, the number of all updates."""
        return [group.updates.set(tf.cast(step, tf.int64)) for group in self._groups]

    def let_go(self) -> list[Any]:
        """Returns ops that end one wait of each replica for each group."""
        return [group.updates.let_go() for group in self._groups]

    def wait_for_own(
        self,
        optimizer: Any,
        ops: Collection[Any],
        means: Sequence[GradientAndVariable],
        global_step: Any,
    ) -> list[Any]:
        """Makes changes of a group wait for its own means, and all others for all means.

        Args:
          optimizer: has made the ops.
          ops: the ops of an update, made without waiting for anything.
          means: `(mean, variable)` pairs, see `gradients`.
          global_step: the global step, an integer scalar variable.

        Returns:
          Ops that count the updates of the groups, and let replicas go on.
        """
        by_variable = {variable.op: mean for mean, variable in means}
        all_means = tf.group(*(tf.nest.flatten(list(by_variable.values()), expand_composites=True)))
        with tf.device(global_step.device):
            step = tf.raw_ops.DeepCopy(x=global_step.read_value())
            number = tf.cast(step, tf.int64) + 1
        takers = [
            set().union(*(_takers(each, ops) for each in _state_of(optimizer, variables)))
            for variables, _ in self._groups
        ]
        for op in filter(may_change_state, ops):
            owners = [i for i, own in enumerate(takers) if op in own]
            if len(owners) == 1:
                variables = self._groups[owners[0]].variables
                internals.add_control_inputs(op, [by_variable[each.op].op for each in variables])
            else:
                internals.add_control_inputs(op, [all_means, step.op])
        counted = []
        for own, (_, updates) in zip(takers, self._groups, strict=True):
            with tf.control_dependencies(list(own)):
                counted.append(updates.reach(number))
        return counted


def _state_of(optimizer: Any, variables: Iterable[Any]) -> list[Any]:
    """Returns the ops of variables and of what an optimizer keeps for each of them."""
    names = optimizer.get_slot_names()
    kept = [optimizer.get_slot(each, name) for each in variables for name in names]
    return [each.op for each in (*variables, *kept) if each is not None]


def _takers(variable: Any, ops: Collection[Any]) -> set[Any]:
    """Returns those of some ops that take a variable, or a value that is made of it."""
    found: set[Any] = set()
    waiting = [variable]
    while waiting:
        for tensor in waiting.pop().outputs:
            for op in tensor.consumers():
                if op in ops and op not in found:
                    found.add(op)
                    waiting.append(op)
    return found

"""`Exchanges`: what replicas that make local steps send each other, and when.

An exchange is made at the end of a step, or travels beside the steps after it, as in Streaming
DiLoCo (Douillard et al. 2025, arXiv 2501.18512).  There the changes are noted when it begins, one
row of them is summed beside each step, and the outer step is made when all rows are there.  What a
replica has changed meanwhile stays: it is counted in the next exchange.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus, internals
from model_deploy.all_reduce import StartHook, VariableCopies
from model_deploy.collectives import collectives_of, packing, sum_narrow
from model_deploy.config import DeploymentConfig
from model_deploy.hooks import add_session_hook
from model_deploy.local_steps.outer import Outer
from model_deploy.local_steps.schedule import Schedule, parts_by_bytes, schedules
from model_deploy.updating import Change, Condition


class Exchanges:
    """Makes the exchanges of all parts; adds variables to the default graph.

    Args:
      config: the deployment, with `local_steps`.
      copies: the variables of each clone.
      variables: the first clone's variables to exchange, of floats, of any shapes.
    """

    def __init__(
        self, config: DeploymentConfig, copies: VariableCopies, variables: Sequence[Any]
    ) -> None:
        self._config = config
        sizes = [v.shape.num_elements() * v.dtype.base_dtype.size for v in variables]
        divided = parts_by_bytes(sizes, config.outer_parts)
        all_of = schedules(config.local_steps or 1, config.outer_parts, config.outer_overlap)
        self._exchanges = [
            _Exchange(config, copies, of_dtype, schedule)
            for part, schedule in zip(divided, all_of, strict=True)
            for of_dtype in _by_dtype([variables[k] for k in part])
        ]

    @property
    def common(self) -> list[Any]:
        """The variables, of any shapes, that are equal in all replicas after each step."""
        return [variable for each in self._exchanges for variable in each.common]

    def send(self, step: Any) -> list[Any]:
        """Sums what travels beside a step.

        Args:
          step: the global step before it, an int64 scalar.

        Returns:
          Ops that are done when all sums of the step have arrived.
        """
        sent = [op for each in self._exchanges for op in each.send(step)]
        return [*sent, *self._meet()]

    def note(self, first: Any) -> list[Any]:
        """Keeps what has arrived; returns ops that wait for `first`, an op."""
        return [op for each in self._exchanges for op in each.note(first)]

    def add_start_hook(self) -> None:
        """Adds a session hook that makes the values before the first step the anchors.

        It comes after that which gives all replicas the same values.
        """
        step = tf.cast(tf.train.get_global_step().read_value(), tf.int64)
        noted = [op for each in self._exchanges for op in each.start(step)]
        add_session_hook(StartHook(tf.group(*noted, name="start_anchors")))

    def end_step(self, updates: Sequence[Any]) -> list[Any]:
        """Begins and ends exchanges, at the end of a step.

        Args:
          updates: ops that make the replica's own updates.

        Returns:
          Ops that are done when the variables have their values.
        """
        with tf.control_dependencies(updates):
            step = tf.cast(tf.train.get_global_step().read_value(), tf.int64)
        done = [op for each in self._exchanges for op in each.end_step(step)]
        return [*updates, *done]

    def _meet(self) -> list[Any]:
        """Lets all replicas wait for each other in the first step of a session.

        Collective ops of a step find each other by its number, which TensorFlow counts from the
        number that worker 0 has when another one first asks: none may be ahead of the others then.
        """
        device = self._config.optimizer_device()
        with tf.device(device):
            have_met = tf.Variable(
                False,
                name="local_steps/have_met",
                trainable=False,
                use_resource=True,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )
        group = collectives_of(self._config, "meeting").first_clones()
        with tf.device(device):
            alone = Condition(tf.logical_not(have_met.read_value()))
            with alone.passed():
                met = group.max(group.on_devices(lambda _: tf.ones([1])), "all")
                with tf.control_dependencies(met):
                    noted = have_met.assign(True, read_value=False)
            return alone.done([noted])


class _Exchange:
    """The exchange of variables of one dtype that are in one part."""

    def __init__(
        self,
        config: DeploymentConfig,
        copies: VariableCopies,
        variables: Sequence[Any],
        schedule: Schedule,
    ) -> None:
        self._config, self._copies, self._schedule = config, copies, schedule
        # A sequence of its own: an op that follows one which does not run does not run either.
        purpose = f"exchange {schedule} {variables[0].dtype.base_dtype.name}"
        self._collectives = collectives_of(config, purpose).first_clones()
        self._device = gpus.placing(config.clone_device(0))
        rate, momentum = config.outer_learning_rate, config.outer_momentum
        self._outer = Outer(variables, rate, momentum, self._device)
        self._shapes = [variable.shape for variable in variables]
        momenta = [each for each in self._outer.momenta if each is not None]
        self.common = [*self._outer.anchors, *momenta]
        if schedule.overlap:
            self._own, self._mean = self._rows("own"), self._rows("mean")
            self.common.append(self._mean)

    def send(self, step: Any) -> list[Any]:
        if not self._schedule.overlap:
            return []
        with tf.device(self._device):
            is_under_way, self._row = self._schedule.row_under_way(step)
            self._under_way = Condition(is_under_way)
            with self._under_way.passed():
                row = tf.gather(self._own.read_value(), self._row) * self._config.share
                names = [variable.op.name for variable in self._outer.variables]
                self._arrived = self._sum([row], f"{row.shape} of {names}")[0]
            return self._under_way.done([self._arrived])

    def note(self, first: Any) -> list[Any]:
        if not self._schedule.overlap:
            return []
        with tf.device(self._device), tf.control_dependencies([first]):
            with self._under_way.passed():
                row = self._row[tf.newaxis]
                new = tf.scatter_update(self._mean, row, self._arrived[tf.newaxis])
            return self._under_way.done([new])

    def start(self, step: Any) -> list[Any]:
        pairs = zip(self._outer.anchors, self._outer.variables, strict=True)
        with tf.device(self._device):
            return self._if(
                tf.equal(step, 0),
                lambda: [_assign(anchor, variable.read_value()) for anchor, variable in pairs],
            )

    def end_step(self, step: Any) -> list[Any]:
        with tf.device(self._device):
            if not self._schedule.overlap:
                return self._if(self._schedule.begins(step), self._exchange_now)
            ended = self._if(self._schedule.ends(step), self._end)
            with tf.control_dependencies(ended):
                return self._if(self._schedule.begins(step), self._begin)

    def _if(self, predicate: Any, make: Callable[[], list[Any]]) -> list[Any]:
        condition = Condition(predicate)
        with condition.passed():
            made = make()
        return condition.done(made)

    def _exchange_now(self) -> list[Any]:
        """Sends all changes, and makes the outer step."""
        own = [change * self._config.share for change in self._outer.changes()]
        [means] = self._collectives.in_packs([own], self._outer.variables, self._sum)
        new, assignments = self._outer.step(means)
        return self._assigned(new, assignments)

    def _begin(self) -> list[Any]:
        """Notes the changes that are to be sent."""
        flat = packing.pack(self._outer.changes())
        size = self._own.shape.num_elements()
        filled = tf.pad(flat, [[0, size - flat.shape.num_elements()]])
        return [_assign(self._own, tf.reshape(filled, self._own.shape))]

    def _end(self) -> list[Any]:
        """Makes the outer step of what has arrived, below the changes since the begin."""
        means, own = self._unpacked(self._mean), self._unpacked(self._own)
        since = [
            sent - change for sent, change in zip(own, self._outer.changes(), strict=True)
        ]  # (anchor - noted value) - (anchor - value)
        new, assignments = self._outer.step(means)
        values = [anchor + change for anchor, change in zip(new, since, strict=True)]
        return self._assigned(values, assignments)

    def _assigned(self, values: Sequence[Any], assignments: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Assigns new values to all clones, and the others, when all are computed."""
        with tf.control_dependencies([*values, *(value for _, value in assignments)]):
            made = [_assign(variable, value) for variable, value in assignments]
            for variable, value in zip(self._outer.variables, values, strict=True):
                for i in range(self._config.num_clones):
                    copied = self._copies.of_clone(variable, i)
                    if copied is not None:
                        made.append(_assign(copied, value))
        return made

    def _sum(self, vectors: list[Any], label: str) -> list[Any]:
        return sum_narrow(self._collectives, vectors, label, 1.0, self._config.wire_dtype)

    def _rows(self, kind: str) -> Any:
        """Makes a variable [overlap, numbers] that holds a number for each of the variables."""
        first = self._outer.variables[0]
        overlap = self._schedule.overlap
        size = sum(shape.num_elements() for shape in self._shapes)
        with tf.init_scope(), tf.device(None), tf.device(self._device), tf.name_scope(None):
            return tf.Variable(
                lambda: tf.zeros([overlap, -(-size // overlap)], first.dtype.base_dtype),
                name=f"local_steps/{kind}/part_{self._schedule.offset}_{first.dtype.base_dtype.name}",
                trainable=False,
                use_resource=internals.is_resource_variable(first),
            )

    def _unpacked(self, rows: Any) -> list[Any]:
        size = sum(shape.num_elements() for shape in self._shapes)
        return packing.unpack(tf.reshape(rows.read_value(), [-1])[:size], self._shapes)


def _assign(variable: Any, value: Any) -> Any:
    return Change(variable, "assign", value).make()


def _by_dtype(variables: Sequence[Any]) -> list[list[Any]]:
    found: dict[tf.DType, list[Any]] = {}
    for variable in variables:
        found.setdefault(variable.dtype.base_dtype, []).append(variable)
    return list(found.values())

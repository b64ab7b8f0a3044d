"""`OwnValues`: what differs by replica, kept in the chief's checkpoint and handed back at a start.

With all-reduce the copies of a variable are equal, and the chief saves its own.  Where a way to
train has variables of which each replica has values of its own, the chief gets those of all before
it saves, and each replica gets its own back.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.start import assign, sendable_variables
from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.cluster import run_until_closed
from model_deploy.collectives import Collectives, packing, packs_of
from model_deploy.config import DeploymentConfig
from model_deploy.hooks import add_session_hook

# Names of variables with own values; names of those that have none where all others do; and the
# chief's rows.  Not strings: they do not go into checkpoints.
_OWN = ("model_deploy", "own_values")
_COMMON = ("model_deploy", "common_values")
_ROWS = ("model_deploy", "rows_of_replicas")


def note_own(variables: Iterable[Any]) -> None:
    """Notes in the default graph that each replica has values of its own of these variables."""
    tf.get_collection_ref(_OWN).extend(variable.op.name for variable in variables)


def note_common(variables: Iterable[Any]) -> None:
    """Notes that of all variables but these, and the global step, replicas have own values."""
    names = [tf.GraphKeys.GLOBAL_STEP, *(variable.op.name for variable in variables)]
    tf.get_collection_ref(_COMMON).extend(names)


def has_own_values() -> bool:
    """Whether replicas have values of their own of variables of the default graph."""
    return bool(tf.get_collection(_OWN) or tf.get_collection(_COMMON))


def own_variables() -> list[Any]:
    """Returns the variables, of any shapes, of which each replica has own values, by name."""
    own, common = set(tf.get_collection(_OWN)), set(tf.get_collection(_COMMON))
    found = [
        variable
        for variable in sendable_variables()
        if variable.op.name in own or (common and variable.op.name not in common)
    ]
    return sorted(found, key=lambda variable: str(variable.op.name))


def rows_of_replicas() -> list[Any]:
    """Returns the chief's variables with the own values of all, a row for each, to be saved."""
    return list(tf.get_collection(_ROWS))


class OwnValues:
    """Brings the own values of all replicas to the chief, and back; adds ops and a session hook.

    All replicas must call `agree`, and `gather` after a step, together.

    Args:
      config: the deployment, of several replicas.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self._replica_id, self._is_chief = config.replica_id, config.replica_id == 0
        self._device, self._num_replicas = config.optimizer_device(), config.num_replicas

        def group(purpose: str) -> Collectives:  # one for each run: ops wait for those before them
            place = [self._device], config.replica_id, config.num_replicas
            return Collectives(*place, f"own values/{purpose}")

        gather, give = group("gather"), group("give")
        copies = VariableCopies(config)

        def copies_of(variable: Any) -> list[Any]:
            own = [copies.of_clone(variable, i) for i in range(config.num_clones)]
            return [each for each in own if each is not None]

        kept, given = [], []
        with tf.name_scope("own_values"):
            with tf.device(self._device):
                self._wants = tf.placeholder(tf.float32, [1], "wants")
            [self._wanted] = group("agree").max([self._wants], "wants")
            for number, pack in enumerate(_packs(own_variables())):
                rows = self._rows(number, pack)
                kept.append(self._kept(gather, number, pack, rows))
                given += self._given(give, number, pack, rows, copies_of)
            self._gather = tf.group(*kept)
            self._give = tf.group(*given)
            self._start_rows = tf.group(*(each.initializer for each in rows_of_replicas()))
            self._are_set = [tf.is_variable_initialized(each) for each in rows_of_replicas()]
        add_session_hook(_GiveBackHook(self))

    def agree(self, session: Any, wants: bool) -> bool:
        """Returns whether any replica wants something; waits for all."""
        feeds = {self._wants: [float(wants)]}
        return bool(run_until_closed(session, lambda: session.run(self._wanted, feeds))[0] > 0)

    def gather(self, session: Any) -> None:
        """Brings all own values to the chief's rows."""
        session.run(self._gather)

    def give_back(self, session: Any) -> None:
        """Lets each replica have its row, at the start of a session that has restored the rows."""
        are_set = bool(self._are_set) and all(session.run(self._are_set))
        if self._is_chief and not are_set:
            session.run(self._start_rows)
        if self.agree(session, are_set):
            run_until_closed(session, lambda: session.run(self._give))

    def _rows(self, number: int, pack: Sequence[Any]) -> Any:
        """Returns the chief's variable for a pack; None in other replicas."""
        if not self._is_chief:
            return None
        shape = [self._num_replicas, sum(v.shape.num_elements() for v in pack)]
        with tf.device(self._device):
            return tf.Variable(
                lambda: tf.zeros(shape, pack[0].dtype.base_dtype),
                name=f"pack_{number}",
                trainable=False,
                use_resource=True,
                collections=[_ROWS],
            )

    def _kept(self, group: Collectives, number: int, pack: Sequence[Any], rows: Any) -> Any:
        """Returns the op that gathers the values of a pack; the chief keeps them in `rows`."""
        label = f"{number}: {[variable.op.name for variable in pack]}"
        with tf.device(self._device):
            own = packing.pack([variable.read_value() for variable in pack])
        [found] = group.gather([own[tf.newaxis]], label)
        return found.op if rows is None else assign(rows, found)

    def _given(
        self,
        group: Collectives,
        number: int,
        pack: Sequence[Any],
        rows: Any,
        copies_of: Callable[[Any], list[Any]],
    ) -> list[Any]:
        """Returns the ops that assign this replica's row to all copies of a pack's variables."""
        shapes = [variable.shape for variable in pack]
        with tf.device(self._device):
            size = sum(shape.num_elements() for shape in shapes)
            sent = tf.zeros([self._num_replicas, size], pack[0].dtype.base_dtype)
            sent = sent if rows is None else rows.read_value()
        [received] = group.broadcast([sent], f"{number}: {[v.op.name for v in pack]}")
        values = packing.unpack(received[self._replica_id], shapes)
        return [
            assign(copied, value)
            for variable, value in zip(pack, values, strict=True)
            for copied in copies_of(variable)
        ]


class _GiveBackHook(tf.train.SessionRunHook):
    """Gives replicas their own values back when a session starts."""

    def __init__(self, values: OwnValues) -> None:
        self._values = values

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Gives them back."""
        del coord
        self._values.give_back(session)


def _packs(variables: Sequence[Any]) -> list[list[Any]]:
    """Groups variables of one dtype into packs of a few MB."""
    found = []
    for dtype in sorted({v.dtype.base_dtype for v in variables}, key=lambda dtype: dtype.name):
        own = [v for v in variables if v.dtype.base_dtype == dtype and v.shape.num_elements()]
        sizes = [variable.shape.num_elements() * dtype.size for variable in own]
        found += [[own[k] for k in pack] for pack in packs_of(sizes, members=1)]
    return found

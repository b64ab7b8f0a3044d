"""`create_clones`: one copy of the model per device; and what belongs to which copy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import placement, slim
from model_deploy.config import DeploymentConfig, DeviceFunction

# The graph's list of `_Record`s, so that a second deployment in a graph can tell
# what the first one made.  Not a string: those collections go into checkpoints.
_RECORDS = ("model_deploy", "clones")

# Collections in which an item made by a clone counts for that clone.
_CLONE_COLLECTIONS = (
    tf.GraphKeys.LOSSES,
    tf.GraphKeys.REGULARIZATION_LOSSES,
    tf.GraphKeys.UPDATE_OPS,
    tf.GraphKeys.SUMMARIES,
)

# Types of summary ops end in one of these; they have no kernel for GPUs.
_SUMMARY_OPS = ("Summary", "SummaryV2")


class Clone(NamedTuple):
    """One copy of the model on one device.

    Attributes:
      outputs: what `model_fn` returned.
      scope: name scope of the clone, `clone_<i>/`; '' where there is just one.
      device: device of the clone, such as `/device:GPU:0`.
    """

    outputs: Any
    scope: str
    device: str


class _Record(NamedTuple):
    """A clone, and for each collection the ids of the items that it added."""

    clone: Clone
    added: Mapping[str, frozenset[int]]

    def owns(self, item: Any, key: str) -> bool:
        by_scope = bool(self.clone.scope) and item.name.startswith(self.clone.scope)
        return by_scope or id(item) in self.added.get(key, ())


class Members(NamedTuple):
    """The items of a collection, divided over clones.

    Attributes:
      clones: for each clone, in order, the items that it made.
      shared: the items that no clone in the graph made.
    """

    clones: list[list[Any]]
    shared: list[Any]


def create_clones(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> list[Clone]:
    """Calls `model_fn(*args, **kwargs)` once per clone, on the clone's device.

    The first clone makes the variables, on `config.variables_device()`; the others
    reuse them.  Where `model_fn` names a device, or a part of one, for an op or a
    variable, that part is kept.  Summaries always go to the worker's CPU.  Losses
    belong into `tf.GraphKeys.LOSSES`, where slim and `tf.losses` put them.

    Args:
      config: the deployment.
      model_fn: builds the model and returns anything.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.

    Returns:
      One `Clone` per clone, in order.

    Raises:
      RuntimeError: if TensorFlow executes eagerly.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "clones are built in a graph: call inside `with tf.Graph().as_default():`, "
            "or call tf.compat.v1.disable_eager_execution() first"
        )
    variables_device = config.variables_device()
    clones = []
    with slim.arg_scope([slim.model_variable, slim.variable], device=variables_device):
        for i in range(config.num_clones):
            device = _clone_device_function(config, i, variables_device)
            before = _item_ids()
            with (
                tf.name_scope(config.clone_scope(i)) as scope,
                tf.device(device),
                tf.variable_scope(tf.get_variable_scope(), reuse=True if i > 0 else None),
            ):
                outputs = model_fn(*(args or ()), **(kwargs or {}))
            clone = Clone(outputs, scope, config.clone_device(i))
            added = {key: ids - before[key] for key, ids in _item_ids().items()}
            tf.add_to_collection(_RECORDS, _Record(clone, added))
            clones.append(clone)
    return clones


def collect_members(key: str, clones: Sequence[Clone]) -> Members:
    """Divides the graph's collection `key` over `clones`.

    An item belongs to a clone if it was added while `model_fn` built that clone, or
    if its name starts with the clone's scope.  Items of clones that are not listed
    (another deployment in the same graph) are left out.

    Args:
      key: `LOSSES`, `REGULARIZATION_LOSSES`, `UPDATE_OPS` or `SUMMARIES`.
      clones: the clones of one deployment.
    """
    records = tf.get_collection(_RECORDS)
    members = Members([[] for _ in clones], [])
    for item in tf.get_collection(key):
        owners = [record.clone for record in records if record.owns(item, key)]
        mine = [i for i, clone in enumerate(clones) if any(owner is clone for owner in owners)]
        if mine:
            members.clones[mine[0]].append(item)
        elif not owners:
            members.shared.append(item)
    return members


def claim_member(clone: Clone, key: str, item: Any) -> None:
    """Lets `item` of the graph's collection `key` count as made by `clone`."""
    tf.add_to_collection(_RECORDS, _Record(clone, {key: frozenset([id(item)])}))


def _item_ids() -> dict[str, frozenset[int]]:
    return {key: frozenset(map(id, tf.get_collection(key))) for key in _CLONE_COLLECTIONS}


def _clone_device_function(
    config: DeploymentConfig, clone_index: int, variables_device: str | DeviceFunction
) -> DeviceFunction:
    """Sends variables to their device, summaries to the CPU, all else to the clone's device."""
    clone_device = config.clone_device(clone_index)

    def device(op: Any) -> str:
        if op.type.endswith(_SUMMARY_OPS):
            return config.inputs_device()
        if not placement.is_variable_op(op):
            return placement.merge_devices(clone_device, op.device)
        if callable(variables_device):
            return variables_device(op)
        return placement.merge_devices(variables_device, op.device)

    return device

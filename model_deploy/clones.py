"""`create_clones`: one copy of the model per device; and what belongs to which copy."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals, placement, slim
from model_deploy.config import DeploymentConfig, DeviceFunction
from model_deploy.copying import CopiedModel, Twins
from model_deploy.parameter_servers import share_reads

# The graph's list of `_Record`s, so that a second deployment in a graph can tell
# what the first one made.  Not a string: those collections go into checkpoints.
_RECORDS = ("model_deploy", "clones")
# A pair for each call of `create_clones`: the clones, and what `share_reads` returned.
_SHARED_VALUES = ("model_deploy", "shared_values")

# Collections in which an item made by a clone counts for that clone.
_CLONE_COLLECTIONS = (
    tf.GraphKeys.LOSSES,
    tf.GraphKeys.REGULARIZATION_LOSSES,
    tf.GraphKeys.UPDATE_OPS,
    tf.GraphKeys.SUMMARIES,
)

# Types of summary ops end in one of these; they have no kernel for GPUs.
_SUMMARY_OPS = ("Summary", "SummaryV2")

_building: contextvars.ContextVar[int] = contextvars.ContextVar("clone that is being built")


class Clone(NamedTuple):
    """One copy of the model on one device.

    Attributes:
      outputs: what `model_fn` returned: tensors of any shapes in any structure, or else.
      scope: name scope of the clone, `clone_<i>/`; '' where there is just one.
      device: device of the clone, such as `/device:GPU:0`.
    """

    outputs: Any
    scope: str
    device: str


class Origin(NamedTuple):
    """How a clone was made.

    Attributes:
      config: the deployment.
      number: of the clone, from 0 on.
      model: the model that is copied; None if `model_fn` was called for each clone.
      twins: what stands for what of the first clone, in a copy; None in the first one.
    """

    config: DeploymentConfig
    number: int
    model: CopiedModel | None = None
    twins: Twins | None = None


class _Record(NamedTuple):
    """A clone, and for each collection the ids of the items that it added."""

    clone: Clone
    added: Mapping[str, frozenset[int]]
    origin: Origin | None = None

    def owns(self, item: Any, key: str) -> bool:
        by_scope = bool(self.clone.scope) and item.name.startswith(self.clone.scope)
        return by_scope or id(item) in self.added.get(key, ())


class Members(NamedTuple):
    """The items of a collection, divided over clones.

    Attributes:
      clones: for each clone, in order, the items that it made: losses are scalars, summaries
        serialized string scalars, update ops ops or tensors of any shape.
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

    With `config.copy_clones` it calls it for the first clone, and copies what that has
    built for the others.

    The first clone makes the variables, on `config.variables_device()`; the others
    reuse them.  Where `model_fn` names a device, or a part of one, for an op or a
    variable, that part is kept; but `config.stage_device`, where clones have several
    devices, is for ops only.  Summaries always go to the worker's CPU.  Losses
    belong into `tf.GraphKeys.LOSSES`, where slim and `tf.losses` put them.

    What clones read of a variable on a parameter server comes to the worker once per
    step, see `shared_reads.share_reads`.

    Args:
      config: the deployment.
      model_fn: builds the model and returns anything.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.

    Returns:
      One `Clone` per clone, in order.

    Raises:
      RuntimeError: if TensorFlow executes eagerly.
      ValueError: for `config.copy_clones` and a model that cannot be copied.
    """
    _check_graph_mode()
    variables_device = config.variables_device()
    arguments = (args or ()), (kwargs or {})
    model = None
    if config.copy_clones and config.num_clones > 1:
        model = CopiedModel(config, model_fn, *arguments)
    num_ops = len(tf.get_default_graph().get_operations())
    clones = []
    with slim.arg_scope([slim.model_variable, slim.variable], device=variables_device):
        for i in range(config.num_clones):
            before = _item_ids()
            twins = None
            with _building_clone(config, i, variables_device) as scope:
                if model is None:
                    outputs = model_fn(*arguments[0], **arguments[1])
                elif i == 0:
                    outputs = model.build(scope)
                else:
                    outputs, twins = model.copy(i, scope)
            clones.append(Clone(outputs, scope, config.clone_device(i)))
            _record(clones[-1], before, Origin(config, i, model, twins))
    values = share_reads(config, tf.get_default_graph().get_operations()[num_ops:])
    tf.add_to_collection(_SHARED_VALUES, (clones, values))
    return clones


def _check_graph_mode() -> None:
    if tf.executing_eagerly():
        raise RuntimeError(
            "clones are built in a graph: call inside `with tf.Graph().as_default():`, "
            "or call tf.compat.v1.disable_eager_execution() first"
        )


def _record(clone: Clone, before: Mapping[str, frozenset[int]], origin: Origin) -> None:
    """Notes in the graph what of its collections a clone has made; `before` was there."""
    added = {key: ids - before[key] for key, ids in _item_ids().items()}
    tf.add_to_collection(_RECORDS, _Record(clone, added, origin))


def shared_values(clones: Sequence[Clone]) -> list[Any]:
    """What `share_reads` returned for the clones that one call of `create_clones` made.

    Returns:
      Tensors on the worker's CPU, each of its variable's shape and dtype.
    """
    for made, values in tf.get_collection(_SHARED_VALUES):
        if made and clones and made[0] is clones[0]:
            return list(values)
    return []


def current_clone() -> int:
    """Number of the clone that `model_fn` is building, from 0 on.

    It is for placing stages, see `DeploymentConfig.stage_device`.  With `copy_clones`
    a model that computes with it cannot be told from one that does not.

    Raises:
      RuntimeError: outside of `model_fn`.
    """
    try:
        return _building.get()
    except LookupError:
        raise RuntimeError("current_clone is known only while model_fn is called") from None


def origin_of(clone: Clone) -> Origin | None:
    """How `create_clones` made a clone of the default graph; None if it did not."""
    for record in tf.get_collection(_RECORDS):
        if record.clone is clone and record.origin is not None:
            origin: Origin = record.origin
            return origin
    return None


def stages_by_device(graph: tf.Graph, clones: Sequence[Clone] | None = None) -> dict[str, str]:
    """Which stages of clones with several devices are on a device, as words.

    Args:
      graph: the graph of the clones.
      clones: the clones that count; all of the graph if not given.
    """
    named: dict[str, list[str]] = {}
    for record in graph.get_collection(_RECORDS):
        counts = clones is None or any(record.clone is clone for clone in clones)
        if counts and record.origin is not None and record.origin.config.devices_per_clone > 1:
            config, index = record.origin.config, record.origin.number
            for stage in range(config.devices_per_clone):
                names = named.setdefault(config.stage_device(index, stage), [])
                names.append(f"clone {index} stage {stage}")
    return {device: ", ".join(dict.fromkeys(names)) for device, names in named.items()}


def collect_members(key: str, clones: Sequence[Clone]) -> Members:
    """Divides the graph's collection `key` over `clones`.

    An item belongs to a clone if it was added while `model_fn` built that clone, or
    if its name starts with the clone's scope.  Items of clones that are not listed
    (another deployment in the same graph) are left out.

    Args:
      key: `LOSSES`, `REGULARIZATION_LOSSES`, `UPDATE_OPS` or `SUMMARIES`.
      clones: the clones of one deployment.

    Returns:
      The items; see `Members` for their shapes.
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


@contextlib.contextmanager
def _building_clone(
    config: DeploymentConfig, clone_index: int, variables_device: str | DeviceFunction
) -> Iterator[str]:
    """Opens the name scope (which it gives), the device and the variable scope of a clone."""
    device = _clone_device_function(config, clone_index, variables_device)
    token = _building.set(clone_index)
    try:
        with (
            tf.name_scope(config.clone_scope(clone_index)) as scope,
            tf.device(device),
            tf.variable_scope(tf.get_variable_scope(), reuse=True if clone_index > 0 else None),
        ):
            yield scope
    finally:
        _building.reset(token)


def _item_ids() -> dict[str, frozenset[int]]:
    return {key: frozenset(map(id, tf.get_collection(key))) for key in _CLONE_COLLECTIONS}


def _clone_device_function(
    config: DeploymentConfig, clone_index: int, variables_device: str | DeviceFunction
) -> DeviceFunction:
    """Sends variables to their device, summaries to the CPU, all else to the clone's device."""
    clone_device = config.clone_device(clone_index)
    stages: list[str] = []
    if config.devices_per_clone > 1:
        stages = [config.stage_device(clone_index, i) for i in range(config.devices_per_clone)]

    def device(op: Any) -> str:
        if op.type.endswith(_SUMMARY_OPS):
            return config.inputs_device()
        if not placement.is_variable_op(op):
            return placement.merge_devices(clone_device, op.device)
        if op.device in stages:  # says where to compute, not where the weights live
            internals.set_device(op, "")
        if callable(variables_device):
            return variables_device(op)
        return placement.merge_devices(variables_device, op.device)

    return device

"""`create_clones`: one copy of the model per device; and what belongs to which copy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, slim
from model_deploy.collectives import Collectives
from model_deploy.clone_scopes import building_clone
from model_deploy.config import DeploymentConfig
from model_deploy.copying import CopiedModel, Twins
from model_deploy.keras_layers import seeing_layers
from model_deploy.parameter_servers import share_reads
from model_deploy.rewrites import BatchNorms, compilation, computing_in, computing_in_layout

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


class Clone(NamedTuple):
    """One copy of the model on one device; with `accumulate_steps` one part of it.

    Attributes:
      outputs: what `model_fn` returned: tensors of any shapes in any structure, or else.
      scope: name scope, `clone_<i>/`; '' where there is just one.  That of a part is
        `clone_<i>/part_<j>/`, or `part_<j>/`.
      device: device of the clone, such as `/device:GPU:0`.
    """

    outputs: Any
    scope: str
    device: str


class Origin(NamedTuple):
    """How a clone was made.

    Attributes:
      config: the deployment.
      number: of the clone, from 0 on; its parts have the same one.
      model: the model that is copied; None if `model_fn` was called for each clone.
      twins: what stands for what of the first clone, in a copy; None in the first one.
      ops: what building it has added to the graph; only where clones have several parts.
      norms: the batch norms of all the clones that were made together.
    """

    config: DeploymentConfig
    number: int
    model: CopiedModel | None = None
    twins: Twins | None = None
    ops: Sequence[Any] = ()
    norms: BatchNorms | None = None


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

    With `config.accumulate_steps` it calls it for each part of each clone.  With
    `config.copy_clones` it calls it for the first clone (and part), and copies what that
    has built for the others.

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
      One `Clone` per clone, in order; where clones have parts one per part, those of the
      first clone first.

    Raises:
      RuntimeError: if TensorFlow executes eagerly.
      ValueError: for `config.copy_clones` and a model that cannot be copied; for
        `config.sync_batch_norm` and a batch norm that cannot be synchronized; for `config.xla`
        and a TensorFlow without XLA.
    """
    clones = build_clones(config, model_fn, args, kwargs)
    join_batch_norms(clones)
    return clones


def build_clones(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> list[Clone]:
    """As `create_clones`, but batch norms are not joined yet: that is best done after gradients.

    These would be looked for in all clones at once.
    """
    _check_graph_mode()
    compilation.check_xla(config)
    variables_device = config.variables_device()
    arguments = (args or ()), (kwargs or {})
    model = None
    if config.copy_clones and config.batches_per_step > 1:
        model = CopiedModel(config, model_fn, *arguments)
    num_ops = len(tf.get_default_graph().get_operations())
    clones: list[Clone] = []
    norms = BatchNorms(config)
    with slim.arg_scope([slim.model_variable, slim.variable], device=variables_device):
        for number in range(config.batches_per_step):
            i, part = divmod(number, config.accumulate_steps)
            before = _item_ids()
            twins = None
            with (
                building_clone(config, i, part, variables_device) as scope,
                computing_in_layout(config.data_format),
                norms.of_next_part(),
                computing_in(config.precision, config.clone_device(i)),
                graph_walk.new_ops() as ops,
            ):
                layers = seeing_layers(config, number, variables_device)
                if model is None:
                    with layers:
                        outputs = model_fn(*arguments[0], **arguments[1])
                elif number == 0:
                    outputs = model.build(scope, layers)
                else:
                    outputs, twins = model.copy(number, scope)
                    norms.copied(twins)
            compilation.compile_clone(config, scope, ops, twins.ops if twins else None)
            clones.append(Clone(outputs, scope, config.clone_device(i)))
            kept = ops if config.accumulate_steps > 1 else ()
            _record(clones[-1], before, Origin(config, i, model, twins, kept, norms))
    values = share_reads(config, tf.get_default_graph().get_operations()[num_ops:])
    tf.add_to_collection(_SHARED_VALUES, (clones, values))
    return clones


def join_batch_norms(clones: Sequence[Clone], collectives: Collectives | None = None) -> None:
    """Lets synchronized batch norms take their sums over all clones; see `BatchNorms.join`.

    Args:
      clones: those of one call of `create_clones`.
      collectives: the collective ops of the step, with all-reduce.

    Raises:
      ValueError: if the clones have other batch norms, or other gradients of them.
    """
    norms = batch_norms(clones)
    if norms is not None:
        norms.join(collectives)


def batch_norms(clones: Sequence[Clone]) -> BatchNorms | None:
    """The batch norms of the clones of one call of `create_clones`; None for other clones."""
    origin = origin_of(clones[0]) if clones else None
    return origin.norms if origin is not None else None


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


def origin_of(clone: Clone) -> Origin | None:
    """How `create_clones` made a clone of the default graph; None if it did not."""
    for record in tf.get_collection(_RECORDS):
        if record.clone is clone and record.origin is not None:
            origin: Origin = record.origin
            return origin
    return None


def parts_by_clone(clones: Sequence[Clone]) -> list[list[int]]:
    """Places in `clones` of the parts of each clone, in order; of one each without parts."""
    groups: dict[Any, list[int]] = {}
    for place, clone in enumerate(clones):
        origin = origin_of(clone)
        has_parts = origin is not None and origin.config.accumulate_steps > 1
        key = (id(origin.config), origin.number) if origin and has_parts else place
        groups.setdefault(key, []).append(place)
    return list(groups.values())


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


def _item_ids() -> dict[str, frozenset[int]]:
    return {key: frozenset(map(id, tf.get_collection(key))) for key in _CLONE_COLLECTIONS}

"""Builds one copy of the model per device, and divides collection items over the copies."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, slim
from model_deploy.clone_scopes import building_part
from model_deploy.config import DeploymentConfig
from model_deploy.feature import Feature
from model_deploy.parts import Call, Clone, Key, Part, note_part, noted_parts

# Metrics that a model is trained with, see the room `metrics`.  Not a string, see `hooks.py`.
METRICS = ("model_deploy", "metrics")
# Collections whose items belong to the clone that created them.
_CLONE_COLLECTIONS = (
    tf.GraphKeys.LOSSES,
    tf.GraphKeys.REGULARIZATION_LOSSES,
    tf.GraphKeys.UPDATE_OPS,
    tf.GraphKeys.SUMMARIES,
    METRICS,
)


class Members(NamedTuple):
    """The items of a graph collection, divided by clone.

    Attributes:
      clones: the items that each clone created, one list per clone: losses (scalars), summaries
        (serialized string scalars), update ops (ops, or tensors of any shape) or metrics.
      shared: the items that no clone in the graph created.
    """

    clones: list[list[Any]]
    shared: list[Any]


def build_clones(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    features: Sequence[Feature] = (),
) -> list[Clone]:
    """Builds each part of each clone on its device by calling `model_fn` inside the features.

    Args:
      config: the deployment.
      model_fn: builds the model and returns anything.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.
      features: the features of the deployment, the outermost first.

    Returns:
      One `Clone` per clone, or per part where clones have parts, in order of clones.  Call
      `feature.join` after computing gradients: once values are shared between clones, the gradient
      of one clone's loss would run through all of them.

    Raises:
      RuntimeError: if TensorFlow executes eagerly.
      ValueError: as the features say.
    """
    _check_graph_mode()
    call = Call(model_fn, args or (), kwargs or {})
    device = config.variables_device()
    with (
        graph_walk.new_ops() as ops,
        internals.building_layers_faster(),
        internals.reading_where_variables_are(),
        slim.arg_scope([slim.model_variable, slim.variable], device=device),
    ):
        clones = [
            _build_part(Part(config, call, features, number, *place, "", device))
            for number, place in enumerate(config.places_of_parts())
        ]
    for feature in features:
        feature.after_parts(ops)
    return clones


def _build_part(part: Part) -> Clone:
    """Builds a part, notes it in the graph, and returns its `Clone`."""
    before = _item_ids()

    def build(call: Call, features: Sequence[Feature]) -> Any:
        if not features:
            return call.model_fn(*call.args, **call.kwargs)
        inner = functools.partial(build, features=features[1:])
        return features[0].around_part(part, call, inner)

    with building_part(part), graph_walk.new_ops() as ops:
        outputs = build(part.call, part.features)
    part.ops = ops
    part.added = {key: ids - before[key] for key, ids in _item_ids().items()}
    note_part(part)
    clone = Clone(outputs, part.scope, part.config.clone_device(part.clone_index))
    clone.part = part
    return clone


def collect_members(key: Key, clones: Sequence[Clone]) -> Members:
    """Divides the items of the graph collection `key` over `clones`.

    An item belongs to a clone if it was added while `model_fn` built the clone, or if its name
    starts with the clone's scope.  Items of other deployments in the same graph are left out.

    Args:
      key: `LOSSES`, `REGULARIZATION_LOSSES`, `UPDATE_OPS`, `SUMMARIES` or `METRICS`.
      clones: the clones of one deployment.

    Returns:
      The items by clone; see `Members` for their shapes.
    """
    places = {id(clone.part): place for place, clone in reversed(list(enumerate(clones)))}
    parts = noted_parts(tf.get_default_graph())
    members = Members([[] for _ in clones], [])
    for item in tf.get_collection(key):
        owners = [part for part in parts if part.owns(item, key)]
        mine = [places[id(part)] for part in owners if id(part) in places]
        if mine:
            members.clones[min(mine)].append(item)
        elif not owners:
            members.shared.append(item)
    return members


def claim_member(clone: Clone, key: Key, item: Any) -> None:
    """Makes `item` of the graph collection `key` belong to a clone of `build_clones`."""
    if clone.part is not None:
        clone.part.added.setdefault(key, set()).add(id(item))


def _check_graph_mode() -> None:
    if tf.executing_eagerly():
        raise RuntimeError(
            "clones are built in a graph: call inside `with tf.Graph().as_default():`, "
            "or call tf.compat.v1.disable_eager_execution() first"
        )


def _item_ids() -> dict[Key, set[int]]:
    """Returns the `id`s of the items in each collection of `_CLONE_COLLECTIONS`."""
    return {key: set(map(id, tf.get_collection(key))) for key in _CLONE_COLLECTIONS}

"""`CopiedModel`: calls a `model_fn` for the first clone and copies the ops for the others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, placement
from model_deploy.clones import METRICS
from model_deploy.commands import shortened
from model_deploy.config import DeploymentConfig
from model_deploy.copying import python_state
from model_deploy.copying.python_state import WAY_OUT, Taken
from model_deploy.copying.stamping import Prototype, stamp_gradients
from model_deploy.copying.twins import Twins
from model_deploy.losses import regularizer_scope
from model_deploy.parts import Call, Part

# Collections of the Python contexts of TensorFlow 1's loops and conditions, which are not copied.
_CONTEXTS = (tf.GraphKeys.WHILE_CONTEXT, tf.GraphKeys.COND_CONTEXT)


class CopiedModel:
    """A model built by one call of `model_fn`, and copies of the ops that the call added.

    Shared by all copies are ops that existed before the call, variables, and the ops made with a
    variable: initial value, regularizer, reads.  All other ops that the call adds are copied.

    For each copy, iterators among the arguments are advanced as often as by the call.

    Args:
      call: the call of `model_fn`, as for `create_clones`.

    Raises:
      ValueError: if `model_fn` has an iterator that is not an argument.
    """

    def __init__(self, call: Call) -> None:
        self._call = Call(*python_state.unwrap_partial(*call))
        self._taken: list[Taken] = []
        self._outputs: Any = None
        self._collected: dict[Any, list[Any]] = {}
        self._forward = Prototype([], "")

    def build(self, build: Callable[[Call], Any], scope: str) -> Any:
        """Builds the first part.

        Args:
          build: makes the given call of `model_fn`, whose iterators record what is taken from
            them; all ops that it adds are copied.
          scope: name scope of the part; ends with `/`.

        Returns:
          The outputs of `model_fn`.

        Raises:
          ValueError: if the model cannot be copied; the message says why.
        """
        model_fn, args, kwargs = self._call
        named = {f"args[{i}]": value for i, value in enumerate(args)} | dict(kwargs)
        state = python_state.PythonState(model_fn, named)
        state.check_no_hidden_iterators()
        args, kwargs = python_state.record_iterators((args, kwargs), self._taken)
        before = _collections()
        with graph_walk.new_ops() as ops:
            self._outputs = build(Call(model_fn, args, kwargs))
        state.check_unchanged()
        self._collected = _added(before, _collections())
        taken = {op for each in self._taken for op in each.ops}
        once = taken | _made_with_variables(ops, scope) | self._regularizers(ops)
        copied = [op for op in ops if op not in once]
        _check_no_resources(copied)
        self._forward = Prototype(copied, scope)
        return self._outputs

    def copy(self, part: Part) -> tuple[Any, Twins]:
        """Copies the first part, and its items in collections.

        Args:
          part: the part to make as a copy, not the first part.

        Returns:
          The copied outputs of `model_fn`, and the map from original ops and tensors to copies.

        Raises:
          ValueError: if the model cannot be copied; the message says why.
        """
        twins = Twins(part.scope, part.number, _device_map(part.config, part.clone_index))
        for taken in self._taken:
            self._take(taken, twins)
        self._forward.stamp(twins)
        for key, items in self._collected.items():
            for item in items:
                twin = twins.structure(item)
                if twin is not item:
                    tf.add_to_collection(key, twin)
        return twins.structure(self._outputs), twins

    def copy_gradients(
        self, ops: Sequence[Any], gradients: Any, copies: Sequence[Twins]
    ) -> list[Any]:
        """Copies the gradients of the first clone.

        Args:
          ops: the ops of the gradients, in the order in which they were made.
          gradients: a structure of gradients: tensors of their variables' shapes,
            `IndexedSlices` over rows, or None.
          copies: the copied clones.

        Returns:
          For each of `copies` the structure with copied gradients, of the same shapes and dtypes.
        """
        stamp_gradients(self._forward, ops, copies)
        return [twins.structure(gradients) for twins in copies]

    def _regularizers(self, ops: Sequence[Any]) -> set[Any]:
        """Returns the ops of regularizers, which belong to variables and are shared."""
        losses = self._collected.get(tf.GraphKeys.REGULARIZATION_LOSSES, ())
        names = tuple(filter(None, map(regularizer_scope, losses)))
        return {op for op in ops if op.name.startswith(names)}

    def _take(self, taken: Taken, twins: Twins) -> None:
        """Advances an iterator for a copy; the item replaces the one that the first clone took."""
        name_scope = f"{taken.name_scope}/" if taken.name_scope else ""
        if name_scope.startswith(self._forward.scope):
            name_scope = twins.scope + name_scope.removeprefix(self._forward.scope)
        with tf.name_scope(name_scope), graph_walk.new_ops() as ops:
            value = next(taken.iterator)
        for op, twin in zip(taken.ops, ops, strict=False):
            if op.type == twin.type and "_class" not in twin.node_def.attr:
                internals.set_device(twin, twins.device_of(op.device))
        for old, new in _leaves(taken.value, value):
            if tf.is_tensor(old):
                _check_alike(old, new)
                if twins.tensors.setdefault(old.name, new) is not new:
                    raise ValueError(
                        "a copied model_fn must take each tensor once from its iterators, got "
                        f"{old.name} twice in the first clone but not in the others; {WAY_OUT}"
                    )
            elif not _same_value(old, new):
                raise ValueError(
                    "a copied model_fn must take tensors from its iterators, got the Python values "
                    f"{_shown(old)} and {_shown(new)} for two clones; {WAY_OUT}"
                )


def _made_with_variables(ops: Sequence[Any], scope: str) -> set[Any]:
    """Returns variable ops, and ops named after them: initial values, reads, regularizers.

    Raises:
      ValueError: for a variable in the clone's name scope: each call would make a separate one.
    """
    variables = [op for op in ops if placement.is_variable_op(op)]
    for op in variables:
        if op.name.startswith(scope):
            raise ValueError(
                "a copied model_fn must share its variables (tf.get_variable does), got "
                f"{op.name}, of which each clone would have its own; {WAY_OUT}"
            )
    names = tuple(f"{op.name}/" for op in variables)
    return {*variables, *(op for op in ops if op.name.startswith(names))}


def _check_no_resources(ops: Sequence[Any]) -> None:
    """Checks that no copied op makes a queue, table or iterator."""
    for op in ops:
        if "shared_name" in op.node_def.attr:
            raise ValueError(
                "a copied model_fn must get queues, iterators and tables from outside, got "
                f"{op.name} of type {op.type}, of which each clone would have its own; {WAY_OUT}"
            )


def _device_map(config: DeploymentConfig, clone_index: int) -> Callable[[str], str]:
    """Returns a function from the first clone's devices to another clone's; other devices stay."""
    known: dict[str, str] = {}
    firsts = config.stage_devices(0) or [config.clone_device(0)]
    own = config.stage_devices(clone_index) or [config.clone_device(clone_index)]
    for first, other in zip(firsts, own, strict=True):
        known[tf.DeviceSpec.from_string(first).to_string()] = other

    def device_of(device: str) -> str:
        if device not in known:
            name = tf.DeviceSpec.from_string(device).to_string()
            known[device] = known.get(name, device)
        return known[device]

    return device_of


def _collections() -> dict[Any, list[Any]]:
    graph = tf.get_default_graph()
    keys = [*graph.get_all_collection_keys(), METRICS]  # TensorFlow lists those of strings alone
    return {key: graph.get_collection(key) for key in keys}


def _added(before: Mapping[Any, list[Any]], after: Mapping[Any, list[Any]]) -> dict[Any, list[Any]]:
    """Returns the collection items in `after` that are not in `before`, by key."""
    added = {key: items[len(before.get(key, ())) :] for key, items in after.items()}
    return {key: items for key, items in added.items() if items and key not in _CONTEXTS}


def _shown(value: Any) -> str:
    return shortened(repr(value), 60)


def _leaves(value: Any, other: Any) -> list[tuple[Any, Any]]:
    """Returns pairs of leaves at the same place in two structures.

    Raises:
      ValueError: if the structures differ.
    """
    try:
        tf.nest.assert_same_structure(value, other, expand_composites=True)
    except (ValueError, TypeError) as error:
        raise ValueError(
            "a copied model_fn must take the same structure for each clone: "
            f"{shortened(str(error))}; {WAY_OUT}"
        ) from error
    flat = (tf.nest.flatten(each, expand_composites=True) for each in (value, other))
    return list(zip(*flat, strict=True))


def _check_alike(old: Any, new: Any) -> None:
    """Checks that two items of an iterator have the same dtype and shape."""
    kinds = [
        f"{each.dtype.name} {each.shape}" if tf.is_tensor(each) else str(each)
        for each in (old, new)
    ]
    if kinds[0] != kinds[1]:
        raise ValueError(
            "a copied model_fn must take tensors of the same type and shape for each clone, got "
            f"{kinds[0]} for the first one and {kinds[1]} for another; {WAY_OUT}"
        )


def _same_value(old: Any, new: Any) -> bool:
    if isinstance(old, np.ndarray) or isinstance(new, np.ndarray):
        return bool(np.array_equal(old, new))
    return bool(old is new or old == new)

"""The gradients of each clone, on its devices; computed, or copied from the first clone."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus, graph_walk, internals, placement
from model_deploy import gradients as gradients_lib
from model_deploy.accumulation import PartGradients, accumulate
from model_deploy.clones import Clone, origin_of, parts_by_clone
from model_deploy.copying import calls_functions
from model_deploy.gradients import GradientAndVariable
from model_deploy.losses import Losses
from model_deploy.rewrites import compilation, computing_gradients


def compute_clone_gradients(
    clones: Sequence[Clone], losses: Losses, optimizer: Any, kwargs: Mapping[str, Any]
) -> list[list[GradientAndVariable]]:
    """Computes the gradients of each clone's loss, on its device or, in stages, beside its ops.

    Gradients of what counts once are added to those of the first clone.  They are
    computed on their own where there are several clones, so that these are alike.
    The parts of a clone run one after the other, and what counts once is then the last.

    Args:
      clones: the clones, or their parts.
      losses: their losses, scalars.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      kwargs: for its `compute_gradients`.

    Returns:
      `(gradient, variable)` pairs for each clone that has a loss, the sum over its parts; see
      `gradients.sum_gradients` for their shapes.
    """
    if len(clones) == 1:
        return [gradients_of_clone(clones[0], losses.terms_of_clone(0), optimizer, kwargs)]
    found: dict[int, PartGradients] = {}
    for i, (clone, loss) in enumerate(zip(clones, losses.clones, strict=True)):
        if loss is not None and i not in found:
            found[i] = _part_gradients(clone, [loss], optimizer, kwargs)
            if i == 0:
                found.update(_copied_gradients(clones, losses, found[0]))
    groups = parts_by_clone(clones)
    by_clone = [[found[i] for i in group if i in found] for group in groups]
    once = [term for term in losses.terms_of_clone(0) if term is not losses.clones[0]]
    if once:
        last = _part_gradients(clones[0], once, optimizer, kwargs)
        if by_clone[0] and len(groups[0]) == 1:
            device = gpus.placing(clones[0].device)
            with tf.device(device), tf.name_scope(clones[0].scope):
                last = last._replace(gradients=_add(by_clone[0].pop().gradients, last.gradients))
        by_clone[0].append(last)
    return [accumulate(parts) for parts in by_clone if parts]


def _part_gradients(
    clone: Clone, terms: Sequence[Any], optimizer: Any, kwargs: Mapping[str, Any]
) -> PartGradients:
    with graph_walk.new_ops() as ops:
        pairs = gradients_of_clone(clone, terms, optimizer, kwargs)
    return PartGradients(clone, terms, pairs, [*_forward_ops(clone), *ops])


def _forward_ops(clone: Clone) -> Sequence[Any]:
    origin = origin_of(clone)
    return origin.ops if origin is not None else ()


def gradients_of_clone(
    clone: Clone, terms: Sequence[Any], optimizer: Any, kwargs: Mapping[str, Any]
) -> list[GradientAndVariable]:
    """Gradients of the sum of a clone's losses, on its device or, in stages, beside its ops.

    Args:
      clone: the clone.
      terms: its losses, scalars.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      kwargs: for its `compute_gradients`.

    Returns:
      `(gradient, variable)` pairs; a gradient has the variable's shape, is an `IndexedSlices`
      over its rows, or None.
    """
    origin = origin_of(clone)
    if origin is not None and origin.config.devices_per_clone > 1:
        kwargs = {"colocate_gradients_with_ops": True, **kwargs}
    with (
        tf.device(gpus.placing(clone.device)),
        tf.name_scope(clone.scope),
        graph_walk.new_ops() as ops,
        computing_gradients(),
    ):
        loss = tf.add_n(list(terms), name="loss_to_minimize")
        pairs: list[GradientAndVariable] = optimizer.compute_gradients(loss, **kwargs)
    for op in ops:
        _untie_from_loop(op)
        if op.type == "VariableShape":
            # It runs beside its variable, whatever it asks for, as all that takes a handle.
            internals.set_device(op, "")
    if origin is not None:
        compilation.compile_clone(origin.config, clone.scope, ops)
    return pairs


def _untie_from_loop(op: Any) -> None:
    """Leaves an op on the device of a loop or condition, but not tied to it.

    These pass variables on, and TensorFlow ties all that does so to the variable: with the
    gradients tied as well, the devices of two clones would have to be the same one.
    """
    if "_class" in op.node_def.attr:
        groups = [group.decode().removeprefix("loc:@") for group in op.get_attr("_class")]
        if any(_holds_variable(op.graph.get_operation_by_name(group)) for group in groups):
            internals.clear_attribute(op, "_class")


def _holds_variable(op: Any) -> bool:
    """Whether an op is such a loop or condition, or reads a variable in one of TensorFlow 1."""
    if calls_functions(op):
        return True
    takes_handle = any(tensor.dtype == tf.resource for tensor in op.inputs)
    return takes_handle and internals.in_old_control_flow(op)


def _copied_gradients(
    clones: Sequence[Clone], losses: Losses, original: PartGradients
) -> dict[int, PartGradients]:
    """Gradients of the clones that are copies of the first one, in what the loss needs too."""
    first = origin_of(clones[0])
    ops = original.ops[len(_forward_ops(clones[0])) :]
    if first is None or first.model is None or any(placement.is_variable_op(op) for op in ops):
        return {}
    copies = {}
    for i, clone in enumerate(clones):
        origin, loss = origin_of(clone), losses.clones[i]
        twins = origin.twins if origin is not None and origin.model is first.model else None
        if twins is not None and loss is not None and twins.match(losses.clones[0], loss):
            copies[i] = twins
    values, variables = zip(*original.gradients, strict=True)
    with graph_walk.new_ops() as new:
        copied = first.model.copy_gradients(ops, list(values), list(copies.values()))
    for i, twins in copies.items():
        scope = clones[i].scope
        in_scope = (op for op in new if op.name.startswith(scope))
        compilation.compile_clone(first.config, scope, in_scope, twins.ops)
    found = {}
    for (i, twins), gradients in zip(copies.items(), copied, strict=True):
        own: list[Any] = []
        if forward := _forward_ops(clones[i]):
            own = [*forward, *(twins.op(op) for op in ops if op.name in twins.ops)]
        pairs = list(zip(gradients, variables, strict=True))
        found[i] = PartGradients(clones[i], [losses.clones[i]], pairs, own)
    return found


def _add(
    gradients: Sequence[GradientAndVariable], more: Sequence[GradientAndVariable]
) -> list[GradientAndVariable]:
    """Adds two gradients of each variable; those that are None in both stay so."""
    added = []
    for pair, other in zip(gradients, more, strict=True):
        if pair[0] is None or other[0] is None:
            added.append(other if pair[0] is None else pair)
        else:
            added += gradients_lib.sum_gradients([[pair], [other]])
    return added

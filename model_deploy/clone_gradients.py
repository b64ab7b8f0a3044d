"""Computes each clone's gradients on its devices."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus, graph_walk, internals
from model_deploy import gradients as gradients_lib
from model_deploy.accumulation import PartGradients, accumulate
from model_deploy.gradients import GradientAndVariable
from model_deploy.losses import Losses
from model_deploy.parts import Clone, features_of, parts_by_clone

# What `compute_clone_gradients` has computed.  Not a string: it does not go into checkpoints.
_GRADIENTS = ("model_deploy", "clone_gradients")


def noted_gradients() -> list[tuple[Clone, list[GradientAndVariable]]]:
    """Returns the gradients of all clones, or parts, in the default graph, before they are added.

    Returns:
      Clones with their `(gradient, variable)` pairs, see `gradients.sum_gradients`.
    """
    return list(tf.get_collection(_GRADIENTS))


def compute_clone_gradients(
    clones: Sequence[Clone], losses: Losses, source: Any, kwargs: Mapping[str, Any]
) -> list[list[GradientAndVariable]]:
    """Computes the gradients of each clone's loss on the clone's device.

    A clone with several devices (stages) has each gradient op beside its forward op.  With several
    clones, regularization and shared losses, which count once, are differentiated separately, so
    that all clones have the same gradient ops; the result is added to the first clone's gradients.
    The parts of a clone run one after the other, with the losses that count once last.

    Args:
      clones: the clones, or their parts.
      losses: the losses of `clones`, scalars.
      source: an optimizer of TensorFlow 1, or an object with the same `compute_gradients` method.
      kwargs: keyword arguments of `compute_gradients`.

    Returns:
      For each clone with a loss its `(gradient, variable)` pairs, summed over its parts; see
      `gradients.sum_gradients` for the shapes.
    """

    def compute(clone: Clone, terms: Sequence[Any]) -> PartGradients:
        return _gradients_of_part(clone, terms, source, kwargs)

    for feature in reversed(features_of(clones)):
        compute = feature.around_gradients(clones, losses, compute)

    def noted(clone: Clone, terms: Sequence[Any]) -> PartGradients:
        made = compute(clone, terms)
        tf.add_to_collection(_GRADIENTS, (clone, made.gradients))
        return made

    if len(clones) == 1:
        return [noted(clones[0], losses.terms_of_clone(0)).gradients]
    found = {
        i: noted(clone, [loss])
        for i, (clone, loss) in enumerate(zip(clones, losses.clones, strict=True))
        if loss is not None
    }
    groups = parts_by_clone(clones)
    by_clone = [[found[i] for i in group if i in found] for group in groups]
    once = [term for term in losses.terms_of_clone(0) if term is not losses.clones[0]]
    if once:
        last = noted(clones[0], once)
        if by_clone[0] and len(groups[0]) == 1:
            device = gpus.placing(clones[0].device)
            with tf.device(device), tf.name_scope(clones[0].scope):
                last = last._replace(gradients=_add(by_clone[0].pop().gradients, last.gradients))
        by_clone[0].append(last)
    return [accumulate(parts) for parts in by_clone if parts]


def _gradients_of_part(
    clone: Clone, terms: Sequence[Any], source: Any, kwargs: Mapping[str, Any]
) -> PartGradients:
    """Computes the gradients of the sum of some losses of a clone or part."""
    if clone.part is not None and clone.part.config.stage_devices(clone.part.clone_index):
        kwargs = {"colocate_gradients_with_ops": True, **kwargs}
    with (
        tf.device(gpus.placing(clone.device)),
        tf.name_scope(clone.scope),
        graph_walk.new_ops() as ops,
    ):
        loss = tf.add_n(list(terms), name="loss_to_minimize")
        pairs: list[GradientAndVariable] = source.compute_gradients(loss, **kwargs)
    for op in ops:
        _untie_from_loop(op)
        if op.type == "VariableShape":
            # TensorFlow runs an op with a resource handle beside the variable in any case.
            internals.set_device(op, "")
    return PartGradients(clone, terms, pairs, ops)


def _untie_from_loop(op: Any) -> None:
    """Removes the colocation of an op with a loop or condition; the op keeps its device.

    TensorFlow colocates a loop with the variables that are passed through it, and everything tied
    to the loop as well: gradient ops of two clones would all be forced onto one device.
    """
    if "_class" in op.node_def.attr:
        groups = [group.decode().removeprefix("loc:@") for group in op.get_attr("_class")]
        if any(_holds_variable(op.graph.get_operation_by_name(group)) for group in groups):
            internals.clear_attribute(op, "_class")


def _holds_variable(op: Any) -> bool:
    """Whether an op is a functional loop or condition, or a read in old control flow."""
    if graph_walk.calls_functions(op):
        return True
    takes_handle = any(tensor.dtype == tf.resource for tensor in op.inputs)
    return takes_handle and internals.in_old_control_flow(op)


def _add(
    gradients: Sequence[GradientAndVariable], more: Sequence[GradientAndVariable]
) -> list[GradientAndVariable]:
    """Adds two lists of gradients variable by variable; None counts as zero."""
    added = []
    for pair, other in zip(gradients, more, strict=True):
        if pair[0] is None or other[0] is None:
            added.append(other if pair[0] is None else pair)
        else:
            added += gradients_lib.sum_gradients([[pair], [other]])
    return added

"""The total loss of a deployment, for training and evaluation."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.clones import Members, collect_members
from model_deploy.parts import Clone


class Losses(NamedTuple):
    """The terms of a total loss; all are scalars.

    Attributes:
      clones: for each clone the sum of its losses divided by the number of clones,
        on the clone's device; None for a clone without a loss.
      shared: sum of the losses made outside `model_fn`, which count once; None without such losses.
      regularization: sum of the regularization losses, which count once; None without such losses.
    """

    clones: list[Any]
    shared: Any
    regularization: Any

    def terms_of_clone(self, index: int) -> list[Any]:
        """The scalars that clone `index` differentiates; clone 0 has those that count once."""
        once = [self.shared, self.regularization] if index == 0 else []
        return [term for term in (self.clones[index], *once) if term is not None]

    def of_clones(self, indices: Sequence[int]) -> "Losses":
        """The terms of some of the clones; the terms that count once go with the first clone."""
        once = (self.shared, self.regularization) if 0 in indices else (None, None)
        return Losses([self.clones[i] for i in indices], *once)

    def total(self) -> Any:
        """The sum of all terms, a scalar named `total_loss`."""
        terms = [term for i in range(len(self.clones)) for term in self.terms_of_clone(i)]
        return tf.add_n(terms, name="total_loss")


def gather_losses(
    clones: Sequence[Clone],
    regularization_losses: Sequence[Any] | None = None,
    *,
    all_clones: Sequence[Clone] | None = None,
) -> Losses:
    """Gathers the losses of `clones` and the losses that count once.

    Reads the collections `LOSSES` and `REGULARIZATION_LOSSES`.  With n clones (or parts of clones)
    the losses of each are divided by n, so that equal parts of a batch give the mean over the whole
    batch.  Regularization of variables and losses made outside `model_fn` count once.  What each
    clone adds to `REGULARIZATION_LOSSES` itself counts as its `LOSSES` do.

    Args:
      clones: the clones of one deployment, or some of them.
      regularization_losses: scalar losses to use in place of the collection; an
        empty list for none.
      all_clones: all clones of the deployment; by default `clones`.

    Raises:
      ValueError: if `clones` is empty, if there is no loss at all, or if a loss is not a scalar.
    """
    if not clones:
        raise ValueError("clones must hold at least one clone, got none")
    members = collect_members(tf.GraphKeys.LOSSES, clones)
    if regularization_losses is None:
        made_here = [loss for losses in members.clones for loss in losses]
        regularization = _divided_regularization(all_clones or clones, made_here)
        of_clone = dict(zip(map(id, all_clones or clones), regularization.clones, strict=True))
        for clone, losses in zip(clones, members.clones, strict=True):
            losses.extend(of_clone[id(clone)])
        regularization_losses = regularization.shared
    parts = [*members.clones, members.shared, list(regularization_losses)]
    _check_losses([loss for part in parts for loss in part])
    clone_losses = []
    for clone, losses in zip(clones, members.clones, strict=True):
        with tf.device(clone.device), tf.name_scope(clone.scope):
            clone_losses.append(_clone_loss(losses, len(clones)))
    with tf.device(clones[0].device):
        return Losses(
            clone_losses,
            _sum(members.shared, "shared_loss"),
            _sum(regularization_losses, "regularization_loss"),
        )


def regularizer_scope(loss: Any) -> str | None:
    """The name scope in which a variable's regularizer has made a loss; None for other losses.

    It is made with the variable, once, by `tf.get_variable` or a layer.
    """
    match = re.match(".*/Regularizer/", loss.op.name)
    return match.group() if match else None


def _divided_regularization(clones: Sequence[Clone], clone_losses: Sequence[Any]) -> Members:
    """Divides the graph's regularization losses into those of each clone and those that count once.

    Losses that count once are those of variables, which only the first clone makes, and those made
    outside of `model_fn`.  All clones make the others anew, so each makes as many as the first one;
    where one does not, all count once.  Those of variables that the deployment does not use are
    left out.
    """
    members = collect_members(tf.GraphKeys.REGULARIZATION_LOSSES, clones)
    ours = {id(loss) for part in (*members.clones, members.shared) for loss in part}
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    others = [loss for loss in losses if id(loss) not in ours and regularizer_scope(loss)]
    if others:
        used = graph_walk.variables_read(clone_losses)
        ours |= {id(loss) for loss in others if used & graph_walk.variables_read([loss])}
    own = [[loss for loss in part if not regularizer_scope(loss)] for part in members.clones]
    if len(clones) == 1 or len(set(map(len, own))) > 1:
        own = [[] for _ in clones]
    once = ours - {id(loss) for part in own for loss in part}
    return Members(own, [loss for loss in losses if id(loss) in once])


def _check_losses(losses: Sequence[Any]) -> None:
    if not losses:
        raise ValueError(
            "model_fn must add at least one loss to tf.GraphKeys.LOSSES (slim.losses and "
            "tf.losses do), got none; to build clones without a loss call create_clones"
        )
    for loss in losses:
        if loss.shape.rank not in (0, None):
            raise ValueError(f"a loss must be a scalar, got {loss.name} of shape {loss.shape}")


def _clone_loss(losses: Sequence[Any], num_clones: int) -> Any:
    loss = _sum(losses, "clone_loss")
    if loss is None or num_clones == 1:
        return loss
    return tf.divide(loss, num_clones, name="scaled_clone_loss")


def _sum(losses: Sequence[Any], name: str) -> Any:
    return tf.add_n(list(losses), name=name) if losses else None

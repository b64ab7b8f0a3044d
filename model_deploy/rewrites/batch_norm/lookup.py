"""Finds the synchronized batch norm that a gradient belongs to, and checks who computes it."""

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.gradients import stand_in
from model_deploy.rewrites.batch_norm.parts import PartNorms

# The graph's one dict: name of a norm's mean tensor -> (part, place of the norm in the part).
# Not a string: it does not go into checkpoints.
_NORMS = ("model_deploy", "batch_norms")

_computing = contextvars.ContextVar("gradients of clones are computed", default=False)


@contextlib.contextmanager
def computing_gradients() -> Iterator[None]:
    """Allows gradients of synchronized batch norms; the caller must join their sums afterwards."""
    token = _computing.set(True)
    try:
        yield
    finally:
        _computing.reset(token)


def note_norms(part: PartNorms) -> None:
    """Notes the batch norms of a part in the graph, for their gradient functions."""
    if not part.norms:
        return
    if not tf.get_collection(_NORMS):
        tf.add_to_collection(_NORMS, {})
    [known] = tf.get_collection(_NORMS)
    known.update({norm.mean.name: (part, place) for place, norm in enumerate(part.norms)})


def norm_of_gradient(mean: Any) -> tuple[PartNorms, int, Any]:
    """Returns, for a norm's mean tensor, the norm's part, its place in the part, and its count.

    A gradient that stands in for another one belongs to no part: its sums are those of its clone.

    Raises:
      ValueError: if the gradient is not computed by `deploy` or `optimize_clones`.
    """
    if stand_in():
        return PartNorms(), 0, tf.ones([], mean.dtype)
    known: list[Mapping[str, tuple[PartNorms, int]]] = mean.graph.get_collection(_NORMS)
    if not _computing.get() or not known or mean.name not in known[0]:
        raise ValueError(
            "with sync_batch_norm deploy or optimize_clones must take the gradients of the "
            f"clones' losses, got another gradient of {mean.op.name}"
        )
    part, place = known[0][mean.name]
    return part, place, part.norms[place].count

"""The sums that batch norms of one clone, or of one part of it, take over all clones.

While a clone is built the others are not there.  So a sum over clones is first the clone's own
value, handed on by an op that gets the sum once all are built; see `norms.BatchNorms.join`.
"""

import dataclasses
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals

# Its gradient is an error: what has one is the normalization as a whole.
_MESSAGE = "with sync_batch_norm a batch norm has no gradient of its gradient"


@dataclasses.dataclass
class Norm:
    """A batch norm of a clone.

    Attributes:
      name: of its op, or of the scope of its ops.
      channels: how many means it has; None if that is known only when the graph runs.
      sums: the ops that hand on the values which are summed over clones to get the moments.
      mean: of the whole batch; it tells norms apart.  Of shape [channels], or of the rank of the
        values with 1 for what is reduced.
      count: over how many values, a scalar of the mean's type.
    """

    name: str
    channels: int | None
    sums: list[Any]
    mean: Any = None
    count: Any = None

    def copy(self, twins: Any) -> "Norm":
        """The norm of a copied clone."""
        sums = [twins.op(op) for op in self.sums]
        mean, count = twins.tensor(self.mean), twins.tensor(self.count)
        return Norm(mean.op.name, self.channels, sums, mean, count)


@dataclasses.dataclass
class PartNorms:
    """The batch norms of a clone, or of one part of it.

    Attributes:
      norms: in the order in which they were made.
      gradients: places in `norms`, each with the op that hands on what is summed for a gradient.
      counterparts: which op stands for which one of the first clone, in a copy.
      unknown: names of moments that nobody can tell to be those of a batch norm.
    """

    norms: list[Norm] = dataclasses.field(default_factory=list)
    gradients: list[tuple[int, Any]] = dataclasses.field(default_factory=list)
    counterparts: Any = None
    unknown: list[str] = dataclasses.field(default_factory=list)

    def whole_batch(self, name: str, count: Any, mean: Any, squares: Any) -> tuple[Any, Any, Any]:
        """Adds a norm: its moments over all clones, from those of this one.

        Of the squares each clone takes the distance from its own mean, and what is missing by
        that is a square, too: nothing cancels.

        Args:
          name: of the norm.
          count: of the values of this clone that make one mean, a scalar of the type of `mean`.
          mean: of these, of float32 or float64; not a number where there are none.
          squares: sum of the squares of their distances from the mean, of its shape.

        Returns:
          Count, mean and variance (with the count as divisor), of the same shapes.

        Raises:
          ValueError: in a loop, a condition or another function.
        """
        if internals.in_old_control_flow(mean.op) or tf.get_default_graph().building_function:
            raise ValueError(
                "sync_batch_norm needs batch norms outside of loops, conditions and functions "
                f"(is_training must be True or False, no tensor), got {name} inside of one"
            )
        local_mean = mean
        mean, squares = (_vector(each) for each in (mean, squares))
        if not tf.get_static_value(count):  # it may be 0
            is_empty = tf.equal(count, 0)
            mean = tf.where(is_empty, tf.zeros_like(mean), mean)
            squares = tf.where(is_empty, tf.zeros_like(squares), squares)
        norm = Norm(name, mean.shape.num_elements(), [])
        sums = self._sum(norm.sums, tf.concat([mean * count, [count]], axis=0))
        norm.count = sums[-1]
        whole_mean = sums[:-1] / norm.count
        squares += count * tf.square(mean - whole_mean)
        variance = self._sum(norm.sums, squares) / norm.count
        norm.mean, variance = (_shaped_as(each, local_mean) for each in (whole_mean, variance))
        self.norms.append(norm)
        return norm.count, norm.mean, variance

    def sum_for_gradient(self, place: int, value: Any) -> Any:
        """The sum over clones of a vector that the gradient of norm number `place` needs."""
        ops: list[Any] = []
        total = self._sum(ops, value)
        self.gradients.append((place, ops[0]))
        return total

    def _sum(self, ops: list[Any], value: Any) -> Any:
        total = tf.raw_ops.PreventGradient(input=value, message=_MESSAGE, name="sum_over_clones")
        ops.append(total.op)
        return total

    def all_gradients(self, first: "PartNorms") -> list[tuple[int, int, Any]]:
        """The sums for gradients, those of copied gradients as well.

        Args:
          first: the part that this may be a copy of.

        Returns:
          For each the place of its norm, how many there were before for that norm, and its op.
        """
        own = list(self.gradients)
        found = []
        if self.counterparts is not None:
            for place, op in first.gradients:
                if op.name in self.counterparts.ops:
                    found.append((place, self.counterparts.op(op)))
                elif own:  # computed, though those before were copied
                    found.append(own.pop(0))
        rounds: dict[int, int] = {}
        numbered = []
        for place, op in (*found, *own):
            numbered.append((place, rounds.setdefault(place, 0), op))
            rounds[place] += 1
        return numbered


def _vector(values: Any) -> Any:
    return values if values.shape.rank == 1 else tf.reshape(values, [-1])


def _shaped_as(vector: Any, values: Any) -> Any:
    return vector if values.shape.rank == 1 else tf.reshape(vector, tf.shape(values))


def count_per_mean(values: Any, means: Any) -> Any:
    """How many of `values` make one of `means`, which are of any shapes: a scalar of their type."""
    known = [each.shape.num_elements() for each in (values, means)]
    if all(known):
        return tf.constant(known[0] // known[1], means.dtype)
    num_values, num_means = (tf.size(each, out_type=tf.int64) for each in (values, means))
    return tf.cast(num_values // tf.maximum(num_means, 1), means.dtype)

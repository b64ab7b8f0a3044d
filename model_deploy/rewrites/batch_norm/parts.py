"""Batch norms of one clone, or part of a clone, and the sums that they take over all clones.

While a clone is built the other clones do not exist yet.  So a stand-in op stands for each sum
over clones: at first it passes on the clone's own value.  When all clones are built
`norms.BatchNorms.join` makes the sum its input.
"""

import dataclasses
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals

# Error of the stand-in op's gradient: only the normalization as a whole has one.
_MESSAGE = "with sync_batch_norm a batch norm has no gradient of its gradient"


@dataclasses.dataclass
class Norm:
    """A synchronized batch norm of a clone.

    Attributes:
      name: name of its op, or of the scope of its ops.
      channels: number of means; None if known only when the graph runs.
      sums: the stand-in ops of the sums from which mean and variance are computed.
      mean: mean over the whole batch, by whose name norms are found; of shape [channels], or of the
        rank of the values with size 1 for reduced axes.
      count: number of values per mean, a scalar of the mean's dtype.
    """

    name: str
    channels: int | None
    sums: list[Any]
    mean: Any = None
    count: Any = None

    def copy(self, twins: Any) -> "Norm":
        """Returns the same norm of a copied clone."""
        sums = [twins.op(op) for op in self.sums]
        mean, count = twins.tensor(self.mean), twins.tensor(self.count)
        return Norm(mean.op.name, self.channels, sums, mean, count)


@dataclasses.dataclass
class PartNorms:
    """The synchronized batch norms of a clone, or of one part of it.

    Attributes:
      norms: the norms in the order in which they were made.
      gradients: (place in `norms`, stand-in op of a sum for the norm's gradient) pairs.
      counterparts: for a copied clone the `Twins` that map the first clone's ops to its own.
      unknown: names of moments that may or may not belong to a batch norm.
    """

    norms: list[Norm] = dataclasses.field(default_factory=list)
    gradients: list[tuple[int, Any]] = dataclasses.field(default_factory=list)
    counterparts: Any = None
    unknown: list[str] = dataclasses.field(default_factory=list)

    def whole_batch(self, name: str, count: Any, mean: Any, squares: Any) -> tuple[Any, Any, Any]:
        """Adds a norm: computes its moments over all clones from those of this clone.

        Each clone's squared deviations are from its own mean; the correction to the common mean is
        a square as well.  So only positive terms are added, and no digits cancel.

        Args:
          name: name of the norm.
          count: number of this clone's values per mean, a scalar of the dtype of `mean`.
          mean: mean of these values, float32 or float64 of any shape; NaN if there are none.
          squares: sum of their squared deviations from `mean`, of the same shape.

        Returns:
          Count, mean and variance (with the count as divisor), of the same shapes.

        Raises:
          ValueError: inside of a loop, a condition or another function.
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
        """Returns the sum over clones of a vector, for the gradient of norm number `place`."""
        ops: list[Any] = []
        total = self._sum(ops, value)
        self.gradients.append((place, ops[0]))
        return total

    def _sum(self, ops: list[Any], value: Any) -> Any:
        """Makes the stand-in op of a sum over clones of `value`, and adds it to `ops`."""
        total = tf.raw_ops.PreventGradient(input=value, message=_MESSAGE, name="sum_over_clones")
        ops.append(total.op)
        return total

    def all_gradients(self, first: "PartNorms") -> list[tuple[int, int, Any]]:
        """Returns the stand-in ops for gradients, including those in copied gradients.

        Args:
          first: the part that this part may be a copy of.

        Returns:
          For each op (place of its norm, number of earlier ops of this norm, op).
        """
        own = list(self.gradients)
        found = []
        if self.counterparts is not None:
            for place, op in first.gradients:
                if op.name in self.counterparts.ops:
                    found.append((place, self.counterparts.op(op)))
                elif own:  # this gradient was computed, not copied
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
    """Reshapes a vector to the shape of `values`."""
    return vector if values.shape.rank == 1 else tf.reshape(vector, tf.shape(values))


def count_per_mean(values: Any, means: Any) -> Any:
    """Returns how many `values` make one of `means`, of any shapes: a scalar of their dtype."""
    known = [each.shape.num_elements() for each in (values, means)]
    if all(known):
        return tf.constant(known[0] // known[1], means.dtype)
    num_values, num_means = (tf.size(each, out_type=tf.int64) for each in (values, means))
    return tf.cast(num_values // tf.maximum(num_means, 1), means.dtype)

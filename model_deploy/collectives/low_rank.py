"""Sums of gradients as products of two thin matrices, with error feedback.

PowerSGD (Vogels et al. 2019, arXiv 1905.13727), algorithms 1 and 2.  It changes the mathematics: an
update gets an approximation of the sum, and what that lacks is added to a later gradient.
"""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.collectives.ops import Collectives, PerClone

# A matrix is sent as factors where these have at most one part in so many of its numbers.
_LEAST_GAIN = 2


class Sizes(NamedTuple):
    """The sizes of a gradient as a matrix [n, m], and of its factors [n, r] and [m, r]."""

    n: int
    m: int
    r: int

    @property
    def saves(self) -> bool:
        """Whether the factors have far less numbers than the matrix."""
        return _LEAST_GAIN * self.sent <= self.n * self.m

    @property
    def sent(self) -> int:
        """The numbers in both factors."""
        return self.r * (self.n + self.m)


def sizes_of(shape: Sequence[int], rank: int) -> Sizes | None:
    """Returns the sizes of a tensor as a matrix; None for one with less than two axes.

    >>> sizes_of([3, 3, 64, 128], rank=4)
    Sizes(n=576, m=128, r=4)

    Args:
      shape: of the tensor; all axes but the last become the rows.
      rank: largest rank of the factors.
    """
    if len(shape) < 2 or 0 in shape:
        return None
    n, m = int(np.prod(shape[:-1])), int(shape[-1])
    return Sizes(n, m, min(rank, n, m))


def numbers_sent(shape: Sequence[int], rank: int) -> int:
    """Returns how many numbers of a gradient are summed over replicas, as factors if these save.

    Args:
      shape: of the gradient.
      rank: largest rank of the factors.
    """
    sizes = sizes_of(shape, rank)
    return sizes.sent if sizes and sizes.saves else int(np.prod(shape, dtype=int))


class LowRankSums:
    """The state of the sums: of each matrix a factor, and the error of this replica.

    Args:
      variables: the first clone's variables, of float32 and two axes or more.
      rank: largest rank of the factors.
      device: device, or device function, of the state.

    Attributes:
      errors: variables of the same shapes: what this replica's gradients have had beyond what was
        sent.
      factors: variables [m, r], equal in all replicas: where the next power iteration begins.
    """

    def __init__(self, variables: Sequence[Any], rank: int, device: Any) -> None:
        self._variables = list(variables)
        self._sizes = [sizes_of(v.shape.as_list(), rank) for v in variables]
        with tf.init_scope(), tf.device(None), tf.device(device), tf.name_scope(None):
            self.errors = [_made(v, "error", np.zeros(v.shape.as_list())) for v in variables]
            self.factors = [
                _made(v, "factor", _first_factor(v.op.name, sizes))
                for v, sizes in zip(variables, self._sizes, strict=True)
                if sizes is not None
            ]

    def sum(
        self, collectives: Collectives, gradients: Sequence[Any], share: float
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Sums gradients, times each replica's share, over all replicas.

        Args:
          collectives: the ops of the step.
          gradients: of this replica, of the variables' shapes.
          share: this replica's; those of all sum to 1.

        Returns:
          The approximate sums, of the variables' shapes, and `(variable, value)` pairs to assign to
          the state once the step is made.
        """
        firsts = collectives.first_clones()
        wanted = [
            gradient + error.read_value()
            for gradient, error in zip(gradients, self.errors, strict=True)
        ]
        matrices = [
            tf.reshape(each, [-1, sizes.m])
            for each, sizes in zip(wanted, self._sizes, strict=True)
            if sizes is not None
        ]
        own = [
            tf.matmul(matrix, factor.read_value())
            for matrix, factor in zip(matrices, self.factors, strict=True)
        ]
        bases = [tf.linalg.qr(each).q for each in _summed(firsts, own, share)]
        own = [
            tf.matmul(matrix, basis, transpose_a=True)
            for matrix, basis in zip(matrices, bases, strict=True)
        ]
        new = _summed(firsts, own, share)
        assignments: list[tuple[Any, Any]] = list(zip(self.factors, new, strict=True))
        sums = []
        for k, basis in enumerate(bases):
            shape = self._variables[k].shape
            sums.append(tf.reshape(tf.matmul(basis, new[k], transpose_b=True), shape))
            sent = tf.reshape(tf.matmul(basis, own[k], transpose_b=True), shape)
            assignments.append((self.errors[k], wanted[k] - sent))
        return sums, assignments


def _summed(firsts: Collectives, tensors: Sequence[Any], share: float) -> PerClone:
    """Sums tensors over replicas, times the share of each, in packs."""
    scaled = firsts.on_devices(lambda _: [each * share for each in tensors])
    [sums] = firsts.in_packs(scaled, tensors, firsts.sum)
    return list(sums)


def _made(variable: Any, kind: str, initial: Any) -> Any:
    return tf.Variable(
        lambda: tf.constant(initial, tf.float32),
        name=f"low_rank/{kind}/{variable.op.name}",
        trainable=False,
        use_resource=internals.is_resource_variable(variable),
    )


def _first_factor(name: str, sizes: Sizes) -> Any:
    """Returns random numbers that are the same in all processes, [m, r]."""
    return np.random.RandomState(zlib.crc32(name.encode())).normal(size=[sizes.m, sizes.r])

"""`Exchange`: the gradients of all processes in place of own ones."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.horovod import world
from model_deploy.horovod.operations import group, reduced, scaled
from model_deploy.horovod.passes import Pairs
from model_deploy.horovod.reductions import (
    Average,
    Compression,
    Compressor,
    Reduction,
    check_compression,
    reduction_of,
)


class Exchange:
    """How gradients are exchanged.

    Args:
      name: sets the collective ops apart from others of the graph.
      device_dense: where gradients are summed; by default on the CPU.
      compression: `Compression.none` or `.fp16`.
      sparse_as_dense: whether `IndexedSlices` become dense before they are sent.
      op: `Average`, `Sum` or `Adasum`.
      predivide_factor: f for gradients that are divided by f before the sum, and by size / f after.

    Raises:
      ValueError: naming the argument, the rule and the value.
    """

    def __init__(
        self,
        name: str,
        device_dense: str = "",
        compression: Compressor = Compression.none,
        sparse_as_dense: bool = False,
        op: Any = Average,
        predivide_factor: float = 1.0,
    ) -> None:
        self._name, self._device = name, device_dense
        self._compression = check_compression(compression)
        self._sparse_as_dense = sparse_as_dense
        self._op: Reduction = reduction_of(op)
        self._predivide_factor = predivide_factor
        if predivide_factor != 1.0 and self._op is not Average:
            raise ValueError(
                f"gradient_predivide_factor must be 1 but for hvd.Average, got {predivide_factor}"
            )

    def dense(self, pairs: Pairs) -> Pairs:
        """The pairs, with sparse gradients made dense where that is asked for."""
        if not self._sparse_as_dense:
            return pairs
        return [(g if g is None else tf.convert_to_tensor(g), v) for g, v in pairs]

    def __call__(self, pairs: Pairs) -> list[tuple[Any, Any]]:
        """The gradients of all processes, reduced; sparse ones stay sparse.

        Args:
          pairs: `(gradient, variable)` pairs, a gradient a `Tensor` of the variable's shape, an
            `IndexedSlices` over its rows, or None, which stays None.
        """
        if world.size() == 1:
            return list(pairs)
        given = [(g, v) for g, v in self.dense(pairs) if g is not None]
        if not given:
            return list(pairs)
        factor = self._predivide_factor
        collectives = group(self._name, self._device)
        sent = [(scaled(g, 1 / factor), v) for g, v in given]
        results = iter(reduced(collectives, sent, self._op, self._compression))
        return [(None if g is None else scaled(next(results)[0], factor), v) for g, v in pairs]

"""`DistributedOptimizer` and `DistributedGradientTape`: from gradients of all processes."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.gradients import clip_by_global_norm
from model_deploy.horovod import world
from model_deploy.horovod.exchange import Exchange
from model_deploy.horovod.keras_optimizer import distributed_keras_optimizer, is_of_tf_keras
from model_deploy.horovod.passes import Pairs, Passes
from model_deploy.horovod.reductions import Average, Compression, Compressor
from model_deploy.internals import tf_variable


def DistributedOptimizer(  # noqa: N802 - Horovod's name
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Compressor = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: Any = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
) -> Any:
    """An optimizer that makes the updates of another one from the gradients of all processes.

    Args:
      optimizer: a `tf.train.Optimizer`; one of `tf_keras.optimizers.legacy`, for `fit`; or one of
        Keras 3 or of the newer ones of tf-keras, which is translated, see
        `keras.translate_optimizer`.
      name: of the optimizer; by default that of the other one with a prefix.
      use_locking: as `tf.train.Optimizer` has it.
      device_dense: where gradients are summed; by default on the CPU.
      device_sparse: is not used: rows are gathered where gradients are summed.
      compression: `Compression.none` or `.fp16`.
      sparse_as_dense: whether `IndexedSlices` become dense before they are sent.
      backward_passes_per_step: passes whose gradients are added up in each process; they are
        exchanged, and the update and the global step made, in the last pass.
      op: `Average`, `Sum` or `Adasum`.
      gradient_predivide_factor: f for gradients that are divided by f before the sum, and by
        size / f after it.
      average_aggregated_gradients: whether the gradients of several passes are averaged.

    Returns:
      A `tf.train.Optimizer`; for an optimizer of `tf_keras.optimizers.legacy` one of its class.

    Raises:
      ValueError: before `init`; naming the argument, the rule and the value.
    """
    del device_sparse
    world.joined()
    if not isinstance(backward_passes_per_step, int) or backward_passes_per_step < 1:
        raise ValueError(
            f"backward_passes_per_step must be at least 1, got {backward_passes_per_step!r}"
        )
    name = name or f"Distributed{type(optimizer).__name__}"
    exchange = Exchange(
        name, device_dense, compression, sparse_as_dense, op, gradient_predivide_factor
    )
    clip_norm = None
    if not isinstance(optimizer, tf.train.Optimizer):
        if is_of_tf_keras(optimizer):
            return distributed_keras_optimizer(optimizer, exchange, backward_passes_per_step)
        if isinstance(optimizer, type) or not hasattr(optimizer, "apply_gradients"):
            raise ValueError(
                f"optimizer must be a tf.train.Optimizer or one of Keras, got {optimizer!r}"
            )
        from model_deploy.keras import translate_optimizer  # noqa: PLC0415 - programs start sooner

        step = tf.train.get_or_create_global_step()
        optimizer, _, clip_norm = translate_optimizer(optimizer, step)
    passes = None
    if backward_passes_per_step > 1:
        passes = Passes(backward_passes_per_step, average_aggregated_gradients, name)
    return _Distributed(optimizer, name, use_locking, exchange, passes, clip_norm)


class _Distributed(tf.train.Optimizer):
    """An optimizer around another one, of which it has slots and variables."""

    def __init__(
        self,
        optimizer: Any,
        name: str,
        use_locking: bool,
        exchange: Exchange,
        passes: Passes | None,
        clip_norm: float | None,
    ) -> None:
        super().__init__(use_locking, name)
        self._optimizer, self._exchange, self._passes = optimizer, exchange, passes
        self._clip_norm = clip_norm

    def compute_gradients(
        self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any
    ) -> Pairs:
        """Pairs of gradients of all processes, of the variables' shapes, and variables."""
        if var_list is not None:
            var_list = [tf_variable(variable) for variable in tf.nest.flatten(var_list)]
        pairs = self._optimizer.compute_gradients(loss, var_list, *args, **kwargs)
        if self._passes is None:
            return self._exchange(pairs)
        given = [(g, v) for g, v in self._exchange.dense(pairs) if g is not None]
        return self._passes.gradients(given, self._exchange)

    def apply_gradients(self, grads_and_vars: Pairs, *args: Any, **kwargs: Any) -> Any:
        """The op of the update, by the optimizer itself."""
        pairs = [(gradient, tf_variable(variable)) for gradient, variable in grads_and_vars]
        if self._clip_norm is not None:
            pairs = clip_by_global_norm(pairs, self._clip_norm)
        if self._passes is None:
            return self._optimizer.apply_gradients(pairs, *args, **kwargs)
        gradients = [gradient for gradient, _ in pairs if gradient is not None]
        return self._passes.apply(
            gradients, lambda: self._optimizer.apply_gradients(pairs, *args, **kwargs)
        )

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the optimizer, a variable."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of the slots of the optimizer."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """The variables of the optimizer."""
        return self._optimizer.variables(*args, **kwargs)


def DistributedGradientTape(  # noqa: N802 - Horovod's name
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Compressor = Compression.none,
    sparse_as_dense: bool = False,
    op: Any = Average,
    gradient_predivide_factor: float = 1.0,
) -> Any:
    """A tape whose gradients are those of all processes.

    Args:
      gradtape: a `tf.GradientTape`.
      device_dense: where gradients are summed; by default on the CPU.
      device_sparse: is not used: rows are gathered where gradients are summed.
      compression: `Compression.none` or `.fp16`.
      sparse_as_dense: whether `IndexedSlices` become dense before they are sent.
      op: `Average`, `Sum` or `Adasum`.
      gradient_predivide_factor: f for gradients that are divided by f before the sum, and by
        size / f after it.

    Returns:
      The tape; its `gradient` takes a target and a tensor or variable of any shape, or a
      structure of these.

    Raises:
      ValueError: before `init`; naming the argument, the rule and the value.
    """
    del device_sparse
    world.joined()
    exchange = Exchange(
        "tape", device_dense, compression, sparse_as_dense, op, gradient_predivide_factor
    )
    return _Tape(gradtape, exchange)


class _Tape:
    def __init__(self, tape: Any, exchange: Exchange) -> None:
        self._tape, self._exchange = tape, exchange

    def __enter__(self) -> "_Tape":
        self._tape.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tape.__exit__(*error)

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """As that of `tf.GradientTape`, with the gradients of all processes."""
        flat = tf.nest.flatten(sources)
        gradients: Sequence[Any] = self._tape.gradient(target, flat, *args, **kwargs)
        pairs = self._exchange(list(zip(gradients, flat, strict=True)))
        return tf.nest.pack_sequence_as(sources, [gradient for gradient, _ in pairs])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

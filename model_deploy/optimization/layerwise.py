"""`LayerwiseOptimizer`: base of LAMB and LARS, whose steps depend on the norms of a whole layer."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.checks import check_at_least
from model_deploy.optimization.weight_decay import check_pattern, is_excluded, layer_name


class LayerPart(NamedTuple):
    """A variable, or one part of a partitioned one, with its gradient and value.

    Attributes:
      variable: the variable, of any shape.
      gradient: dense gradient, of the variable's shape.
      value: the variable's value before the step.
    """

    variable: Any
    gradient: Any
    value: Any


class LayerwiseOptimizer(tf.train.Optimizer):
    """Base of optimizers that scale the step of each layer by norms.

    A layer is a variable.  All parts of a partitioned variable are one layer, so that the step does
    not depend on the partitioning: squares are summed on each part's device, and only the sums are
    sent.  A subclass defines `_layer_ops`.

    A sparse gradient is treated as a dense one, as a layer's step changes all rows; it is sent
    sparse and made dense on the variable's device.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      weight_decay: at least 0.
      no_weight_decay: regular expression for the names of variables without decay and scaling.
      use_locking: whether updates lock the variables.
      name: of slots and ops.

    Raises:
      ValueError: naming the argument, if `weight_decay` is less than 0 or `no_weight_decay` is no
        regular expression.
    """

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float,
        no_weight_decay: str,
        use_locking: bool,
        name: str,
    ) -> None:
        check_at_least("weight_decay", weight_decay, 0)
        check_pattern("no_weight_decay", no_weight_decay)
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._no_weight_decay = no_weight_decay
        self._locks = use_locking
        self._rate: Any = None
        self._layers: dict[str, list[tuple[Any, Any]]] = {}
        self._made: dict[str, Any] = {}

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Makes the step of all variables.

        Args:
          grads_and_vars: `(gradient, variable)` pairs; a gradient has the variable's shape, is an
            `IndexedSlices` over its rows, or None.
          global_step: an integer scalar variable to increment; or None.
          name: name of the op.

        Raises:
          ValueError: if only some parts of a partitioned variable have a gradient.
        """
        pairs = list(grads_and_vars)
        self._layers, self._made = _layers([(g, v) for g, v in pairs if g is not None]), {}
        return super().apply_gradients(pairs, global_step, name)

    def _layer_ops(self, parts: Sequence[LayerPart], is_scaled: bool) -> list[Any]:
        """Returns for each part the op that makes its step.

        Args:
          parts: the parts of the layer.
          is_scaled: False for a layer that has neither decay nor scaling.
        """
        raise NotImplementedError

    def _prepare(self) -> None:
        rate = self._learning_rate() if callable(self._learning_rate) else self._learning_rate
        self._rate = tf.convert_to_tensor(rate)

    def _rate_for(self, tensor: Any) -> Any:
        return tf.cast(self._rate, tensor.dtype.base_dtype)

    def _step_of(self, variable: Any) -> Any:
        """Returns the op that updates a variable; makes the ops of the whole layer once."""
        name = variable.op.name
        if name not in self._made:
            pairs = self._layers[layer_name(variable)]
            parts = [_layer_part(gradient, each) for gradient, each in pairs]
            is_scaled = not is_excluded(variable, self._no_weight_decay)
            ops = self._layer_ops(parts, is_scaled)
            names = [part.variable.op.name for part in parts]
            self._made.update(zip(names, ops, strict=True))
        return self._made[name]

    def _assigned(self, variable: Any, value: Any) -> Any:
        return variable.assign(value, use_locking=self._locks, read_value=False)

    def _subtracted(self, variable: Any, value: Any) -> Any:
        return variable.assign_sub(value, use_locking=self._locks, read_value=False)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        del grad
        return self._step_of(var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        del grad
        return self._step_of(handle)

    # Repeated rows are summed when the gradient is made dense.
    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        del grad
        return self._step_of(var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        del grad, indices
        return self._step_of(handle)


def beside(variable: Any) -> AbstractContextManager[Any]:
    """Puts ops on the device of a variable of any shape, ignoring other device scopes."""
    colocated: AbstractContextManager[Any] = tf.get_default_graph().colocate_with(
        variable.op, ignore_existing=True
    )
    return colocated


def norm(tensors: Sequence[Any], parts: Sequence[LayerPart]) -> Any:
    """Returns the L2 norm over all parts of a layer, each part summed on its device.

    Args:
      tensors: one tensor for each part, of its shape.
      parts: the parts of the layer.

    Returns:
      A scalar, float64 for float64 tensors and else float32.
    """
    squares = []
    for tensor, part in zip(tensors, parts, strict=True):
        with beside(part.variable):
            # Squares of half-precision numbers easily overflow.
            wide = tensor if tensor.dtype == tf.float64 else tf.cast(tensor, tf.float32)
            squares.append(tf.reduce_sum(tf.square(wide)))
    return tf.sqrt(tf.add_n(squares))


def ratio_or_one(numerator: Any, denominator: Any, where: Any) -> Any:
    """Returns `numerator / denominator` if all of `where`, scalars, are more than 0, else 1."""
    is_safe = tf.reduce_all(tf.stack(where) > 0)
    divisor = tf.where(is_safe, denominator, tf.ones_like(denominator))
    return tf.where(is_safe, numerator / divisor, tf.ones_like(numerator))


def _layer_part(gradient: Any, variable: Any) -> LayerPart:
    """Makes the gradient dense and reads the variable, on the variable's device."""
    with beside(variable):
        if isinstance(gradient, tf.IndexedSlices):
            gradient = tf.math.unsorted_segment_sum(
                gradient.values, gradient.indices, variable.shape.as_list()[0]
            )
        # After the gradient is computed: until then the variable may still change.
        with tf.control_dependencies([gradient]):
            return LayerPart(variable, gradient, variable.read_value())


def _layers(pairs: Sequence[tuple[Any, Any]]) -> dict[str, list[tuple[Any, Any]]]:
    """Groups the pairs by layer; checks that all parts of a layer have a gradient."""
    layers: dict[str, list[tuple[Any, Any]]] = {}
    for gradient, variable in pairs:
        layers.setdefault(layer_name(variable), []).append((gradient, variable))
    for name, members in layers.items():
        part = internals.slice_of(members[0][1])
        if part is None:
            continue
        have = sum(variable.shape.num_elements() for _, variable in members)
        whole = tf.TensorShape(part.full_shape).num_elements()
        if have != whole:
            raise ValueError(
                f"all parts of {name} must have a gradient, as a step depends on the norm of the "
                f"whole, got {len(members)} part(s) with {have} of {whole} values"
            )
    return layers

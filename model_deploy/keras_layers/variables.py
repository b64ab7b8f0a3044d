"""The variables of layers: made once for all clones, and placed as those of `tf.get_variable`.

What a layer makes in `model_fn` is made by `tf.get_variable` under the layer's own name.  So the
first clone makes it, where the deployment says, in parts if the variable scope has a partitioner;
later clones find it; and with all-reduce each clone gets its own.
"""

import collections
import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals, placement
from model_deploy.config import DeploymentConfig, DeviceFunction

_own: contextvars.ContextVar[Callable[[Any], Any] | None] = contextvars.ContextVar(
    "a clone's own variables", default=None
)


_by_no_layer: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "what is made is no layer's", default=False
)


@contextlib.contextmanager
def by_no_layer() -> Iterator[None]:
    """A `with` block whose variables and assignments are no layer's, though one may be called."""
    token = _by_no_layer.set(True)
    try:
        yield
    finally:
        _by_no_layer.reset(token)


def is_by_no_layer() -> bool:
    """Whether this is within `by_no_layer`."""
    return _by_no_layer.get()


@contextlib.contextmanager
def using_own_variables(own_of: Callable[[Any], Any]) -> Iterator[None]:
    """Lets layers in a `with` block use variables of the clone.

    Args:
      own_of: takes a variable that was made before, and returns the one to use in place of it,
        of the same shape and dtype.
    """
    token = _own.set(own_of)
    try:
        yield
    finally:
        _own.reset(token)


def own_variable(variable: Any) -> Any:
    """The variable that the clone being built uses in place of another, or that variable."""
    own_of = _own.get()
    return variable if own_of is None else own_of(variable)


class LayerVariables:
    """Makes variables of layers by `tf.get_variable`.

    Args:
      scope: name scope of the clone, without `/` at its end; not part of the variables' names.
      by_nobody: for a `with` block in which variables are made.

    Attributes:
      made: those that were made, or found, by their `id`.
    """

    def __init__(
        self, scope: str, by_nobody: Callable[[], contextlib.AbstractContextManager[None]]
    ) -> None:
        self._scope = scope
        self._by_nobody = by_nobody
        self.made: dict[int, Any] = {}
        self._names: collections.Counter[str] = collections.Counter()

    def create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """For `tf.variable_creator_scope`: the variable that is asked for."""
        maker = None if is_by_no_layer() else internals.maker_of_variable()
        with self._by_nobody():
            if maker is None:
                return next_creator(**kwargs)
            return self._get(self._name(maker, kwargs.get("name")), maker, kwargs)

    def _name(self, maker: Any, given: str | None) -> str:
        """The layer's name for a variable, which is the same in each clone."""
        name = getattr(maker, "path", None) if _is_variable(maker) else None
        if name is None:
            around = tf.get_default_graph().get_name_scope()
            for prefix in (self._scope, tf.get_variable_scope().name):
                if prefix and f"{around}/".startswith(f"{prefix}/"):
                    around = around[len(prefix) + 1 :]
            name = "/".join(part for part in (around, (given or "Variable").rstrip("/")) if part)
        count = self._names[name]
        self._names[name] += 1
        return f"{name}_{count}" if count else str(name)

    def _get(self, name: str, maker: Any, kwargs: dict[str, Any]) -> Any:
        value, dtype = kwargs["initial_value"], kwargs.get("dtype")
        shape = kwargs.get("shape")
        if shape is None:
            shape = maker.shape if callable(value) and _is_variable(maker) else _shape_of(value)
        if dtype is None:
            dtype = value.dtype if hasattr(value, "dtype") else tf.convert_to_tensor(value).dtype
        with tf.variable_scope(tf.get_variable_scope(), auxiliary_name_scope=False) as scope:
            if not kwargs.get("trainable"):
                scope.set_partitioner(None)  # what is not trained is small, and layers assign to it
            made = tf.get_variable(
                name,
                shape=tf.TensorShape(shape),
                dtype=tf.as_dtype(dtype),
                initializer=_initializer(value),
                trainable=kwargs.get("trainable"),
                caching_device=kwargs.get("caching_device"),
                use_resource=True,
                constraint=kwargs.get("constraint"),
                synchronization=kwargs.get("synchronization") or tf.VariableSynchronization.AUTO,
                aggregation=kwargs.get("aggregation") or tf.VariableAggregation.NONE,
            )
        if internals.is_partitioned(made):
            made = internals.with_operators(made)
        self.made[id(made)] = made
        return made


def place(variable: Any, config: DeploymentConfig, device: str | DeviceFunction) -> None:
    """Places a variable that was made before where the deployment has its variables.

    One that is on a device stays there.

    Args:
      variable: of any shape.
      config: the deployment.
      device: that of its variables, or a function that knows it.
    """
    op = variable.op
    if config.all_reduce:
        if tf.DeviceSpec.from_string(op.device).device_type is None:
            internals.set_device(op, placement.merge_devices(config.clone_device(0), op.device))
    elif not op.device:
        internals.set_device(op, device(op) if callable(device) else device)


def _is_variable(maker: Any) -> bool:
    """Whether it is a variable of Keras 3."""
    return hasattr(maker, "path") and hasattr(maker, "assign")


def _shape_of(value: Any) -> Any:
    value = value() if callable(value) else value
    return value.shape if tf.is_tensor(value) else np.shape(value)


def _initializer(value: Any) -> Callable[..., Any]:
    """An initializer that gives the initial value of a variable, or that of a part of it."""

    def initial_value(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        whole = tf.cast(value() if callable(value) else value, dtype)
        if partition_info is None:
            return whole
        return tf.slice(whole, partition_info.var_offset, shape)

    return initial_value

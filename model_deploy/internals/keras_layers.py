"""Observes calls of Keras 3 and tf-keras layers; seen in 3.0, 3.15, 2.16, 2.21."""

import contextlib
import contextvars
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from model_deploy.internals.ops import makes_old_control_flow
from model_deploy.internals.replacing import Replace, Replacements


class LayerWatcher(Protocol):
    """The callbacks of `watching_layers`."""

    def calling(
        self, layer: Any, is_symbolic: Callable[[], bool]
    ) -> contextlib.AbstractContextManager[None]:
        """Returns a context manager for a call of a layer.

        Args:
          layer: a layer of Keras 3 or tf-keras.
          is_symbolic: whether the call only computes shapes, to make a functional model.
        """

    def added_loss(self, layer: Any, losses: Sequence[Any]) -> None:
        """Is told that a layer has added losses: tensors of any shapes."""

    def losses_of(self, layer: Any) -> list[Any] | None:
        """Returns the value of `layer.losses`, tensors of any shapes; None for Keras' own value."""

    def drawing(self, generator: Any, draw: Callable[[], Any]) -> Any:
        """Returns a generator's next seed, integers of shape [2]; `draw` returns Keras' own."""


_STATE = "keras.src.backend.common.global_state"
_watcher: contextvars.ContextVar[LayerWatcher | None] = contextvars.ContextVar(
    "watcher of layers", default=None
)


def watching_layers(watcher: LayerWatcher) -> contextlib.AbstractContextManager[None]:
    """Reports to `watcher` what layers do in a `with` block.

    Keras may be imported in the block.  The layers of `tf.compat.v1.layers` and TF-Slim, which are
    of tf-keras, are ignored, and so are other threads.

    Wraps `Layer.__call__`, `Layer.add_loss` and `Layer.losses` of both Kerases, and
    `SeedGenerator.next` of Keras 3.
    """
    return _replacements.in_place(_watcher, watcher)


def maker_of_variable() -> Any:
    """Returns the Keras layer, metric, variable or seed generator whose code calls this, or None.

    None also for calls by way of `tf.get_variable`.

    Wraps `variable_scope.get_variable`.
    """
    frame = inspect.currentframe()
    kinds = _kinds("Layer", "Variable", "Metric", "random.SeedGenerator")
    while frame is not None and kinds:
        if frame.f_globals.get("__name__") == "tensorflow.python.ops.variable_scope":
            return None
        owner = frame.f_locals.get("self")
        if isinstance(owner, kinds):
            return owner
        frame = frame.f_back
    return None


def keras_backend(layer: Any) -> str:
    """Returns the backend of a layer's Keras, such as `tensorflow`. Wraps `keras.backend`."""
    return str(sys.modules["keras"].backend.backend()) if _is_keras_3(layer) else "tensorflow"


def works_eagerly_only(layer: Any) -> bool:
    """Whether a layer or sublayer cannot be in a graph. Wraps `Layer.dynamic` of tf-keras."""
    return not _is_keras_3(layer) and bool(layer.dynamic)


def layer_variables(layer: Any) -> list[Any]:
    """Returns all TensorFlow variables of a layer and its sublayers; [] before they are made.

    Wraps `Variable._value` of Keras 3.
    """
    try:
        return [tf_variable(variable) for variable in layer.variables]
    except ValueError:  # a model of tf-keras that has not been called
        return []


def tf_variable(variable: Any) -> Any:
    """Returns the TensorFlow variable of one of Keras 3, or `variable`. Wraps `Variable._value`."""
    return getattr(variable, "_value", variable) if _is_keras_3(variable) else variable


def set_constraint(variable: Any, constraint: Callable[[Any], Any]) -> None:
    """Sets a variable's constraint, a function of its value, which optimizers apply.

    Wraps `Variable._constraint` of TensorFlow's.
    """
    variable._constraint = constraint


def sublayers(layer: Any) -> list[Any]:
    """Returns a layer and all layers in it. Wraps `Layer._flatten_layers`."""
    return list(layer._flatten_layers())


def regularizers(layer: Any) -> list[tuple[Any, Callable[[], Any]]]:
    """Returns the functions that compute the regularization losses of a layer and its sublayers.

    Wraps `Layer._callable_losses` of tf-keras.

    Returns:
      Pairs of an object that identifies the loss, and a function that returns a scalar or None.
    """
    if _is_keras_3(layer):
        return [
            (variable, functools.partial(variable.regularizer, variable))
            for variable in layer.trainable_variables
            if variable.regularizer is not None
        ]
    callables = [each for sub in sublayers(layer) for each in sub._callable_losses]
    return [(each, each) for each in callables]


def in_stateless_scope() -> bool:
    """Whether Keras 3 is in a scope in which assignments are not made, as to infer shapes.

    Wraps `global_state.get_global_attribute` of Keras 3.
    """
    state = sys.modules.get(_STATE)
    return state is not None and state.get_global_attribute("stateless_scope") is not None


def calls_itself_stateful(layer: Any) -> bool:
    """Whether a layer keeps state between batches. Wraps `Layer._stateful` of tf-keras."""
    return bool(getattr(layer, "stateful" if _is_keras_3(layer) else "_stateful", False))


@contextlib.contextmanager
def fresh_names() -> Iterator[None]:
    """Names layers made in a `with` block as if they were the first ones of the process.

    Keras 3's global seed generator is a new one as well, unless it is of the default graph.

    Wraps `global_state.get_global_attribute` and `global_state.set_global_attribute` of Keras 3
    and `backend.PER_GRAPH_OBJECT_NAME_UIDS` of tf-keras.
    """
    graph = tf.get_default_graph()
    before = [dict(table) for table in _tables_of_names(graph)]
    generator = _common_generator()
    is_of_graph = generator is not None and tf_variable(generator.state).graph is graph
    for table in _tables_of_names(graph):
        table.clear()
    _set_common_generator(generator if is_of_graph else None)
    try:
        yield
    finally:
        for table, names in zip(_tables_of_names(graph), before, strict=True):
            table.clear()
            table.update(names)
        _set_common_generator(generator)


def _tables_of_names(graph: tf.Graph) -> list[Any]:
    """Returns the counters of names of Keras 3 and tf-keras; empty if not imported."""
    state, backend = sys.modules.get(_STATE), sys.modules.get("tf_keras.src.backend")
    return [
        (state.get_global_attribute("object_name_uids") or {}) if state else {},
        backend.PER_GRAPH_OBJECT_NAME_UIDS.get(graph, {}) if backend else {},
    ]


def _common_generator() -> Any:
    state = sys.modules.get(_STATE)
    return state.get_global_attribute("global_seed_generator") if state else None


def _set_common_generator(generator: Any) -> None:
    state = sys.modules.get(_STATE)
    if state is not None:
        state.set_global_attribute("global_seed_generator", generator)


def _is_keras_3(thing: Any) -> bool:
    """Whether a layer or variable belongs to Keras 3, not tf-keras."""
    return any(kind.__module__.split(".", maxsplit=1)[0] == "keras" for kind in type(thing).__mro__)


def _kinds(*names: str) -> tuple[type, ...]:
    """Returns the public classes with these names in the imported Kerases."""
    found = []
    for module in _kerases():
        for name in names:
            kind: Any = module
            for part in name.split("."):
                kind = getattr(kind, part, None)
            found.append(kind)
    tf_keras = sys.modules.get("tf_keras")
    if "Layer" in names and tf_keras is not None and hasattr(tf_keras, "layers"):
        found.append(tf_keras.layers.Layer)
        found.append(_layer_v1())
    return tuple(kind for kind in found if isinstance(kind, type))


def _kerases() -> list[types.ModuleType]:
    """Returns Keras 3 in a list, if the program has imported it."""
    module = sys.modules.get("keras")
    return [module] if module is not None and hasattr(module, "Layer") else []


def _layer_v1() -> Any:
    """Returns the base class of layers that tf-keras makes in graph mode."""
    return importlib.import_module("tf_keras.src.engine.base_layer_v1").Layer


def _is_symbolic(arguments: Any) -> bool:
    """Whether an argument is a symbolic tensor, of which functional models are made."""
    kinds = _kinds("KerasTensor")
    tf_keras = sys.modules.get("tf_keras.src.engine.keras_tensor")
    if tf_keras is not None:
        kinds = (*kinds, tf_keras.KerasTensor)
    return any(
        isinstance(each, kinds) or hasattr(each, "_keras_history")
        for each in tf.nest.flatten(arguments)
    )


def _is_legacy(layer: Any) -> bool:
    """Whether a layer is of `tf.compat.v1.layers`, which have their own updates and losses."""
    return any(".legacy_tf_layers." in kind.__module__ for kind in type(layer).__mro__)


def _watched_call(original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        watcher = _watcher.get()
        if watcher is None or _is_legacy(self):
            return original(self, *args, **kwargs)
        with _tensorflow_2_in(self), watcher.calling(self, lambda: _is_symbolic((args, kwargs))):
            return original(self, *args, **kwargs)

    return call


@contextlib.contextmanager
def _tensorflow_2_in(layer: Any) -> Iterator[None]:
    """Enables loops and shapes of TensorFlow 2 for a layer of Keras 3, in a `with` block.

    Recurrent layers that return the last output only write it at each step to the same place of a
    `tf.TensorArray`, which loops of TensorFlow 1 refuse.  A GRU takes sizes for integers.  Inside
    of a loop or condition of TensorFlow 1 loops stay as they are.
    """
    switches = []
    if _is_keras_3(layer):
        if not (tf.control_flow_v2_enabled() or makes_old_control_flow(tf.get_default_graph())):
            switches.append((tf.enable_control_flow_v2, tf.disable_control_flow_v2))
        if not isinstance(tf.TensorShape([1])[0], int):
            switches.append((tf.enable_v2_tensorshape, tf.disable_v2_tensorshape))
    for enable, _ in switches:
        enable()
    try:
        yield
    finally:
        for _, disable in switches:
            disable()


def _watched_add_loss(original: Any) -> Any:
    @functools.wraps(original)
    def add_loss(self: Any, losses: Any, *args: Any, **kwargs: Any) -> Any:
        watcher = _watcher.get()
        if watcher is not None and not _is_legacy(self):
            flat = tf.nest.flatten(losses)
            watcher.added_loss(self, [each for each in flat if tf.is_tensor(each)])
        return original(self, losses, *args, **kwargs)

    return add_loss


def _watched_losses(original: Any) -> Any:
    def losses(self: Any) -> Any:
        watcher = _watcher.get()
        found = None
        if watcher is not None and not _is_legacy(self):
            found = watcher.losses_of(self)
        return original.fget(self) if found is None else found

    return property(losses, doc=original.__doc__)


def _watched_next(original: Any) -> Any:
    @functools.wraps(original)
    def next_seed(self: Any, *args: Any, **kwargs: Any) -> Any:
        watcher = _watcher.get()
        if watcher is None:
            return original(self, *args, **kwargs)
        return watcher.drawing(self, lambda: original(self, *args, **kwargs))

    return next_seed


def _replace_in(name: str, replace: Replace) -> None:
    """Replaces the watched methods of `keras` or `tf_keras`."""
    kinds: list[Any] = []
    if name == "keras":
        kinds += _kinds("Layer")[:1] if _kerases() else []
        for generator in _kinds("random.SeedGenerator"):
            replace(generator, "next", _watched_next)
    else:
        kinds += [sys.modules["tf_keras"].layers.Layer, _layer_v1()]
    for kind in kinds:
        for attribute, replacement in _OF_LAYERS.items():
            if attribute in vars(kind):
                replace(kind, attribute, replacement)


_OF_LAYERS: Mapping[str, Callable[[Any], Any]] = {
    "__call__": _watched_call,
    "add_loss": _watched_add_loss,
    "losses": _watched_losses,
}
_replacements = Replacements(modules=("keras", "tf_keras"), replace_in=_replace_in)


def uses_weight_decay(optimizer: Any, variable: Any) -> bool:
    """Whether a Keras optimizer applies weight decay to a Keras variable, of any shape.

    Wraps `KerasOptimizer._use_weight_decay`, of Keras 3 and tf-keras.
    """
    return bool(optimizer._use_weight_decay(variable))

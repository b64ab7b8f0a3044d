"""Losses and metrics as `model.compile` takes them: Keras objects, functions or names."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.keras.libraries import forget_variables, library_of, new_without_graph

# Name -> class for a single predicted value, for class probabilities as labels, and for class
# numbers as labels; Keras chooses by the shapes.
_BY_SHAPE = {
    "accuracy": ("BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy"),
    "crossentropy": (
        "BinaryCrossentropy",
        "CategoricalCrossentropy",
        "SparseCategoricalCrossentropy",
    ),
}
_BY_SHAPE |= {"acc": _BY_SHAPE["accuracy"], "ce": _BY_SHAPE["crossentropy"]}


def get_loss(loss: Any, keras: Any) -> Callable[..., Any]:
    """Returns a Keras loss for an object, function or name.

    Args:
      loss: a `keras.losses.Loss`; a function of labels and predictions that returns the loss per
        example or a scalar; or a name, such as "mse", for Keras' default settings.
      keras: the library that knows the name, `keras` or `tf_keras`.

    Returns:
      A function of labels, predictions, and weights of the examples or None, that returns a float
      scalar.

    Raises:
      ValueError: for an unknown name, several losses, or one that works eagerly only.
    """
    if isinstance(loss, Mapping | list | tuple) or not (isinstance(loss, str) or callable(loss)):
        raise ValueError(
            "loss must be one Keras loss, function or name (of several outputs, a function that "
            f"adds their losses up), got {loss!r}"
        )
    if isinstance(loss, str):
        name = loss
        try:
            found = keras.losses.get(name)
        except ValueError as error:
            raise ValueError(f"loss must be the name of a loss of Keras, got {name!r}") from error
        # The class that belongs to a function, as it accepts weights of examples.
        words = getattr(found, "__name__", "").split("_")
        loss = getattr(keras.losses, "".join(map(str.capitalize, words)), lambda: found)()
    if _works_eagerly_only(loss):
        raise ValueError(
            "loss must work in a graph, where Keras' CTC compares tensors as objects, got "
            f"{loss!r}; call tf.nn.ctc_loss in a function of labels and predictions"
        )
    library = library_of(loss)
    if library is None or not isinstance(loss, library.losses.Loss):
        loss = _loss_of_function(loss, keras)
    return _scalar(loss)


def get_metrics(metrics: Iterable[Any]) -> list[Any]:
    """Returns Keras metrics, by object, function or name, for `metric_values`.

    Args:
      metrics: `keras.metrics.Metric`s of Keras 3; functions of labels and predictions that return
        a value for each example; or names.

    Raises:
      ValueError: for an unknown name, a metric of tf-keras, or something else.
    """
    if isinstance(metrics, str | Mapping):
        raise ValueError(f"metrics must be a list, got {metrics!r}")
    keras = library_of(None)
    found = []
    for metric in metrics:
        if isinstance(metric, str) and metric not in _BY_SHAPE:
            try:
                metric = new_without_graph(functools.partial(keras.metrics.get, metric))  # noqa: PLW2901
            except ValueError as error:
                raise ValueError(
                    f"metrics must be the names of metrics of Keras, got {metric!r}"
                ) from error
        is_metric = isinstance(metric, str | keras.metrics.Metric)
        if not is_metric and (library_of(metric) is not None or not callable(metric)):
            raise ValueError(
                "metrics must be Keras 3 metrics, functions or names, got "
                f"{type(metric).__module__}.{type(metric).__name__}"
            )
        if hasattr(metric, "variables"):
            forget_variables(metric.variables)
        found.append(metric)
    return found


def metric_values(
    metrics: Iterable[Any], labels: Any, predictions: Any, weights: Any = None
) -> dict[str, Any]:
    """Returns the values of metrics on one batch by name; no state is kept.

    Args:
      metrics: the result of `get_metrics`.
      labels: labels such as int [batch] or float [batch, classes].
      predictions: predictions such as float [batch, classes].
      weights: weights of the examples, float [batch], or None.

    Returns:
      Float scalars.
    """
    values = {}
    for metric in metrics:
        if isinstance(metric, str):
            made = _by_shape(metric, labels, predictions)
            values[metric] = _value(made, labels, predictions, weights)
        elif hasattr(metric, "stateless_update_state"):
            values[metric.name] = _value(metric, labels, predictions, weights)
        else:
            name = getattr(metric, "__name__", type(metric).__name__)
            values[name] = tf.reduce_mean(metric(labels, predictions))
    return values


def _by_shape(name: str, labels: Any, predictions: Any) -> Any:
    ranks, last = (labels.shape.rank, predictions.shape.rank), predictions.shape[-1]
    are_numbers = ranks[0] < ranks[1] or labels.shape[-1] == 1
    kind = 0 if last == 1 else 2 if are_numbers else 1
    make = getattr(library_of(None).metrics, _BY_SHAPE[name][kind])
    return new_without_graph(lambda: make(name=name))


def _value(metric: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    state = metric.stateless_reset_state()
    state = metric.stateless_update_state(state, labels, predictions, sample_weight=weights)
    return tf.convert_to_tensor(metric.stateless_result(state))


def _works_eagerly_only(loss: Any) -> bool:
    name = getattr(loss, "__name__", type(loss).__name__)
    return name in ("ctc", "CTC") and loss.__module__.startswith("keras.")


def _loss_of_function(function: Callable[..., Any], keras: Any) -> Any:
    """Makes a Keras loss of a function: its mean over the examples."""

    def call(self: Any, labels: Any, predictions: Any) -> Any:
        del self
        return function(labels, predictions)

    kind = type("FunctionLoss", (keras.losses.Loss,), {"call": call})
    # The name becomes a name scope, where `<lambda>` would be invalid.
    return kind(name=re.sub(r"\W", "", getattr(function, "__name__", "")) or "loss")


def _scalar(loss: Any) -> Callable[..., Any]:
    def scalar(labels: Any, predictions: Any, weights: Any = None) -> Any:
        value = tf.convert_to_tensor(loss(labels, predictions, sample_weight=weights))
        if value.shape.rank != 0:
            raise ValueError(
                f"loss must be a scalar, got {loss.name!r} of shape {value.shape}: its reduction "
                "must not be 'none'"
            )
        return value

    return scalar

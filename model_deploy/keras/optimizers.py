"""Translates Keras optimizers into equal ones of TensorFlow; refuses all others."""

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.keras import updates
from model_deploy.keras.libraries import forget_variables, library_of, new_without_graph
from model_deploy.optimization import layer_name

_Translate = Callable[[Any, Any], Any]

# Name of the Keras class -> function (Keras optimizer, learning rate) -> TensorFlow optimizer.
# Where TensorFlow's update differs:
# - Adagrad: Keras adds epsilon to the accumulator before the root; starting with it is the same.
# - SGD, RMSprop: see `updates.py`.
_TRANSLATIONS: dict[str, _Translate] = {
    "Adadelta": lambda o, rate: updates.Adadelta(rate, o.rho, o.epsilon),
    "Adagrad": lambda o, rate: updates.Adagrad(rate, o.initial_accumulator_value + o.epsilon),
    "Adam": lambda o, rate: updates.Adam(rate, o.beta_1, o.beta_2, o.epsilon),
    "AdamW": lambda o, rate: updates.Adam(rate, o.beta_1, o.beta_2, o.epsilon, name="AdamW"),
    "Ftrl": lambda o, rate: updates.Ftrl(
        rate,
        o.learning_rate_power,
        o.initial_accumulator_value,
        o.l1_regularization_strength,
        o.l2_regularization_strength,
        l2_shrinkage_regularization_strength=o.l2_shrinkage_regularization_strength,
        beta=o.beta,
    ),
    "RMSprop": lambda o, rate: updates.RMSProp(
        rate, o.rho, o.momentum, o.epsilon, centered=o.centered
    ),
    "SGD": lambda o, rate: (
        updates.Momentum(rate, o.momentum, o.nesterov)
        if o.momentum
        else updates.GradientDescent(rate)
    ),
}
# Those that train tables by rows, with `by_rows`.
_BY_ROWS: dict[str, _Translate] = {
    name: lambda o, rate, name=name: updates.RowAdam(  # type: ignore[misc]
        rate, 0.0, o.beta_1, o.beta_2, o.epsilon, name=name
    )
    for name in ("Adam", "AdamW")
}
# Settings that `deploy` provides in place of the optimizer -> what to use.
_ELSEWHERE = {
    "amsgrad": "there is no such Adam in TensorFlow's distributed optimizers",
    "use_ema": "pass training.moving_average_update(decay, step) as an update op of deploy_model",
    "loss_scale_factor": "DeploymentConfig(loss_scale=...) scales losses",
    "gradient_accumulation_steps": "DeploymentConfig(accumulate_steps=...) accumulates",
}


class Translation(NamedTuple):
    """A Keras optimizer as arguments of `deploy`.

    Attributes:
      optimizer: a `tf.compat.v1.train.Optimizer`.
      learning_rate: the learning rate at the global step, a float32 scalar.
      clip_norm: largest joint L2 norm of the gradients; None for no limit.
    """

    optimizer: Any
    learning_rate: Any
    clip_norm: float | None


def translate_optimizer(
    optimizer: Any,
    global_step: Any,
    variables: Callable[[], Iterable[Any]] = tuple,
    *,
    by_rows: bool = False,
) -> Translation:
    """Returns the TensorFlow optimizer that makes the same updates as a Keras optimizer.

    Supported are SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta and Ftrl, of Keras 3 and tf-keras,
    with learning rates that are numbers or schedules, weight decay and clipping.  Only the settings
    of the Keras optimizer are used: slots start anew even if it has made steps.

    Args:
      optimizer: a Keras optimizer, or the name of one of Keras 3.
      global_step: the number of steps done, an integer scalar tensor or variable.
      variables: returns the Keras variables of the model, of any shapes, for optimizers that
        exclude some of them from weight decay.
      by_rows: whether Adam and AdamW train tables of embeddings at the cost of the rows of a step,
        see `RowAdamOptimizer`.

    Returns:
      A `Translation`.

    Raises:
      ValueError: naming the optimizer, if its class or a setting is not supported, or is not with
        `by_rows`.
    """
    if isinstance(optimizer, str):
        optimizer = _by_name(optimizer)
    name = type(optimizer).__name__
    keras = library_of(optimizer)
    known = keras is not None and type(optimizer) is getattr(keras.optimizers, name, None)
    if not known or name not in _TRANSLATIONS:
        raise ValueError(
            f"optimizer must be one of {', '.join(_TRANSLATIONS)} of Keras (a subclass has steps "
            f"of its own), got {type(optimizer).__module__}.{name}"
        )
    if by_rows and name not in _BY_ROWS:
        raise ValueError(
            f"optimizer must be one of {', '.join(_BY_ROWS)} with by_rows=True, got {name}"
        )
    _check_settings(optimizer, name)
    rate = tf.identity(_learning_rate(keras, optimizer, global_step), name="learning_rate")
    before = updates.Before(
        rate,
        optimizer.weight_decay or None,
        _is_decayed(optimizer, variables),
        _clip(optimizer),
    )
    translated = (_BY_ROWS if by_rows else _TRANSLATIONS)[name](optimizer, rate).after(before)
    # tf-keras keeps a schedule's rate in a variable that is not among `optimizer.variables`; Keras
    # 3 would compute it, in a graph that may be another one.
    more = [] if keras.__name__ == "keras" else [optimizer.learning_rate]
    forget_variables([*optimizer.variables, *more])
    return Translation(translated, rate, optimizer.global_clipnorm or None)


def _by_name(name: str) -> Any:
    """Returns the Keras optimizer with this name, its variables in a graph of their own."""
    keras = library_of(None)
    try:
        return new_without_graph(lambda: keras.optimizers.get(name))
    except ValueError as error:
        raise ValueError(
            f"optimizer must be one of {', '.join(map(str.lower, _TRANSLATIONS))}, got {name!r}"
        ) from error


def _check_settings(optimizer: Any, name: str) -> None:
    for field, instead in _ELSEWHERE.items():
        value = getattr(optimizer, field, None)
        if value:
            raise ValueError(
                f"{field} of the optimizer {name} must not be set, got {value}: {instead}"
            )


def _learning_rate(keras: Any, optimizer: Any, global_step: Any) -> Any:
    """Returns the rate at a step, a float scalar: a tensor for a schedule, else a number."""
    step = tf.cast(tf.convert_to_tensor(global_step), tf.int64)
    if keras.__name__ == "keras":
        # A schedule is evaluated where it is read; here the step stands for the optimizer's own.
        with keras.StatelessScope(state_mapping=[(optimizer.iterations, step)]):
            rate = optimizer.learning_rate
    else:
        rate = _rate_of_tf_keras(keras, optimizer, step)
    if tf.is_tensor(rate) and not hasattr(rate, "assign"):
        return tf.cast(rate, tf.float32)
    return tf.constant(
        _number(internals.tf_variable(rate)) if hasattr(rate, "assign") else rate, tf.float32
    )


def _rate_of_tf_keras(keras: Any, optimizer: Any, step: Any) -> Any:
    rate = optimizer.learning_rate
    if "current_learning_rate" not in rate.name:
        return rate
    schedules = keras.optimizers.schedules
    schedule = schedules.deserialize(optimizer.get_config()["learning_rate"])
    return schedule(step)


def _number(variable: Any) -> float:
    """Returns the value of a scalar variable; in a graph its initial value."""
    initial = getattr(variable, "initial_value", None)
    if initial is not None:
        return float(tf.get_static_value(initial))
    # Made eagerly, so read eagerly: a new thread of an eager process is eager.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return float(pool.submit(variable.numpy).result())


def _clip(optimizer: Any) -> Callable[[Any], Any] | None:
    """Returns the function by which the optimizer clips each gradient separately, or None."""
    norm, value = optimizer.clipnorm, optimizer.clipvalue
    if norm:
        return lambda gradient: tf.clip_by_norm(gradient, norm)
    if value:
        return lambda gradient: tf.clip_by_value(gradient, -value, value)
    return None


def _is_decayed(optimizer: Any, variables: Callable[[], Iterable[Any]]) -> Callable[[Any], bool]:
    """Returns a function that says of a variable, of any shape, whether it is decayed."""

    def is_decayed(variable: Any) -> bool:
        name = layer_name(variable)
        own = {internals.tf_variable(each).op.name: each for each in variables()}
        return name not in own or internals.uses_weight_decay(optimizer, own[name])

    return is_decayed

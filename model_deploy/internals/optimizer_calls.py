"""Calls of TensorFlow's optimizers, and gradients that are asked for; TensorFlow 2.16 to 2.21."""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tensorflow.python.ops import control_flow_ops, gradients_util
from tensorflow.python.training import moving_averages
from tensorflow.python.training import optimizer as optimizer_lib
from tensorflow.python.training.experimental import loss_scale as loss_scale_lib

from model_deploy.internals.replacing import Replace, Replacements


class OptimizerWatcher(Protocol):
    """What is called in place of optimizers, and told of gradients."""

    def minimize(self, optimizer: Any, loss: Any, **kwargs: Any) -> Any:
        """In place of `Optimizer.minimize`; returns the train op."""

    def apply_gradients(self, optimizer: Any, grads_and_vars: Any, **kwargs: Any) -> Any:
        """In place of the `apply_gradients` of an optimizer; returns the train op."""

    def found_gradients(self, losses: Any, variables: Any, gradients: Sequence[Any]) -> None:
        """Is told what `tf.gradients` has got and what it returns."""

    def apply_averages(self, apply: Callable[[], Any]) -> Any:
        """In place of `ExponentialMovingAverage.apply`, which `apply` calls; returns its op."""

    def make_of_scale(self, name: str, make: Callable[[], Any]) -> Any:
        """In place of `make`, which makes a variable of a loss scale; returns a variable."""


_watcher: contextvars.ContextVar[OptimizerWatcher | None] = contextvars.ContextVar(
    "watcher of optimizers", default=None
)


def watching_optimizers(watcher: OptimizerWatcher) -> contextlib.AbstractContextManager[None]:
    """A `with` block in which `watcher` is called in place of optimizers of `tf.train`.

    Overrides `Optimizer.minimize`, `Optimizer.apply_gradients` and that of each class below it, and
    `gradients_util._GradientsHelper`, which all functions that compute gradients call;
    `ExponentialMovingAverage.apply`; and `LossScale._add_weight`, with which the loss scale of
    `tf.train.experimental.enable_mixed_precision_graph_rewrite` makes its variables.
    """
    return _replacements.in_place(_watcher, watcher)


def computes_gradients_itself(optimizer: Any) -> bool:
    """Whether an optimizer's class does not have the `compute_gradients` of all others.

    Wraps `Optimizer.compute_gradients`.
    """
    own: Any = type(optimizer).compute_gradients
    return own is not optimizer_lib.Optimizer.compute_gradients


def _replace_all(replace: Replace) -> None:
    replace(gradients_util, "_GradientsHelper", _telling)
    replace(moving_averages.ExponentialMovingAverage, "apply", _averaging)
    replace(loss_scale_lib.LossScale, "_add_weight", _making)
    replace(optimizer_lib.Optimizer, "minimize", functools.partial(_instead, "minimize"))
    for kind in {optimizer_lib.Optimizer, *_below(optimizer_lib.Optimizer)}:
        if "apply_gradients" in vars(kind):
            replace(kind, "apply_gradients", functools.partial(_instead, "apply_gradients"))


def _below(kind: type) -> Iterator[type]:
    found: list[type] = type.__subclasses__(kind)
    for each in found:
        yield each
        yield from _below(each)


def _instead(method: str, original: Callable[..., Any]) -> Callable[..., Any]:
    names = ("global_step", "var_list") if method == "minimize" else ("global_step", "name")

    @functools.wraps(original)
    def call(optimizer: Any, first: Any = None, *args: Any, **kwargs: Any) -> Any:
        watcher = _watcher.get()
        if watcher is None:
            given = () if first is None else (first,)
            return original(optimizer, *given, *args, **kwargs)
        kwargs.update(zip(names, args, strict=False))
        if first is None:
            first = kwargs.pop("loss" if method == "minimize" else "grads_and_vars")
        return getattr(watcher, method)(optimizer, first, **kwargs)

    return call


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def gradients(ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(ys, xs, *args, **kwargs)
        watcher = _watcher.get()
        if watcher is not None:
            watcher.found_gradients(ys, xs, found)
        return found

    return gradients


def _averaging(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply(averages: Any, *args: Any, **kwargs: Any) -> Any:
        call = functools.partial(original, averages, *args, **kwargs)
        watcher = _watcher.get()
        return call() if watcher is None else watcher.apply_averages(call)

    return apply


def _making(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def add(scale: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        make = functools.partial(original, scale, name, *args, **kwargs)
        watcher = _watcher.get()
        return make() if watcher is None else watcher.make_of_scale(name, make)

    return add


class _Following(loss_scale_lib.DynamicLossScale):
    """The dynamic loss scale of another optimizer, which alone changes it.

    Args:
      leader: the loss scale of the other optimizer.
    """

    def __init__(self, leader: Any) -> None:
        # Without that of its class, which would make variables.
        self._leader = leader

    def __call__(self) -> Any:
        return self._leader()

    def update(self, grads: Any) -> Any:
        """No change, and whether the gradients, of the shapes of variables, are finite."""
        return control_flow_ops.no_op(), loss_scale_lib._is_all_finite(grads)


def follow_loss_scale(optimizer: Any) -> None:
    """Lets an optimizer, a copy of another, leave the change of a dynamic loss scale to that one.

    Wraps `loss_scale._is_all_finite` and `MixedPrecisionLossScaleOptimizer._loss_scale`.
    """
    scale = getattr(optimizer, "_loss_scale", None)
    if isinstance(scale, loss_scale_lib.DynamicLossScale):
        optimizer._loss_scale = _Following(scale)


_replacements = Replacements(_replace_all)

"""Replaces the moments of batch norms in layers; seen in Keras 3.0, 3.15, tf-keras 2.16, 2.21."""

import contextlib
import contextvars
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from model_deploy.internals.replacing import Replace, Replacements, temporarily

# (values, axes to reduce, whether to keep reduced axes with size 1) -> (mean, variance).
Moments = Callable[[Any, Sequence[int], bool], tuple[Any, Any]]

_moments: contextvars.ContextVar[Moments | None] = contextvars.ContextVar("moments", default=None)
_normalizes_examples = contextvars.ContextVar("normalizes examples", default=False)


@contextlib.contextmanager
def taking_batch_moments_by(moments: Moments) -> Iterator[None]:
    """Computes the moments of batch norms that are no fused op by a function, in a `with` block.

    These are the layers of Keras 3 and, where they are not fused, those of tf-keras (which
    `tf.compat.v1.layers` and TF-Slim use) and `slim.batch_norm`.  Other layers' moments, and other
    threads, are not affected.

    Wraps `BatchNormalization._moments` of both Kerases and `LayerNormalization.call` of tf-keras.
    TF-Slim's module of layers gets a replacement of `nn`.

    Args:
      moments: the function, for values of any shape and a float dtype.

    Raises:
      ValueError: in the block, for a batch norm with a mask or weights, or of parts of the batch.
    """
    with _replacements.in_place(_moments, moments):
        yield


def normalizes_examples() -> bool:
    """Whether a layer is being called that uses the fused batch norm to normalize each example.

    It detects `LayerNormalization.call` of tf-keras in a block of `taking_batch_moments_by`.  Also
    true in a block of `leaving_batch_moments`.

    Wraps `LayerNormalization.call`.
    """
    return _normalizes_examples.get()


def are_taken() -> bool:
    """Whether a block of `taking_batch_moments_by` is open."""
    return _moments.get() is not None


@contextlib.contextmanager
def leaving_batch_moments() -> Iterator[None]:
    """Leaves batch norms alone in a `with` block, such as in calls that only compute shapes.

    Wraps `BatchNormalization._moments` of both Kerases.
    """
    with temporarily(_moments, None), temporarily(_normalizes_examples, True):
        yield


def _replace_all(replace: Replace) -> None:
    """Replaces where Keras 3, tf-keras and TF-Slim compute moments of batch norms."""
    with contextlib.suppress(ImportError):  # Keras may lack its backend
        keras = importlib.import_module("keras").layers.BatchNormalization
        replace(_owner(keras, "_moments"), "_moments", _wrapped_keras)
    tf_keras = importlib.import_module("tf_keras").layers
    slim_layers = importlib.import_module("tf_slim.layers.layers")
    replace(_owner(tf_keras.BatchNormalization, "_moments"), "_moments", _wrapped_tf_keras)
    replace(tf_keras.LayerNormalization, "call", _wrapped_layer_norm)
    replace(slim_layers, "nn", _NnWithMoments)


_replacements = Replacements(_replace_all)


def _owner(kind: type, name: str) -> type:
    """Returns the class that defines a method which `kind` may inherit."""
    return next(each for each in kind.__mro__ if name in vars(each))


def _wrapped_keras(original: Any) -> Any:
    def _moments_of_keras(self: Any, inputs: Any, mask: Any) -> Any:
        moments = _moments.get()
        if moments is None:
            return original(self, inputs, mask)
        _check_plain(self.name, mask=mask)
        rank = int(inputs.shape.rank)
        return moments(inputs, [i for i in range(rank) if i != int(self.axis) % rank], False)

    return _moments_of_keras


def _wrapped_tf_keras(original: Any) -> Any:
    def _moments_of_tf_keras(
        self: Any, inputs: Any, reduction_axes: Any, keep_dims: bool, mask: Any = None
    ) -> Any:
        moments = _moments.get()
        if moments is None:
            return original(self, inputs, reduction_axes, keep_dims, mask=mask)
        _check_plain(self.name, mask=mask, virtual_batch_size=self.virtual_batch_size)
        return moments(inputs, reduction_axes, keep_dims)

    return _moments_of_tf_keras


def _wrapped_layer_norm(original: Any) -> Any:
    def call(self: Any, inputs: Any) -> Any:
        with temporarily(_normalizes_examples, True):
            return original(self, inputs)

    return call


class _NnWithMoments:
    """TensorFlow's module for `slim.batch_norm`; other functions of that file see it as it is.

    Args:
      module: the module.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def moments(self, x: Any, axes: Any, *args: Any, **kwargs: Any) -> Any:
        moments = _moments.get()
        if moments is None or not _is_called_by_batch_norm():
            return self._module.moments(x, axes, *args, **kwargs)
        return moments(x, axes, kwargs.get("keep_dims", False))

    def weighted_moments(self, x: Any, axes: Any, weights: Any, **kwargs: Any) -> Any:
        if _moments.get() is not None and _is_called_by_batch_norm():
            _check_plain(x.op.name, batch_weights=weights)
        return self._module.weighted_moments(x, axes, weights, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _is_called_by_batch_norm() -> bool:
    """Whether the caller of this function's caller is `slim.batch_norm`."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return caller is not None and caller.f_code.co_name == "batch_norm"


def _check_plain(name: str, **settings: Any) -> None:
    for setting, value in settings.items():
        if value is not None:
            raise ValueError(
                f"sync_batch_norm needs batch norms without {setting}, got {value} in {name}"
            )

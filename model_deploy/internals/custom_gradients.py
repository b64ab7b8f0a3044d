"""Where the function of a `tf.custom_gradient` is called; seen in TensorFlow 2.16 to 2.21.

TensorFlow looks for variables from what the function returns back to the tensors that it was
given, so no op of the function may take a value from before these.
"""

import contextvars
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import custom_gradient

from model_deploy.internals.replacing import Replace, temporarily

_inputs: contextvars.ContextVar[frozenset[Any]] = contextvars.ContextVar(
    "inputs of custom gradients", default=frozenset()
)


def is_custom_gradient_input(tensor: Any) -> bool:
    """Whether a function of a `tf.custom_gradient` is being called, and was given a tensor.

    Knows it in a block of `making_ops_by`, of functions within functions, too.

    Wraps `custom_gradient._graph_mode_decorator`.

    Args:
      tensor: of any shape.
    """
    return tensor.ref() in _inputs.get()


def replace_decorator(replace: Replace) -> None:
    """Lets calls of functions with custom gradients be noted.

    Args:
      replace: that of `Replacements`.
    """
    replace(custom_gradient, "_graph_mode_decorator", _noting)


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    def _graph_mode_decorator(
        f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        @functools.wraps(f)
        def called(*inputs: Any) -> Any:
            given = tf.nest.flatten(inputs, expand_composites=True)
            with temporarily(_inputs, _inputs.get().union(each.ref() for each in given)):
                return f(*inputs)

        return original(called, args, kwargs)

    return _graph_mode_decorator

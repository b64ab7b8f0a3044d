"""The optimizer that a deployment gets: it makes the calls that a `model_fn` has asked for."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.estimator.recording import Call, transformed

# Clones by all-reduce have variables named like those of the first one.
_OF_CLONE = re.compile(r"^clone_\d+/")


class RecordedUpdate:
    """An optimizer whose variables are updated by the calls that a `model_fn` has made.

    The calls are set by `record`, once the first clone is built: before, nothing is known of them.
    Each optimizer is an attribute, so that clones with variables of their own get copies.
    """

    def __init__(self) -> None:
        self._calls: Sequence[Call] = ()

    def record(self, calls: Sequence[Call]) -> None:
        """Sets the calls, of one `model_fn`."""
        self._calls = calls
        for i, call in enumerate(calls):
            setattr(self, f"optimizer_{i}", call.optimizer)

    @property
    def done(self) -> list[Any]:
        """For each call the op that stands for its update."""
        return [call.done for call in self._calls]

    @property
    def counts(self) -> bool:
        """Whether a call was given the global step."""
        return any(call.counts for call in self._calls)

    def variables_to_train(self) -> list[Any]:
        """The variables of all calls, of any shapes."""
        return [variable for call in self._calls for variable in call.variables]

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> Any:
        """`(gradient, variable)` pairs, as the first optimizer computes them.

        Args:
          loss: a scalar.
          var_list: variables of any shapes.
          **kwargs: for the optimizer's `compute_gradients`.
        """
        settings = {**self._calls[0].settings, **kwargs}
        return self._optimizer(0).compute_gradients(loss, var_list=var_list, **settings)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Makes the updates of all calls, each of its variables; the last one counts.

        Args:
          grads_and_vars: `(gradient, variable)` pairs; a gradient has the variable's shape, or is
            an `IndexedSlices` over its rows.
          global_step: an integer scalar variable; None if it is not to be counted up.
          name: ignored.

        Returns:
          An op.
        """
        del name
        given = {_plain_name(variable): (g, variable) for g, variable in grads_and_vars}
        applied: list[Any] = []
        for i, call in enumerate(self._calls):
            pairs = [given.get(v.op.name, (None, None)) for v in call.variables]
            gradients = transformed(call, [gradient for gradient, _ in pairs])
            variables = [variable for _, variable in pairs]
            counted = global_step if i == len(self._calls) - 1 else None
            with tf.control_dependencies(applied), _within(*call.scopes):
                applied.append(
                    self._optimizer(i).apply_gradients(
                        [
                            (gradient, variable)
                            for gradient, variable in zip(gradients, variables, strict=True)
                            if variable is not None
                        ],
                        global_step=counted,
                    )
                )
        return applied[-1]

    def get_slot(self, variable: Any, name: str) -> Any:
        """The slot of a variable, of its shape; None if no optimizer has one."""
        slots = [each.get_slot(variable, name) for each in self._optimizers()]
        return next((slot for slot in slots if slot is not None), None)

    def get_slot_names(self) -> list[str]:
        """Names of the slots of all optimizers."""
        return sorted({name for each in self._optimizers() for name in each.get_slot_names()})

    def variables(self) -> list[Any]:
        """Variables of all optimizers: scalars, or of the shapes of variables."""
        return [variable for each in self._optimizers() for variable in each.variables()]

    def _optimizers(self) -> list[Any]:
        return [self._optimizer(i) for i in range(len(self._calls))]

    def _optimizer(self, index: int) -> Any:
        return getattr(self, f"optimizer_{index}")


@contextlib.contextmanager
def _within(variable_scope: str, name_scope: str) -> Iterator[None]:
    """In a `with` block variables of optimizers get the names that `model_fn` would give them."""
    with contextlib.ExitStack() as stack:
        if variable_scope:
            stack.enter_context(tf.variable_scope(variable_scope, auxiliary_name_scope=False))
        stack.enter_context(tf.name_scope(f"{name_scope}/" if name_scope else None))
        yield


def _plain_name(variable: Any) -> str:
    return _OF_CLONE.sub("", variable.op.name)

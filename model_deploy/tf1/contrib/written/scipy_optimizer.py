"""`ScipyOptimizerInterface` of `tf.contrib.opt`: variables by `scipy.optimize.minimize`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

_SET_HERE = ("bounds", "callback", "constraints", "jac")
# Methods of SciPy that heed constraints; the others would only warn.
_WITH_CONSTRAINTS = ("COBYLA", "COBYQA", "SLSQP", "TRUST-CONSTR")


class ScipyOptimizerInterface:
    """Minimizes a loss by an algorithm of SciPy, for which the variables are one vector.

    Args:
      loss: scalar.
      var_list: float variables of any shapes; those that are trained by default.
      equalities: scalars that are to be 0.
      inequalities: scalars that are to be at least 0.
      var_to_bounds: variable -> `(low, high)`, numbers or arrays that broadcast to its shape.
      **optimizer_kwargs: further ones of `scipy.optimize.minimize`, such as `method`, which is
        "L-BFGS-B" by default, and `options={"maxiter": 100}`.

    Raises:
      ValueError: for arguments of SciPy that are set here, and for constraints of a method that
        heeds none.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._variables = list(tf.trainable_variables() if var_list is None else var_list)
        self._kwargs = {"method": "L-BFGS-B", **optimizer_kwargs}
        for name in _SET_HERE:
            if name in optimizer_kwargs:
                raise ValueError(f"optimizer_kwargs must be without {name}, which is set here")
        kinds = [("eq", each) for each in equalities or ()]
        kinds += [("ineq", each) for each in inequalities or ()]
        method = self._kwargs["method"]
        if kinds and str(method).upper() not in _WITH_CONSTRAINTS:
            raise ValueError(
                f"method must be one that heeds constraints, such as SLSQP, got {method!r}"
            )
        self._bounds = None if var_to_bounds is None else self._packed_bounds(var_to_bounds)
        with tf.name_scope("scipy_optimizer"):
            self._values = _packed(self._variables)
            self._loss = [loss, self._gradient(loss)]
            self._constraints = [(kind, each, self._gradient(each)) for kind, each in kinds]
            self._given = [tf.placeholder(v.dtype.base_dtype, v.shape) for v in self._variables]
            pairs = zip(self._variables, self._given, strict=True)
            self._assign = tf.group(*(tf.assign(variable, value) for variable, value in pairs))

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Gives the variables the values at which the loss is least.

        Args:
          session: the default one by default.
          feed_dict: for all runs.
          fetches: what `loss_callback` gets, as its arguments.
          step_callback: gets the variables after each step, float64 [n].
          loss_callback: is called whenever the loss was computed.
          **run_kwargs: further ones of `session.run`.
        """
        # Here, as most programs do without.
        from scipy import optimize  # noqa: PLC0415

        session = session or tf.get_default_session()

        def run(tensors: Any, vector: Any) -> Any:
            session.run(self._assign, self._unpacked(vector))
            return session.run(tensors, feed_dict, **run_kwargs)

        def loss_and_gradient(vector: Any) -> tuple[Any, Any]:
            loss, gradient, *others = run([*self._loss, *(fetches or ())], vector)
            if loss_callback is not None:
                loss_callback(*others)
            return loss, gradient

        constraints = [
            {
                "type": kind,
                "fun": lambda vector, value=value: run(value, vector),
                "jac": lambda vector, gradient=gradient: run(gradient, vector),
            }
            for kind, value, gradient in self._constraints
        ]
        result = optimize.minimize(
            loss_and_gradient,
            session.run(self._values),
            jac=True,
            callback=step_callback,
            bounds=self._bounds,
            constraints=constraints,
            **self._kwargs,
        )
        session.run(self._assign, self._unpacked(result.x))
        tf.logging.info("%s: loss %g after %d steps", result.message, result.fun, result.nit)

    def _unpacked(self, vector: Any) -> dict[Any, Any]:
        sizes = [placeholder.shape.num_elements() for placeholder in self._given]
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return {
            placeholder: part.reshape(placeholder.shape.as_list())
            for placeholder, part in zip(self._given, parts, strict=True)
        }

    def _gradient(self, loss: Any) -> Any:
        gradients = tf.gradients(loss, self._variables)
        pairs = zip(gradients, self._variables, strict=True)
        return _packed([tf.zeros_like(v) if g is None else g for g, v in pairs])

    def _packed_bounds(self, bounds: Mapping[Any, tuple[Any, Any]]) -> Any:
        by_name = {variable.op.name: each for variable, each in bounds.items()}
        rows = []
        for variable in self._variables:
            sides = by_name.get(variable.op.name, (-np.inf, np.inf))
            rows.append([np.broadcast_to(s, variable.shape.as_list()).ravel() for s in sides])
        return np.concatenate(rows, axis=1).T


def _packed(values: Sequence[Any]) -> Any:
    """Tensors or variables of any shapes as one vector of float64."""
    return tf.concat([tf.cast(tf.reshape(each, [-1]), tf.float64) for each in values], 0)

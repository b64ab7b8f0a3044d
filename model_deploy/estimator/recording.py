"""What a `model_fn` asks of its optimizers, noted in place of being done."""

import collections
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.estimator import subgraphs


class NotDeployableError(ValueError):
    """Why the `train_op` of a `model_fn` cannot be taken apart into optimizer and loss."""


class Gradients(NamedTuple):
    """What `tf.gradients` has returned.

    Attributes:
      loss: what the gradients are of; a tensor, or a list of them.
      by_variable: name of a variable's op -> its gradient, of the variable's shape or as rows.
    """

    loss: Any
    by_variable: dict[str, Any]


class Call(NamedTuple):
    """A call of an optimizer.

    Attributes:
      optimizer: a `tf.train.Optimizer`.
      loss: the loss, a scalar.
      variables: the variables to update.
      raw: for each variable the gradient that its optimizer was about to compute; with None the
        optimizer gets the gradients as they are.
      applied: for each variable what became of that gradient; None as above.
      counts: whether the call was given the global step.
      settings: for `compute_gradients`.
      done: an op that stands for the update.
      scopes: names of the variable scope, and of the name scope within the clone's.
    """

    optimizer: Any
    loss: Any
    variables: Sequence[Any]
    raw: Sequence[Any] | None
    applied: Sequence[Any] | None
    counts: bool
    settings: dict[str, Any]
    done: Any
    scopes: tuple[str, str]


class Recorder:
    """Notes the calls of optimizers in one call of a `model_fn`, see `OptimizerWatcher`.

    Args:
      of_scales: variables of loss scales by name and number, which the first clone adds: an update
        changes one scale, so all clones have that.

    Attributes:
      calls: the calls, in their order.
    """

    def __init__(self, of_scales: dict[tuple[str, int], Any]) -> None:
        self.calls: list[Call] = []
        self._of_scales = of_scales
        self._num_of_scales: collections.Counter[str] = collections.Counter()
        self._gradients: list[Gradients] = []
        self._scope = tf.get_default_graph().get_name_scope()

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """A `with` block in which optimizers are not called, but noted here."""
        return internals.watching_optimizers(self)

    def minimize(self, optimizer: Any, loss: Any, **kwargs: Any) -> Any:
        """Notes a call of `minimize`; returns the op that stands for the update.

        Raises:
          NotDeployableError: for a loss that is a function, and for `grad_loss`.
        """
        if callable(loss) or kwargs.get("grad_loss") is not None:
            raise NotDeployableError("its optimizer has got a function as loss, or grad_loss")
        variables = kwargs.get("var_list")
        if variables is None:
            variables = tf.trainable_variables()
        names = ("aggregation_method", "colocate_gradients_with_ops")
        settings = {name: kwargs[name] for name in names if kwargs.get(name)}
        variables = tf.nest.flatten(variables)
        return self._note(optimizer, loss, variables, kwargs=kwargs, settings=settings)

    def apply_gradients(self, optimizer: Any, grads_and_vars: Any, **kwargs: Any) -> Any:
        """Notes a call of `apply_gradients`; returns the op that stands for the update.

        Raises:
          NotDeployableError: if the gradients are not of one loss, a scalar.
        """
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        variables = [variable for _, variable in pairs]
        loss, raw = self._sources(pairs)
        applied = [gradient for gradient, _ in pairs]
        return self._note(optimizer, loss, variables, kwargs=kwargs, raw=raw, applied=applied)

    def found_gradients(self, losses: Any, variables: Any, gradients: Sequence[Any]) -> None:
        """Notes gradients of variables."""
        variables = variables if isinstance(variables, list | tuple) else [variables]
        by_variable = {
            op_of(variable).name: gradient
            for variable, gradient in zip(variables, gradients, strict=True)
            if gradient is not None and op_of(variable) is not None
        }
        self._gradients.append(Gradients(losses, by_variable))

    def apply_averages(self, apply: Callable[[], Any]) -> Any:
        """Makes averages of variables, which are no variables of the clone.

        Or nothing, for a clone with copies of variables by all-reduce, which are local.
        """
        local = {id(each) for each in tf.local_variables()}
        if any(id(each) in local for each in tf.trainable_variables()):
            return tf.no_op(name="averages")
        with tf.variable_scope(tf.get_variable_scope(), auxiliary_name_scope=False) as scope:
            scope.set_custom_getter(None)
            return apply()

    def make_of_scale(self, name: str, make: Callable[[], Any]) -> Any:
        """A variable of a loss scale, which has the same name with any number of clones."""
        key = (name, self._num_of_scales[name])
        self._num_of_scales[name] += 1
        if key not in self._of_scales:
            with tf.name_scope(None):
                self._of_scales[key] = make()
        return self._of_scales[key]

    def _note(
        self,
        optimizer: Any,
        loss: Any,
        variables: Sequence[Any],
        *,
        kwargs: dict[str, Any],
        raw: Any = None,
        applied: Any = None,
        settings: dict[str, Any] | None = None,
    ) -> Any:
        if isinstance(optimizer, tf.train.SyncReplicasOptimizer):
            raise NotDeployableError(
                "SyncReplicasOptimizer is TensorFlow's own way; "
                "DeploymentConfig(replicas_to_aggregate=...) is the one of here"
            )
        global_step = kwargs.get("global_step")
        if global_step is not None and global_step is not tf.train.get_global_step():
            raise NotDeployableError("its optimizer counts something else than the global step")
        scope = tf.get_default_graph().get_name_scope().removeprefix(self._scope).strip("/")
        done = tf.no_op(name="update")
        self.calls.append(
            Call(
                optimizer,
                loss,
                variables,
                raw,
                applied,
                global_step is not None,
                settings or {},
                done,
                (tf.get_variable_scope().name, scope),
            )
        )
        return done

    def _sources(self, pairs: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The loss whose gradients these are, and the gradients as they were computed."""
        made = {}
        for gradients in self._gradients:
            for gradient in gradients.by_variable.values():
                made.update({part.ref(): gradients for part in parts_of(gradient)})
        needed = _ends(pairs, made)
        if len({id(made[ref]) for ref in needed}) != 1:
            raise NotDeployableError("its optimizer has got gradients that are not of one loss")
        gradients = made[needed[0]]
        loss = gradients.loss
        if isinstance(loss, list | tuple):
            loss = loss[0] if len(loss) == 1 else None
        if loss is None or loss.shape.rank != 0:
            raise NotDeployableError("its optimizer has got gradients of more than one number")
        raw = [gradients.by_variable.get(variable.op.name) for _, variable in pairs]
        return loss, raw


def check_calls(calls: Sequence[Call], train_op: Any) -> None:
    """Checks that a `train_op` is made of one loss and its optimizers.

    Raises:
      NotDeployableError: if it is not.
    """
    if not calls:
        raise NotDeployableError("it calls no optimizer of tf.train")
    needed = graph_walk.ancestors([op_of(train_op)], control_inputs=True)
    if any(call.done not in needed for call in calls):
        raise NotDeployableError(
            "its train_op does not need the call of an optimizer that it makes"
        )
    names = [variable.op.name for call in calls for variable in call.variables]
    if len(set(names)) < len(names):
        raise NotDeployableError("two of its optimizers update the same variable")
    own = [call for call in calls if internals.computes_gradients_itself(call.optimizer)]
    if own and len(calls) > 1:
        raise NotDeployableError("one of its optimizers computes gradients in its own way")


def losses_of(calls: Sequence[Call]) -> list[Any]:
    """The different losses of calls, each once."""
    return list({call.loss.ref(): call.loss for call in calls}.values())


def loss_of(calls: Sequence[Call]) -> Any:
    """A scalar whose gradient by the variables of each call is that of the call's loss.

    Where the losses differ, as those of networks against each other, it is their sum, of which
    each variable has the gradient of its own loss alone.
    """
    losses = losses_of(calls)
    if len(losses) == 1:
        return losses[0]
    products = []
    for call in calls:
        raw = call.raw
        if raw is None:
            pairs = call.optimizer.compute_gradients(
                call.loss, var_list=call.variables, **call.settings
            )
            raw = [gradient for gradient, _ in pairs]
        for gradient, variable in zip(raw, call.variables, strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                rows = tf.gather(variable, gradient.indices)
                products.append(tf.reduce_sum(tf.stop_gradient(gradient.values) * rows))
            elif gradient is not None:
                products.append(tf.reduce_sum(tf.stop_gradient(gradient) * variable))
    product = tf.add_n(products)
    return product + tf.stop_gradient(tf.add_n(losses) - product)


def parts_of(gradient: Any) -> list[Any]:
    """The tensors of a gradient: itself, or the values and indices of its rows."""
    if isinstance(gradient, tf.IndexedSlices):
        parts = [gradient.values, gradient.indices, gradient.dense_shape]
        return [part for part in parts if part is not None]
    return [gradient]


def transformed(call: Call, gradients: Sequence[Any]) -> list[Any]:
    """What a call makes of the gradients of its variables, of other values than those it had.

    Args:
      call: the call.
      gradients: for each of its variables a gradient, of its shape or as rows; None without.

    Returns:
      The same after all that `model_fn` did between computing and applying gradients.
    """
    if call.raw is None or call.applied is None:
        return list(gradients)
    replaced: dict[Any, Any] = {}
    for raw, gradient in zip(call.raw, gradients, strict=True):
        if raw is not None and gradient is not None:
            parts, others = parts_of(raw), parts_of(_like(raw, gradient))
            # All rows may be of the same tensor of the shape, which stays.
            replaced.update({a.ref(): b for a, b in zip(parts[:2], others[:2], strict=True)})
    ends = [part for gradient in call.applied for part in parts_of(gradient)]
    stop = [part for raw in call.raw if raw is not None for part in parts_of(raw)[:2]]
    ops = subgraphs.between(ends, lambda op: False, stop)
    made = subgraphs.copies_of(ops, replaced)

    def again(part: Any) -> Any:
        copied = made[part.op].outputs[part.value_index] if part.op in made else part
        return replaced.get(part.ref(), copied)

    return [_with_parts(each, [again(part) for part in parts_of(each)]) for each in call.applied]


def _like(raw: Any, gradient: Any) -> Any:
    """A gradient as a tensor, or as rows, as another one is."""
    if isinstance(raw, tf.IndexedSlices) and not isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient, tf.range(tf.shape(gradient)[0]))
    if not isinstance(raw, tf.IndexedSlices) and isinstance(gradient, tf.IndexedSlices):
        return tf.convert_to_tensor(gradient)
    return gradient


def _with_parts(gradient: Any, parts: Sequence[Any]) -> Any:
    """The parts as a gradient of the shape of another, or as any number of rows of its shape."""
    if isinstance(gradient, tf.IndexedSlices):
        parts[0].set_shape([None, *gradient.values.shape[1:]])
        return tf.IndexedSlices(*parts)
    parts[0].set_shape(gradient.shape)
    return parts[0]


def _ends(pairs: Sequence[Any], made: dict[Any, Gradients]) -> list[Any]:
    """Which of the tensors in `made` the gradients of `pairs` come from."""
    found, seen = [], set()
    waiting = [part for gradient, _ in pairs for part in parts_of(gradient)]
    while waiting:
        tensor = waiting.pop()
        if tensor.ref() in seen:
            continue
        seen.add(tensor.ref())
        if tensor.ref() in made:
            found.append(tensor.ref())
        else:
            waiting.extend(tensor.op.inputs)
    return found


def op_of(thing: Any) -> Any:
    """The op of a tensor or variable, or an op itself; None for what has none."""
    return thing if isinstance(thing, tf.Operation) else getattr(thing, "op", None)

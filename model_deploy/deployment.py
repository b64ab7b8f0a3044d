"""`deploy` and `optimize_clones`: from a model function to a train op."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gradients as gradients_lib
from model_deploy import summaries as summaries_lib
from model_deploy.clones import Clone, collect_members, create_clones
from model_deploy.config import DeploymentConfig
from model_deploy.gradients import GradientAndVariable
from model_deploy.losses import Losses, gather_losses


class DeployedModel(NamedTuple):
    """A model that is ready to be trained or evaluated.

    Attributes:
      train_op: runs one step and returns the total loss, a scalar; None without an
        optimizer.
      summary_op: all summaries, a serialized string scalar; None without summaries.
      total_loss: mean of the clones' losses plus what counts once, a scalar.
      clones: the `Clone`s.
    """

    train_op: Any
    summary_op: Any
    total_loss: Any
    clones: list[Clone]


def optimize_clones(
    clones: Sequence[Clone],
    optimizer: Any,
    regularization_losses: Sequence[Any] | None = None,
    **kwargs: Any,
) -> tuple[Any, list[GradientAndVariable]]:
    """Computes the total loss of `clones` and its gradients.

    Each clone's gradients are computed on its device, of its losses divided by the
    number of clones; their sum is that of the total loss.

    Args:
      clones: what `create_clones` returned.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      regularization_losses: scalars to use in place of the graph's
        `REGULARIZATION_LOSSES`; an empty list for none.
      **kwargs: for `optimizer.compute_gradients`, such as `var_list`.

    Returns:
      The total loss, a scalar, and `(gradient, variable)` pairs, sparse gradients as
      `IndexedSlices`.

    Raises:
      ValueError: if there is no clone, no loss, a loss that is not a scalar, or no
        variable with a gradient.
    """
    losses = gather_losses(clones, regularization_losses)
    return losses.total(), _gradients_of_clones(clones, losses, optimizer, kwargs)


def deploy(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    optimizer: Any = None,
    summarize_gradients: bool = False,
    *,
    variables_to_train: Sequence[Any] | Callable[[], Sequence[Any]] | None = None,
    regularization_losses: Sequence[Any] | None = None,
    clip_norm: float | None = None,
    update_ops: Sequence[Any] = (),
    summaries: Sequence[Any] = (),
) -> DeployedModel:
    """Builds clones of a model, and the op that trains them.

    A step computes all gradients, then updates the variables and runs the
    `UPDATE_OPS` of the first clone (batch-norm statistics, say) and those made
    outside `model_fn`.  The loss that it returns is that of the variables before
    the step.

    Args:
      config: which devices.
      model_fn: builds the model and adds its losses to `tf.GraphKeys.LOSSES`.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.
      optimizer: a `tf.compat.v1.train.Optimizer`; without one nothing is trained.
      summarize_gradients: whether to add a summary of each gradient.
      variables_to_train: variables to train, or a function that is called for them when the
        clones have made theirs; all trainable ones if not given.
      regularization_losses: scalars to use in place of the graph's
        `REGULARIZATION_LOSSES`.
      clip_norm: largest joint L2 norm of the summed gradients.
      update_ops: ops to run in each step.  A function is called for its op under the
        updates of the variables, so that the op sees their new values: pass
        `lambda: averages.apply(variables)` for moving averages.
      summaries: summary tensors beside those in `SUMMARIES`.

    Returns:
      A `DeployedModel`.

    Raises:
      ValueError: as `optimize_clones`; if `variables_to_train` is empty, `clip_norm`
        is not more than 0, or the optimizer is of another kind.
      RuntimeError: if TensorFlow executes eagerly.
    """
    _check_optimizer(optimizer)
    if optimizer is not None:
        # First, so that a model that reads it (NASNet does) does not make it in its own scope.
        with tf.device(config.variables_device()):
            tf.train.get_or_create_global_step()
    clones = create_clones(config, model_fn, args, kwargs)
    trained = variables_to_train() if callable(variables_to_train) else variables_to_train
    if trained is not None and not trained:
        raise ValueError("variables_to_train must name at least one variable, got none")
    with tf.device(config.optimizer_device()):
        losses = gather_losses(clones, regularization_losses)
        total_loss = losses.total()
        summaries_lib.add_loss_summaries(clones, losses, total_loss)
        train_op = None
        if optimizer is not None:
            grads = _gradients_of_clones(clones, losses, optimizer, {"var_list": trained})
            if clip_norm is not None:
                grads = gradients_lib.clip_by_global_norm(grads, clip_norm)
            if summarize_gradients:
                summaries_lib.add_gradient_summaries(clones, grads)
            updates = [*update_ops, *_collected_update_ops(clones)]
            train_op = _train_op(optimizer, grads, total_loss, updates)
        summary_op = summaries_lib.merge_summaries(clones, summaries)
    return DeployedModel(train_op, summary_op, total_loss, clones)


def _gradients_of_clones(
    clones: Sequence[Clone], losses: Losses, optimizer: Any, kwargs: Mapping[str, Any]
) -> list[GradientAndVariable]:
    clone_gradients = []
    for i, clone in enumerate(clones):
        terms = losses.terms_of_clone(i)
        if terms:
            with tf.device(clone.device), tf.name_scope(clone.scope):
                loss = tf.add_n(terms, name="loss_to_minimize")
                clone_gradients.append(optimizer.compute_gradients(loss, **kwargs))
    grads = gradients_lib.sum_gradients(clone_gradients)
    if not grads:
        raise ValueError("the loss must depend on at least one variable to train, got none")
    return grads


def _collected_update_ops(clones: Sequence[Clone]) -> list[Any]:
    members = collect_members(tf.GraphKeys.UPDATE_OPS, clones)
    return [*members.clones[0], *members.shared]


def _train_op(
    optimizer: Any,
    grads: Sequence[GradientAndVariable],
    total_loss: Any,
    update_ops: Sequence[Any],
) -> Any:
    # The loss comes first: its forward pass must not read variables half updated.
    with tf.control_dependencies([total_loss]):
        applied = optimizer.apply_gradients(grads, global_step=tf.train.get_global_step())
    updates = [applied, *(op for op in update_ops if not callable(op))]
    with tf.control_dependencies(updates):
        updates += [make_op() for make_op in update_ops if callable(make_op)]
    with tf.control_dependencies(updates):
        return tf.identity(total_loss, name="train_op")


def _check_optimizer(optimizer: Any) -> None:
    if optimizer is not None and not hasattr(optimizer, "compute_gradients"):
        raise ValueError(
            "optimizer must be a tf.compat.v1.train.Optimizer (Keras optimizers work on Keras "
            f"models only), got {type(optimizer).__module__}.{type(optimizer).__name__}"
        )

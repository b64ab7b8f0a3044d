"""`deploy`, `create_clones` and `optimize_clones`: from a model function to a train op."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gpus, graph_walk
from model_deploy import summaries as summaries_lib
from model_deploy.clones import build_clones
from model_deploy.config import DeploymentConfig
from model_deploy.feature import join
from model_deploy.features import features_for
from model_deploy.gradients import GradientAndVariable
from model_deploy.losses import gather_losses
from model_deploy.parts import Clone, features_of
from model_deploy.rotation import Rest
from model_deploy.updating import LossScale
from model_deploy.ways import CloneUpdate, Training, Update, Way, gradients_of_clones, way_for


class _Model(NamedTuple):
    """The fields of TF-Slim's `DeployedModel`, in its order."""

    train_op: Any
    summary_op: Any
    total_loss: Any
    clones: list[Clone]


class DeployedModel(_Model):
    """A model that is ready to be trained or evaluated.

    As a tuple it is TF-Slim's `(train_op, summary_op, total_loss, clones)`.  Attributes beyond
    these four are None, False or empty where the way to train does not have them.

    Attributes:
      config: the deployment; None for a model that `deploy` did not make.
      train_op: runs one step and returns the total loss, a scalar; None without an optimizer.
      summary_op: all summaries, a serialized string scalar; None without summaries.
      total_loss: mean of the clones' losses, plus regularization and losses made outside of
        `model_fn`, a scalar.
      clones: the `Clone`s.
      clone_updates: one `CloneUpdate` per clone if clones are asynchronous; else empty.
      owns_variables: whether each replica has its own variables, as with all-reduce: then every
        replica initializes them, and only the chief restores and saves.
      copies_difference: with all-reduce the largest difference between two copies of a
        variable, a float64 scalar that all replicas must run together; else None.
      is_synchronous: whether all replicas make each step together.
      staleness: how many updates other replicas made between the start of a step and its
        update, an int64 scalar; None where replicas do not update independently, and with
        asynchronous clones (see `CloneUpdate.staleness`).
      global_step: the global step after this step's update, an int64 scalar; None with
        asynchronous clones or all-reduce.  Fetch it, and `staleness`, together with `train_op`.
      computed: the losses and gradients of a step, tensors of any shapes.
      clone_computed: the gradients of each clone if clones are asynchronous.
      exchanged: what is there once this replica's part in the exchange is done: ops or tensors;
        empty where replicas make no update together.
      loss_scale: the loss scale, and the count of updates skipped because of gradients that
        were not finite; None without loss scaling.
      rest: with `rotate_steps` what a step leaves to the next run of `train_op`; `rest.flush` does
        it, before variables are read.  None if nothing is left.
    """

    config: DeploymentConfig | None = None
    clone_updates: Sequence[CloneUpdate] = ()
    owns_variables: bool = False
    copies_difference: Any = None
    is_synchronous: bool = False
    staleness: Any = None
    global_step: Any = None
    computed: Sequence[Any] = ()
    clone_computed: Sequence[Sequence[Any]] = ()
    exchanged: Sequence[Any] = ()
    loss_scale: LossScale | None = None
    rest: Rest | None = None


def create_clones(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> list[Clone]:
    """Calls `model_fn(*args, **kwargs)` once per clone, on the clone's device.

    With `config.accumulate_steps` `model_fn` is called for each part of each clone.  With
    `config.copy_clones` it is called once, and the ops that it built are copied for the other
    clones and parts.

    The first clone makes the variables, on `config.variables_device()`; the other clones reuse
    them.  A device, or part of a device, that `model_fn` names for an op or a variable is kept; but
    `config.stage_device` applies to ops only.  Summaries always go to the worker's CPU.  Losses
    belong into `tf.GraphKeys.LOSSES`, where slim and `tf.losses` put them.

    A variable on a parameter server is sent to the worker once per step for all clones, see
    `shared_reads.share_reads`.

    Args:
      config: the deployment.
      model_fn: builds the model and returns anything.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.

    Returns:
      One `Clone` per clone, or per part where clones have parts, in order of clones.

    Raises:
      RuntimeError: if TensorFlow executes eagerly.
      ValueError: for `config.copy_clones` and a model that cannot be copied; for
        `config.sync_batch_norm` and a batch norm that cannot be synchronized; for `config.xla`
        and a TensorFlow without XLA.
    """
    clones = build_clones(config, model_fn, args, kwargs, features=features_for(config))
    join(clones)
    return clones


def optimize_clones(
    clones: Sequence[Clone],
    optimizer: Any,
    regularization_losses: Sequence[Any] | None = None,
    **kwargs: Any,
) -> tuple[Any, list[GradientAndVariable]]:
    """Computes the total loss of `clones` and its gradients.

    Each clone's gradients are computed on its device, from its losses divided by the number of
    clones; summed over clones they are the gradients of the total loss.

    Args:
      clones: what `create_clones` returned.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      regularization_losses: scalars to use in place of the graph's
        `REGULARIZATION_LOSSES`; an empty list for none.
      **kwargs: keyword arguments of `optimizer.compute_gradients`, such as `var_list`.

    Returns:
      The total loss, a scalar, and `(gradient, variable)` pairs; a gradient has the
      variable's shape, or is an `IndexedSlices` over its rows if it is sparse.

    Raises:
      ValueError: if there is no clone, no loss, a loss that is not a scalar, or no
        variable with a gradient.
    """
    losses = gather_losses(clones, regularization_losses)
    return losses.total(), gradients_of_clones(clones, losses, optimizer, kwargs)


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
    asynchronous: bool = False,
    replicas_to_aggregate: int | None = None,
) -> DeployedModel:
    """Builds the clones of a model and the op that trains them.

    A step computes all gradients, then updates the variables and runs the `UPDATE_OPS` (such as
    batch-norm statistics) of the first clone and those made outside `model_fn`.  The returned
    loss is computed from the variables before the update.

    Args:
      config: the deployment.
      model_fn: builds the model and adds its losses to `tf.GraphKeys.LOSSES`.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.
      optimizer: a `tf.compat.v1.train.Optimizer`; without one nothing is trained.
      summarize_gradients: whether to add a summary of each gradient.
      variables_to_train: variables to train, or a function that returns them, called when all
        clones are built; by default all trainable variables.
      regularization_losses: scalars to use in place of the graph's `REGULARIZATION_LOSSES`.
      clip_norm: largest joint L2 norm of the summed gradients.
      update_ops: ops to run in each step.  Ops that must see the updated variables are passed as
        functions, called under control dependencies on the updates: for moving averages
        `lambda: averages.apply(variables)`.
      summaries: summary tensors, serialized string scalars, beside those in `SUMMARIES`.
      asynchronous: let each clone update the variables by itself, see
        `DeployedModel.clone_updates`; `train_op` then makes one update per clone.
      replicas_to_aggregate: make each update from the gradients of so many replicas, the fastest
        ones; sessions need the hooks of `session_hooks`.  By default each replica makes its
        own updates, and with `config.global_parts` all replicas make each update together.

    Returns:
      A `DeployedModel`.

    Raises:
      ValueError: as `optimize_clones`; if `variables_to_train` is empty, `clip_norm` is not
        more than 0, `optimizer` is not an optimizer of TensorFlow 1, or settings name two ways to
        train at once.
      RuntimeError: if TensorFlow executes eagerly.
    """
    _check_optimizer(optimizer)
    config = _with_way(config, asynchronous, replicas_to_aggregate)
    way = way_for(config)
    model_fn = way.around_model(model_fn)
    loss_scale = None
    if optimizer is None:
        clones = create_clones(config, model_fn, args, kwargs)
    else:
        _create_global_step(way)
        loss_scale = _create_loss_scale(way)
        clones = build_clones(config, model_fn, args, kwargs, features=features_for(config))
    trained = _variables(variables_to_train)
    with graph_walk.new_ops() as others, tf.device(config.optimizer_device()):
        losses = gather_losses(clones, regularization_losses)
        total_loss = losses.total()
        summaries_lib.add_loss_summaries(clones, losses, total_loss)
        update = Update()
        if optimizer is not None:
            training = Training(
                clones=clones,
                losses=losses,
                total_loss=total_loss,
                optimizer=optimizer,
                variables_to_train=trained,
                clip_norm=clip_norm,
                update_ops=update_ops,
                regularization_losses=regularization_losses,
                loss_scale=loss_scale,
            )
            update = way.update(training)
            for feature in features_of(clones):
                feature.after_update(update.computed)
            if summarize_gradients:
                summaries_lib.add_gradient_summaries(clones, update.gradients)
        summary_op = summaries_lib.merge_summaries(clones, summaries)
        if summary_op is not None:
            way.make_fetchable(summary_op.op)
    for feature in features_of(clones):
        feature.finish(others)
    model = DeployedModel(update.train_op, summary_op, total_loss, clones)
    model.config, model.loss_scale = config, loss_scale
    model.owns_variables, model.is_synchronous = way.owns_variables, way.is_synchronous
    model.clone_updates, model.copies_difference = update.clone_updates, update.copies_difference
    model.staleness, model.global_step = update.staleness, update.global_step
    model.computed, model.clone_computed = update.computed, update.clone_computed
    model.exchanged, model.rest = update.exchanged, update.rest
    return model


def session_config(config: DeploymentConfig, base: Any = None) -> Any:
    """Returns a `tf.ConfigProto` with all options that sessions and servers of a deployment need.

    Args:
      config: the deployment.
      base: a `tf.ConfigProto` to copy and extend; by default an empty one.
    """
    proto = gpus.session_config(config, on_cpu=config.clone_on_cpu, base=base)
    way_for(config).set_up_session(proto)
    for feature in features_for(config):
        feature.set_up_session(proto)
    return proto


def batches_taken(config: DeploymentConfig) -> Any:
    """Returns how many batches each clone (or part) has taken, to resume `train_batches` there.

    The count is the global step plus, with loss scaling, the steps whose update was skipped.  It is
    right for a single replica and for replicas that make each step together.

    Args:
      config: the deployment.

    Returns:
      An int64 scalar computed from variables that checkpoints save.
    """
    way = way_for(config)
    _create_global_step(way)
    step = tf.train.get_global_step().read_value()
    loss_scale = _create_loss_scale(way)
    if loss_scale is None:
        return step
    _, num_left_out, _ = loss_scale.state()
    return tf.add(tf.cast(step, tf.int64), num_left_out, name="batches_taken")


def _with_way(
    config: DeploymentConfig, asynchronous: bool, replicas_to_aggregate: int | None
) -> DeploymentConfig:
    """Returns the config with the way to train that arguments of `deploy` ask for."""
    named: dict[str, Any] = {"asynchronous": True} if asynchronous else {}
    if replicas_to_aggregate is not None:
        named["replicas_to_aggregate"] = replicas_to_aggregate
    return dataclasses.replace(config, **named) if named else config


def _variables(variables_to_train: Sequence[Any] | Callable[[], Sequence[Any]] | None) -> Any:
    """Returns the variables to train, calling `variables_to_train` if it is a function."""
    trained = variables_to_train() if callable(variables_to_train) else variables_to_train
    if trained is not None and not trained:
        raise ValueError("variables_to_train must name at least one variable, got none")
    return trained


def _create_global_step(way: Way) -> None:
    # Before the model: a model that reads the step (NASNet does) would make it in its own scope.
    with tf.device(way.state_device()):
        tf.train.get_or_create_global_step()


def _create_loss_scale(way: Way) -> LossScale | None:
    if way.config.scales_losses_by is None:
        return None
    with tf.device(way.config.optimizer_device()):
        return LossScale(way.config.scales_losses_by, way.state_device())


def _check_optimizer(optimizer: Any) -> None:
    if optimizer is not None and not hasattr(optimizer, "compute_gradients"):
        raise ValueError(
            "optimizer must be a tf.compat.v1.train.Optimizer (Keras optimizers work on Keras "
            f"models only), got {type(optimizer).__module__}.{type(optimizer).__name__}"
        )

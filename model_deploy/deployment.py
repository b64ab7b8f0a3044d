"""`deploy` and `optimize_clones`: from a model function to a train op."""

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

    As a tuple it is `(train_op, summary_op, total_loss, clones)`; old code unpacks it.
    The other attributes are those of the way in which it is trained.

    Attributes:
      config: the deployment; None for a model that `deploy` did not make.
      train_op: runs one step and returns the total loss, a scalar; None without an
        optimizer.
      summary_op: all summaries, a serialized string scalar; None without summaries.
      total_loss: mean of the clones' losses plus what counts once, a scalar.
      clones: the `Clone`s.
      clone_updates: with asynchronous clones one `CloneUpdate` for each; else empty.
      owns_variables: whether each replica has variables of its own: with all-reduce.
        Then every replica initializes them, and only the chief restores and saves.
      copies_difference: with all-reduce the largest difference between two copies of a
        variable, a float64 scalar that all replicas run together; else None.
      is_synchronous: whether all replicas make each step together.
      staleness: how many updates other replicas made between the start of a step and its
        update, an int64 scalar; None where no other one updates by itself, and with
        asynchronous clones, each of which has its own.
      global_step: number of updates after that of a step, an int64 scalar; None with
        asynchronous clones or all-reduce.  Fetch both together with `train_op`.
      loss_scale: the scale of the losses, and the count of updates that were left out as their
        gradients were not finite; None where losses are not scaled.
    """

    config: DeploymentConfig | None = None
    clone_updates: Sequence[CloneUpdate] = ()
    owns_variables: bool = False
    copies_difference: Any = None
    is_synchronous: bool = False
    staleness: Any = None
    global_step: Any = None
    loss_scale: LossScale | None = None


def create_clones(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> list[Clone]:
    """Calls `model_fn(*args, **kwargs)` once per clone, on the clone's device.

    With `config.accumulate_steps` it calls it for each part of each clone.  With
    `config.copy_clones` it calls it for the first clone (and part), and copies what that
    has built for the others.

    The first clone makes the variables, on `config.variables_device()`; the others
    reuse them.  Where `model_fn` names a device, or a part of one, for an op or a
    variable, that part is kept; but `config.stage_device`, where clones have several
    devices, is for ops only.  Summaries always go to the worker's CPU.  Losses
    belong into `tf.GraphKeys.LOSSES`, where slim and `tf.losses` put them.

    A variable on a parameter server comes to the worker once per step for all clones, see
    `shared_reads.share_reads`.

    Args:
      config: the deployment.
      model_fn: builds the model and returns anything.
      args: positional arguments of `model_fn`.
      kwargs: keyword arguments of `model_fn`.

    Returns:
      One `Clone` per clone, in order; where clones have parts one per part, those of the
      first clone first.

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

    Each clone's gradients are computed on its device, of its losses divided by the
    number of clones; their sum is that of the total loss.

    Args:
      clones: what `create_clones` returned.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      regularization_losses: scalars to use in place of the graph's
        `REGULARIZATION_LOSSES`; an empty list for none.
      **kwargs: for `optimizer.compute_gradients`, such as `var_list`.

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
      summaries: summary tensors, serialized string scalars, beside those in `SUMMARIES`.
      asynchronous: let each clone update the variables by itself, see
        `DeployedModel.clone_updates`; `train_op` is then one update of every clone.
      replicas_to_aggregate: make one update of the gradients of that many replicas, the
        fastest ones; sessions need the hooks of `session_hooks`.  By default each
        replica makes its own updates, and with `config.global_parts` all make one together.

    Returns:
      A `DeployedModel`.

    Raises:
      ValueError: as `optimize_clones`; if `variables_to_train` is empty, `clip_norm`
        is not more than 0, the optimizer is of another kind, or two ways to train are
        asked for at once.
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
    return model


def session_config(config: DeploymentConfig, base: Any = None) -> Any:
    """A `tf.ConfigProto` with all that the sessions and servers of a deployment need.

    Args:
      config: the deployment.
      base: a `tf.ConfigProto` to start from, which is not changed; an empty one if not given.
    """
    proto = gpus.session_config(config, on_cpu=config.clone_on_cpu, base=base)
    way_for(config).set_up_session(proto)
    for feature in features_for(config):
        feature.set_up_session(proto)
    return proto


def batches_taken(config: DeploymentConfig) -> Any:
    """How many batches each clone (or part) has taken, for the position of `inputs.train_batches`.

    That is the global step, and where losses are scaled also the steps whose update was left out.
    It is for replicas that make their steps together, or one alone.

    Args:
      config: the deployment.

    Returns:
      An int64 scalar, which checkpoints restore.
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
    """The config with the way to train that arguments of `deploy` name."""
    named: dict[str, Any] = {"asynchronous": True} if asynchronous else {}
    if replicas_to_aggregate is not None:
        named["replicas_to_aggregate"] = replicas_to_aggregate
    return dataclasses.replace(config, **named) if named else config


def _variables(variables_to_train: Sequence[Any] | Callable[[], Sequence[Any]] | None) -> Any:
    """The variables to train, which a function names once the clones have made theirs."""
    trained = variables_to_train() if callable(variables_to_train) else variables_to_train
    if trained is not None and not trained:
        raise ValueError("variables_to_train must name at least one variable, got none")
    return trained


def _create_global_step(way: Way) -> None:
    # Before the model, so that one that reads it (NASNet does) does not make it in its scope.
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

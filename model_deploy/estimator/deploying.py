"""`deployed`: a `model_fn` of Estimator that trains by the ways of a `DeploymentConfig`."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.checkpoints import variables_to_save
from model_deploy.clones import collect_members
from model_deploy.config import DeploymentConfig
from model_deploy.deployment import DeployedModel, deploy
from model_deploy.estimator.batches import Batches
from model_deploy.estimator.recording import (
    Call,
    NotDeployableError,
    Recorder,
    check_calls,
    loss_of,
    losses_of,
    op_of,
)
from model_deploy.estimator.regularizers import Regularizers
from model_deploy.estimator.updates import RecordedUpdate
from model_deploy.gradients import standing_in
from model_deploy.hooks import session_hooks
from model_deploy.op_types import is_assignment
from model_deploy.optimization import has_tables

ModelFn = Callable[..., Any]
# `ModeKeys.TRAIN`.
_TRAIN = "train"
_ADDITIONS = ("AssignAdd", "AssignAddVariableOp")


class Deployed(NamedTuple):
    """A `model_fn` and its deployment, see `deployed`."""

    model_fn: ModelFn
    config: DeploymentConfig


def deployed(model_fn: ModelFn, config: DeploymentConfig) -> ModelFn:
    """A `model_fn` for `Estimator` that trains another one as a deployment.

        estimator = Estimator(deployed(model_fn, DeploymentConfig(num_clones=2)), model_dir)

    In training `model_fn` is called once for each clone, and each time gets the next batch of
    `input_fn`: with n clones and batches of b examples a step is that of one clone and batches of
    n * b, if the loss is a mean over its batch.  (A sum, as the canned classes have by default, is
    averaged over the clones.)  Its `train_op` is taken apart: calls of optimizers are noted in
    place of being made, and `deploy` makes the update, once, from the gradients of all clones.
    What `model_fn` does to gradients before it applies them, such as clipping, is done to their
    sum.  What else its `train_op` needs comes before or after the update as it is written, and
    counts for the first clone; so do hooks, scaffold and predictions.  Evaluation and prediction
    are those of `model_fn`.

    Where the `train_op` cannot be taken apart, a line says why, and Estimator trains it by itself.

    Args:
      model_fn: as for `Estimator`, of features and labels of any shapes, with an argument `mode`;
        its optimizers are of `tf.train`, and its loss is a scalar.
      config: the deployment.  In a cluster, which `RunConfig` has from `TF_CONFIG`, the replicas
        and parameter servers are those of the cluster.

    Raises:
      ValueError: if the config is none, or `model_fn` does not take `mode`.
    """
    if not isinstance(config, DeploymentConfig):
        raise ValueError(f"config must be a DeploymentConfig, got {config!r}")
    signature = inspect.signature(model_fn)
    if "mode" not in signature.parameters:
        raise ValueError(
            f"model_fn must have an argument mode, got {list(signature.parameters)} of {model_fn!r}"
        )

    def deployed_model_fn(features: Any, **kwargs: Any) -> Any:
        if kwargs["mode"] != _TRAIN:
            return model_fn(features=features, **kwargs)
        return _training_spec(Deployed(model_fn, config), features, kwargs)

    functools.update_wrapper(deployed_model_fn, getattr(model_fn, "func", model_fn))
    deployed_model_fn.__dict__.update(__signature__=signature, deployed=Deployed(model_fn, config))
    return deployed_model_fn


def _training_spec(model: Deployed, features: Any, kwargs: dict[str, Any]) -> Any:
    """The spec of a deployment's training.

    Raises:
      NotDeployableError: if the `train_op` of `model_fn` cannot be taken apart.
    """
    update = RecordedUpdate()
    specs: list[Any] = []
    of_scales: dict[tuple[str, int], Any] = {}
    regularizers = Regularizers()

    def build(batches: Iterator[Any], model_fn: ModelFn) -> Any:
        recorder = Recorder(of_scales)
        batch_features, labels = next(batches)
        given = {**kwargs, "labels": labels} if "labels" in kwargs else kwargs
        with _own_losses(recorder), regularizers.of_part(), recorder.recording(), standing_in():
            spec = model_fn(features=batch_features, **given)
            check_calls(recorder.calls, spec.train_op)
            _check_precision(recorder.calls, model.config)
        if not specs:
            update.record(recorder.calls)
            _check_counting(update.counts, spec.train_op, model.config)
        specs.append(spec)
        return spec.loss

    batches = Batches(features, kwargs.get("labels"))
    with tf.device(None):
        deployment = deploy(
            model.config,
            build,
            [batches, model.model_fn],
            optimizer=update,
            variables_to_train=update.variables_to_train,
            regularization_losses=[],
        )
        losses = [clone.outputs for clone in deployment.clones]
        with tf.device(model.config.optimizer_device()):
            loss = losses[0] if len(losses) == 1 else tf.add_n(losses) / len(losses)
    _put_update(update, deployment, specs[0].train_op)
    scope = deployment.clones[0].scope
    _let_names_be_in(scope)
    members = collect_members(tf.GraphKeys.SUMMARIES, deployment.clones)
    _take_scope_from_tags(members.clones[0], scope)
    tf.get_collection_ref(tf.GraphKeys.SUMMARIES)[:] = [*members.clones[0], *members.shared]
    _add_saver(specs[0].scaffold, kwargs.get("config"))
    return specs[0]._replace(
        loss=loss,
        train_op=_own_train_op(specs[0].train_op, deployment),
        training_hooks=(*session_hooks(), *specs[0].training_hooks),
        scaffold=_scaffold(specs[0].scaffold, deployment),
    )


@contextlib.contextmanager
def _own_losses(recorder: Recorder) -> Iterator[None]:
    """In a `with` block the collection `LOSSES` is empty; then it has what was there, and one more.

    That is the loss which the recorded optimizers were to minimize.
    """
    losses = tf.get_collection_ref(tf.GraphKeys.LOSSES)
    before = list(losses)
    losses.clear()
    try:
        yield
        before.append(tf.identity(loss_of(recorder.calls), name="loss_of_clone"))
    finally:
        losses[:] = before


def _check_precision(calls: Sequence[Call], config: DeploymentConfig) -> None:
    """Checks that a loss scale reaches the gradients of all calls.

    Raises:
      NotDeployableError: if it does not.
    """
    if config.precision == "float16" and len(losses_of(calls)) > 1:
        raise NotDeployableError(
            "its optimizers have different losses, whose gradients would be computed in float16 "
            "without a loss scale; bfloat16 needs none"
        )


def _check_counting(is_counted: bool, train_op: Any, config: DeploymentConfig) -> None:
    """Checks that a `train_op` counts its steps in a way that is known.

    Raises:
      NotDeployableError: if it does not.
    """
    found = [] if is_counted else _countings(train_op)
    if is_counted or [op.type for op in found if op.type in _ADDITIONS]:
        return
    if not found:
        raise NotDeployableError("its train_op does not count the global step")
    if config.num_replicas > 1:
        raise NotDeployableError(
            "its train_op assigns to the global step, which several replicas count; "
            "tf.assign_add would do"
        )


def _countings(train_op: Any) -> list[Any]:
    """The ops of a `train_op` that change the global step."""
    step = tf.train.get_global_step().op.name
    needed = graph_walk.ancestors([op_of(train_op)], control_inputs=True)
    return [op for op in needed if is_assignment(op.type) and op.inputs[0].op.name == step]


def _put_update(update: RecordedUpdate, model: DeployedModel, train_op: Any) -> None:
    """Lets the update be made where `model_fn` has called its optimizers, in its `train_op`."""
    # The update counts the global step. What `model_fn` counts adds nothing to it, then.
    countings = [] if update.counts else _countings(train_op)
    for done in update.done:
        internals.add_control_inputs(done, [model.train_op.op])
    for op in countings:
        step = tf.train.get_global_step()
        with tf.device(op.device), tf.control_dependencies([model.train_op]):
            value = step.read_value()
            if op.type in _ADDITIONS:
                value = tf.zeros_like(value)
            internals.replace_input(op, 1, value)


def _let_names_be_in(scope: str) -> None:
    """Lets names that the default graph does not have be those of what is in a name scope.

    Hooks name tensors as they are called without clones; all look-ups call `as_graph_element`.
    """
    graph = tf.get_default_graph()
    find = graph.as_graph_element

    def found(obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        try:
            return find(obj, allow_tensor, allow_operation)
        except KeyError:
            if isinstance(obj, str):
                with contextlib.suppress(KeyError):
                    return find(f"{scope}{obj}", allow_tensor, allow_operation)
            raise

    if scope:
        graph.as_graph_element = found


def _take_scope_from_tags(summaries: Sequence[Any], scope: str) -> None:
    """Lets summaries have the tags that they have without clones."""
    for summary in summaries:
        tag = tf.get_static_value(summary.op.inputs[0])
        text = tf.compat.as_text(tag.item()) if tag is not None and tag.ndim == 0 else ""
        if scope and text.startswith(scope):
            with tf.device(summary.device):
                internals.replace_input(summary.op, 0, tf.constant(text.removeprefix(scope)))


def _own_train_op(train_op: Any, model: DeployedModel) -> Any:
    """What this replica runs: of synchronous ones with common variables the first alone does all.

    Moving averages that follow the update, say, would be made once by each replica.
    """
    follows = model.config is not None and model.config.replica_id > 0
    shares = model.is_synchronous and not model.owns_variables
    return model.train_op if follows and shares else train_op


def _add_saver(scaffold: Any, run_config: Any) -> None:
    """Makes Estimator save tables that are trained by rows as the dense optimizer has them.

    Adds to the collection `SAVERS`, in place of Estimator itself, unless the model has a saver.
    """
    has_saver = tf.get_collection(tf.GraphKeys.SAVERS) or (scaffold and scaffold.saver)
    if has_saver or not has_tables():
        return
    saver = tf.train.Saver(
        variables_to_save(),
        sharded=True,
        # That of `RunConfig`, which a `model_fn` gets that takes `config`.
        max_to_keep=run_config.keep_checkpoint_max if run_config else 5,
        save_relative_paths=True,
    )
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)


def _scaffold(scaffold: Any, model: DeployedModel) -> Any:
    """The scaffold of a spec, for replicas that have variables of their own.

    One that is not the chief initializes them by itself, in place of waiting for the chief.
    """
    if not model.owns_variables or model.config is None or model.config.replica_id == 0:
        return scaffold
    ready = tf.constant([], tf.string)
    # Local variables come after: clones' copies start from the values of the global ones.
    with tf.control_dependencies([tf.global_variables_initializer()]):
        initialized = tf.identity(ready)
    local_init_op = getattr(scaffold, "local_init_op", None)
    if local_init_op is None:
        local_init_op = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
    return tf.train.Scaffold(
        ready_op=ready,
        ready_for_local_init_op=initialized,
        local_init_op=local_init_op,
        copy_from_scaffold=scaffold,
    )

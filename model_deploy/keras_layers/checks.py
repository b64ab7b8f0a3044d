"""Keras layers that clones in a graph cannot train: each is an error that names it."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.config import DeploymentConfig


def check_layer(layer: Any, config: DeploymentConfig, *, is_outermost: bool) -> None:
    """Checks a layer that is about to be called in `model_fn`.

    Args:
      layer: of Keras 3 or tf-keras.
      config: the deployment.
      is_outermost: whether it is called by `model_fn` itself; then its sublayers are checked too.

    Raises:
      ValueError: naming the layer, what is wrong and what to do.
    """
    name = f"the {type(layer).__name__} {layer.name!r}"
    backend = internals.keras_backend(layer)
    if backend != "tensorflow":
        raise ValueError(
            f"Keras in model_fn must have the backend 'tensorflow', got {backend!r} for "
            f"{name}; set KERAS_BACKEND=tensorflow before keras is imported"
        )
    if is_outermost:
        if internals.works_eagerly_only(layer):
            raise ValueError(
                f"a layer in model_fn must work in a graph, got {name} with dynamic=True; write "
                "its call with TensorFlow's ops alone, without dynamic=True"
            )
        if getattr(layer, "run_eagerly", False):
            raise ValueError(
                f"a model in model_fn must work in a graph, got {name} with run_eagerly=True; "
                "compile it without, or do not compile it at all"
            )
    copies = config.batches_per_step * config.num_replicas
    if copies > 1 and internals.calls_itself_stateful(layer):
        raise ValueError(
            f"a layer must not be stateful with {copies} clones, each of which would need a state "
            f"of its own, got {name} with stateful=True; set stateful=False, or train one clone "
            "with num_clones=1, accumulate_steps=1 and num_replicas=1"
        )


def check_graph(variable: Any, name: str) -> None:
    """Checks that a variable of a layer is in the graph of the clones.

    Args:
      variable: of any shape; None if it has not been made yet.
      name: of the layer.

    Raises:
      ValueError: if it is not.
    """
    graph = getattr(variable, "graph", None)
    if variable is None or graph is tf.get_default_graph():
        return
    where = "another graph" if isinstance(graph, tf.Graph) else "eager mode"
    raise ValueError(
        "a Keras model must be made in the graph of its clones, got the variable "
        f"{variable.name} of {name!r} made in {where}; make it in model_fn, or before, within "
        "`with graph.as_default(), tf.device(config.variables_device())`"
    )


def check_assigned(trained: Sequence[str], config: DeploymentConfig) -> None:
    """Checks what layers assign to, beside the update of several replicas that the chief makes.

    Args:
      trained: the names of the trained variables that layers assign to.
      config: the deployment.

    Raises:
      ValueError: if each replica would assign to a variable that the chief updates.
    """
    if trained and config.num_aggregated is not None:
        raise ValueError(
            "a layer must not assign to a variable that is trained with replicas_to_aggregate, "
            f"got {trained[0]} assigned; train replicas by all-reduce, or asynchronously, or "
            "without this layer"
        )

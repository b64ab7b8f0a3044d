"""What the settings of a deployment make of its step, in words."""

from collections.abc import Collection
from typing import Any, TypedDict

from model_deploy.clones import batch_norms
from model_deploy.deployment import DeployedModel
from model_deploy.rewrites import describe_layout, describe_types


class Notes(TypedDict, total=False):
    """Lines by the attributes of `PlacementReport`; '' for what is as it is by default."""

    accumulation: str
    batch_norm: str
    layout: str
    precision: str
    wire: str


def describe_settings(model: DeployedModel, ops: Collection[Any]) -> Notes:
    """One line for each setting that changes a step, by the name of the report's attribute.

    Args:
      model: what `deploy` returned.
      ops: those of its step.

    Returns:
      All the lines.
    """
    config = model.config
    return {
        "accumulation": _accumulation(model),
        "batch_norm": _batch_norm(model),
        "layout": "" if config is None else describe_layout(ops, config.data_format),
        "precision": "" if config is None else describe_types(ops, config.precision),
        "wire": _wire(model),
    }


def _accumulation(model: DeployedModel) -> str:
    config = model.config
    if config is None or config.accumulate_steps == 1:
        return ""
    num_batches = config.accumulate_steps if model.clone_updates else config.batches_per_step
    return (
        f"accumulate_steps {config.accumulate_steps}: an update of {num_batches} batches, "
        f"{config.accumulate_steps} of each clone, one after the other"
    )


def _batch_norm(model: DeployedModel) -> str:
    config, norms = model.config, batch_norms(model.clones)
    if config is None or norms is None or config.batch_norm_clones == 1:
        return ""
    over = f"{config.batch_norm_clones} clones"
    if config.all_reduce and config.num_replicas > 1:
        over += f" of {config.num_replicas} replicas"
    return f"sync_batch_norm: mean and variance of {norms.num_layers} batch norms are over {over}"


def _wire(model: DeployedModel) -> str:
    config = model.config
    if config is None or config.wire_precision == "float32" or model.train_op is None:
        return ""
    what = "gradients" if config.all_reduce else "gradients and trained variables"
    return (
        f"wire_precision {config.wire_precision}: {what} of float32 are rounded to it between "
        "processes, and summed in float32"
    )

"""Describes the settings that change a step."""

from collections.abc import Collection
from typing import Any

from model_deploy.deployment import DeployedModel
from model_deploy.parts import features_of
from model_deploy.ways import way_for


def describe_settings(model: DeployedModel, ops: Collection[Any]) -> dict[str, str]:
    """Returns one line per setting that changes a step, by attribute name of the report.

    Args:
      model: what `deploy` returned.
      ops: the ops of the model's step.
    """
    lines = {"accumulation": _accumulation(model), "wire": _wire(model)}
    for feature in features_of(model.clones):
        lines |= feature.describe(ops)
    return lines


def _accumulation(model: DeployedModel) -> str:
    config = model.config
    if config is None or config.accumulate_steps == 1:
        return ""
    num_batches = config.accumulate_steps if model.clone_updates else config.batches_per_step
    return (
        f"accumulate_steps {config.accumulate_steps}: an update of {num_batches} batches, "
        f"{config.accumulate_steps} of each clone, one after the other"
    )


def _wire(model: DeployedModel) -> str:
    config = model.config
    if config is None or config.wire_precision == "float32" or model.train_op is None:
        return ""
    return (
        f"wire_precision {config.wire_precision}: {way_for(config).describe_wire()} of float32 are "
        "rounded to it between processes, and summed in float32"
    )

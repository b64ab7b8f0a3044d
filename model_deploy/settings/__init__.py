"""Settings of a deployment in groups: frozen dataclasses of plain values, each checked."""

from model_deploy.settings.arithmetic import (
    DYNAMIC,
    PRECISIONS,
    WIRE_PRECISIONS,
    ArithmeticSettings,
    check_loss_scale,
)
from model_deploy.settings.clones import CloneSettings
from model_deploy.settings.elastic import ElasticSettings
from model_deploy.settings.gpus import AGGREGATE_ON, DATA_FORMATS, GpuSettings
from model_deploy.settings.way import PS_STRATEGIES, WaySettings

__all__ = [
    "AGGREGATE_ON",
    "DATA_FORMATS",
    "DYNAMIC",
    "PRECISIONS",
    "PS_STRATEGIES",
    "WIRE_PRECISIONS",
    "ArithmeticSettings",
    "CloneSettings",
    "ElasticSettings",
    "GpuSettings",
    "WaySettings",
    "check_loss_scale",
]

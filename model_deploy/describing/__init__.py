"""Describes a deployment in words, as a table, and as a picture."""

from model_deploy.describing.picture import draw_deployment
from model_deploy.describing.report import DeviceRow, PlacementReport, TransferRow, describe

__all__ = [
    "DeviceRow",
    "PlacementReport",
    "TransferRow",
    "describe",
    "draw_deployment",
]

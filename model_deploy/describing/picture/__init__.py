"""Draws a placement report: devices, what is on each, and the transfers of a step."""

from model_deploy.describing.picture.drawing import draw_deployment

__all__ = ["draw_deployment"]

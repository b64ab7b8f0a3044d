"""A picture of a placement report: devices, what lies on each, and what moves in a step."""

from model_deploy.describing.picture.drawing import draw_deployment

__all__ = ["draw_deployment"]

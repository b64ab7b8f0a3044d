"""Models that compute with the channels in front, however they are written."""

from model_deploy.rewrites.layouts.making import computing_in_layout
from model_deploy.rewrites.layouts.report import describe_layout

__all__ = ["computing_in_layout", "describe_layout"]

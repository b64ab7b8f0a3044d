"""Models that compute with the channels in front, however they are written."""

from model_deploy.rewrites.layouts.feature import Layout
from model_deploy.rewrites.layouts.making import computing_in_layout

__all__ = ["Layout", "computing_in_layout"]

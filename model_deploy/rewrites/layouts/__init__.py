"""Models that compute with channels first, whatever layout `model_fn` uses."""

from model_deploy.rewrites.layouts.feature import Layout
from model_deploy.rewrites.layouts.making import computing_in_layout

__all__ = ["Layout", "computing_in_layout"]

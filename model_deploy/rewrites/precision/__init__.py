"""Models that compute in 16 bits, with variables of 32."""

from model_deploy.rewrites.precision.computing import computing_in
from model_deploy.rewrites.precision.report import describe_types

__all__ = ["computing_in", "describe_types"]

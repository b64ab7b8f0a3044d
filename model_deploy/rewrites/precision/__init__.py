"""Models that compute in 16 bits with float32 variables."""

from model_deploy.rewrites.precision.computing import computing_in
from model_deploy.rewrites.precision.feature import Precision

__all__ = ["Precision", "computing_in"]

"""Models that compute in 16 bits, with variables of 32."""

from model_deploy.precision.computing import computing_in
from model_deploy.precision.op_types import PRECISIONS, check_precision
from model_deploy.precision.report import describe_types

__all__ = ["PRECISIONS", "check_precision", "computing_in", "describe_types"]

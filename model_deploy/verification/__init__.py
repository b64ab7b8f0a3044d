"""Steps that are made twice from the same values and batches, and compared to the last bit."""

from model_deploy.verification.corruption import CorruptionError
from model_deploy.verification.verification import Verification

__all__ = ["CorruptionError", "Verification"]

"""Clones by copy: `model_fn` is called once, and its graph stamped for the other clones."""

from model_deploy.copying.model import CopiedModel
from model_deploy.copying.stamping import calls_functions
from model_deploy.copying.twins import Twins

__all__ = [
    "CopiedModel",
    "Twins",
    "calls_functions",
]

"""Clones by copy: `model_fn` is called once, and its ops are copied for the other clones."""

from model_deploy.copying.feature import Copies

__all__ = ["Copies"]

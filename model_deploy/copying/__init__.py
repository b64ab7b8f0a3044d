"""Clones by copy: `model_fn` is called once, and its graph stamped for the other clones."""

from model_deploy.copying.feature import Copies

__all__ = ["Copies"]

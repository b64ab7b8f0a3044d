"""Ops rewritten as `model_fn` makes them: 16 bits, channels first, synchronized batch norm, XLA."""

from model_deploy.rewrites.batch_norm import BatchNorms
from model_deploy.rewrites.compilation import Compilation, describe_compilation
from model_deploy.rewrites.layouts import Layout, computing_in_layout
from model_deploy.rewrites.precision import Precision, computing_in

__all__ = [
    "BatchNorms",
    "Compilation",
    "Layout",
    "Precision",
    "computing_in",
    "computing_in_layout",
    "describe_compilation",
]

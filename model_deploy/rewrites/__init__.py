"""Ops made otherwise than `model_fn` asks: 16 bits, channels first, sums over clones, XLA."""

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

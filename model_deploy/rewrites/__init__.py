"""Ops made in another way than `model_fn` asks for: 16 bits, channels first, sums over clones, XLA."""

from model_deploy.rewrites import compilation
from model_deploy.rewrites.batch_norm import BatchNorms, computing_gradients
from model_deploy.rewrites.layouts import computing_in_layout, describe_layout
from model_deploy.rewrites.precision import computing_in, describe_types

__all__ = [
    "BatchNorms",
    "compilation",
    "computing_gradients",
    "computing_in",
    "computing_in_layout",
    "describe_layout",
    "describe_types",
]

"""Batch norms that take mean and variance over all clones, as one would on the whole batch."""

from model_deploy.rewrites.batch_norm.norms import BatchNorms

__all__ = ["BatchNorms"]

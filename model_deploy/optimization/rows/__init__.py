"""Optimizers whose steps cost the rows that they touch, and that are equal to the dense ones."""

from model_deploy.optimization.rows.adam import RowAdamOptimizer, RowAdamWOptimizer
from model_deploy.optimization.rows.ftrl import RowFtrlOptimizer
from model_deploy.optimization.rows.momentum import RowMomentumOptimizer, RowRMSPropOptimizer
from model_deploy.optimization.rows.tables import current_value, has_tables

__all__ = [
    "RowAdamOptimizer",
    "RowAdamWOptimizer",
    "RowFtrlOptimizer",
    "RowMomentumOptimizer",
    "RowRMSPropOptimizer",
    "current_value",
    "has_tables",
]

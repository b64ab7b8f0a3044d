"""The ways to train: an update of all clones, of each clone, of several replicas, by all-reduce."""

from model_deploy.ways.each_clone import CloneUpdate
from model_deploy.ways.updates import (
    Plan,
    Update,
    gradients_of_clones,
    update_by_all_reduce,
    update_by_each_clone,
    update_together,
)

__all__ = [
    "CloneUpdate",
    "Plan",
    "Update",
    "gradients_of_clones",
    "update_by_all_reduce",
    "update_by_each_clone",
    "update_together",
]

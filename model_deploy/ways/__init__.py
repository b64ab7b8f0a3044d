"""The ways to train: together, each clone, synchronous replicas, all-reduce."""

from model_deploy.ways.choice import way_for
from model_deploy.ways.way import CloneUpdate, Training, Update, Way, gradients_of_clones

__all__ = ["CloneUpdate", "Training", "Update", "Way", "gradients_of_clones", "way_for"]

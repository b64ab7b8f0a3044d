"""The ways to train: an update of all clones, of each clone, of several replicas, by all-reduce."""

from model_deploy.ways.choice import way_for
from model_deploy.ways.way import CloneUpdate, Training, Update, Way, gradients_of_clones

__all__ = ["CloneUpdate", "Training", "Update", "Way", "gradients_of_clones", "way_for"]

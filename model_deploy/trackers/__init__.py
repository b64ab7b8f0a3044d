"""Trackers of experiments, such as MLflow, which get what the files of a run have."""

from model_deploy.trackers.naming import NAMES, check_names, tracker_named
from model_deploy.trackers.sending import Sending
from model_deploy.trackers.tracker import TrackedRun, Tracker
from model_deploy.trackers.tracking import Tracking, send_model, tracking

__all__ = [
    "NAMES",
    "Sending",
    "TrackedRun",
    "Tracker",
    "Tracking",
    "check_names",
    "send_model",
    "tracker_named",
    "tracking",
]

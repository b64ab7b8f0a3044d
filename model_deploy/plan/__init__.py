"""What a run on many machines would take, on paper: `python -m model_deploy.plan`."""

from model_deploy.plan.ways import WAYS, Link, Load, Step, Way, step

__all__ = ["WAYS", "Link", "Load", "Step", "Way", "step"]

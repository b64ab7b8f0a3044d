"""Estimates training on many machines without running it: `python -m model_deploy.plan`."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.plan.failures import best_save_interval, useful_share
    from model_deploy.plan.formulas import WAYS, Link, Load, Step, Way, step
    from model_deploy.plan.network import Network, network_of
    from model_deploy.plan.planning import Circumstances, Plan, Row, plan_for
    from model_deploy.plan.report import draw, table
    from model_deploy.plan.stragglers import expected_slowest

__all__ = [
    "WAYS",
    "Circumstances",
    "Link",
    "Load",
    "Network",
    "Plan",
    "Row",
    "Step",
    "Way",
    "best_save_interval",
    "draw",
    "expected_slowest",
    "network_of",
    "plan_for",
    "step",
    "table",
    "useful_share",
]

import_when_used(__name__)

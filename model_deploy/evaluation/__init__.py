"""Evaluation: predictions on every example once, on any number of clones; scores and files."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.evaluation.confusion import confusion_png
    from model_deploy.evaluation.evaluator import Evaluator, evaluate
    from model_deploy.evaluation.files import EvaluationWriter, has_evaluation
    from model_deploy.evaluation.metrics_evaluator import MetricsEvaluation, MetricsEvaluator
    from model_deploy.evaluation.results import Evaluation, Predictions

__all__ = [
    "Evaluation",
    "EvaluationWriter",
    "Evaluator",
    "MetricsEvaluation",
    "MetricsEvaluator",
    "Predictions",
    "confusion_png",
    "evaluate",
    "has_evaluation",
]

import_when_used(__name__)

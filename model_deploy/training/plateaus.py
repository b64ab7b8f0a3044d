"""The learning rate that follows evaluations: checked, and right where a session begins."""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.hooks import add_session_hook
from model_deploy.optimization import Plateau, check_plateau_is_evaluated, noted_plateau
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.patience import Patience
from model_deploy.training.steps.course import global_step


class PlateauHook(tf.train.SessionRunHook):
    """Gives a learning rate, on the chief, the falls that the run's evaluations ask for.

    Args:
      plateau: the learning rate's.
      patience_at: returns the evaluations of the run up to a step.
    """

    def __init__(self, plateau: Plateau, patience_at: Callable[[int], Patience]) -> None:
        self._plateau, self._patience_at = plateau, patience_at

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the number of falls before the first step of the session."""
        del coord
        patience = self._patience_at(global_step(session))
        self._plateau.follow(patience.improvements(self._plateau.min_delta))
        self._plateau.put_into(session)


def plateau_of(
    options: LoopOptions, patience_at: Callable[[int], Patience], *, is_chief: bool
) -> Plateau | None:
    """Returns the plateau of the default graph, and adds the chief's session hook; None without.

    Args:
      options: the settings.
      patience_at: returns the evaluations of the run up to a step.
      is_chief: whether this process evaluates.

    Raises:
      ValueError: if it has no evaluations to follow.
    """
    plateau = noted_plateau()
    if plateau is None:
        return None
    check_plateau_is_evaluated(options.eval_every_n_steps)
    if is_chief:
        add_session_hook(PlateauHook(plateau, patience_at))
    return plateau

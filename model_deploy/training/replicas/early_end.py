"""`EarlyEnd`: how the chief's decision to end a run early reaches the other workers."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, run_unless_refused, run_until_closed
from model_deploy.collectives import Collectives
from model_deploy.config import DeploymentConfig
from model_deploy.deployment import DeployedModel
from model_deploy.hooks import add_session_hook, session_hooks
from model_deploy.optimization import Plateau
from model_deploy.parameter_servers import unsaved_variable, value_of
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.replicas.shared_variables import StartHook
from model_deploy.training.steps.course import global_step
from model_deploy.training.timing import Every

# Seconds between two looks at the chief's flag.
_LOOK_SECS = 0.5


class EarlyEnd:
    """Ends the run of a process alone: what its own hooks decide counts."""

    def begin(self, session: Any, is_over: bool, in_step: Callable[[bool], None]) -> bool:
        """Returns, before the first step of a session, whether the run is over.

        Args:
          session: the session.
          is_over: what this process knows.
          in_step: called with True before this process waits for others, and with False after it.
        """
        del session, in_step
        return is_over

    def after_step(
        self, session: Any, step: int, stop_requested: bool, in_step: Callable[[bool], None]
    ) -> bool:
        """Returns, after a step, whether the run is over; arguments as for `begin`."""
        del session, step, in_step
        return stop_requested

    def announce(self, session: Any) -> None:
        """Tells the other workers, on the chief, that the run is over."""

    def wake(self, session: Any) -> None:
        """Lets workers go on, on the chief, that wait for an update which will not come."""


class EndByServers(EarlyEnd):
    """A flag on ps 0, which the chief sets; other workers look at it now and then.

    Adds ops and, on the chief, a session hook to the default graph.

    Args:
      cluster: the cluster and this process's task, a worker.
    """

    def __init__(self, cluster: Cluster) -> None:
        device = cluster.ps[0].device
        flag = unsaved_variable(device, "early_end", False)
        with tf.device(device):
            self._is_over = value_of(flag, False)
            self._set = flag.assign(True, read_value=False)
        self._is_chief = cluster.is_chief
        self._looked_at, self._last_step = -math.inf, 0
        if cluster.is_chief:
            add_session_hook(StartHook(flag.initializer))

    def begin(self, session: Any, is_over: bool, in_step: Callable[[bool], None]) -> bool:
        """Returns what this process knows; notes the step at which the session begins."""
        del in_step
        self._last_step = global_step(session)
        return is_over

    def after_step(
        self, session: Any, step: int, stop_requested: bool, in_step: Callable[[bool], None]
    ) -> bool:
        """Looks at the flag: also where a step made no update, as the chief may have woken it."""
        if self._is_chief or stop_requested:
            return stop_requested
        now, has_moved = time.monotonic(), step > self._last_step
        self._last_step = step
        if has_moved and now - self._looked_at < _LOOK_SECS:
            return False
        self._looked_at = now
        return bool(run_unless_refused(lambda: session.run(self._is_over)))

    def announce(self, session: Any) -> None:
        run_unless_refused(lambda: session.run(self._set))

    def wake(self, session: Any) -> None:
        for hook in session_hooks():
            if hasattr(hook, "wake"):
                hook.wake(session)


class EndByCollective(EarlyEnd):
    """A collective op, by all-reduce, after each step with an evaluation.

    All workers evaluate, or wait for the chief that does, after the same steps; so the settings
    that decide which are compared first.

    Args:
      config: the deployment, by all-reduce, of several replicas.
      settings: numbers that all workers must share, by the names of their options.
      every: steps between evaluations that may end the run or lower the rate; None if none does.
      plateau: the learning rate that follows the chief's evaluations, or None.
    """

    def __init__(
        self,
        config: DeploymentConfig,
        settings: Mapping[str, float],
        every: int | None,
        plateau: Plateau | None = None,
    ) -> None:
        device = config.optimizer_device()
        self._settings = dict(settings)
        self._every = every
        self._plateau, self._is_chief = plateau, config.replica_id == 0
        self._due = Every(steps=every)
        with tf.device(device), tf.name_scope("early_end"):
            self._given = tf.placeholder(tf.float64, [2 * len(settings) + 2], "given")
            group = Collectives([device], config.replica_id, config.num_replicas, "early_end")
            [self._largest] = group.max([self._given], "settings")

    def begin(self, session: Any, is_over: bool, in_step: Callable[[bool], None]) -> bool:
        """Compares the settings; returns whether a worker knows that the run is over.

        Raises:
          ValueError: naming a setting in which workers differ.
        """
        most, least, is_over = self._exchange(session, is_over, in_step)
        for name, high, low in zip(self._settings, most, least, strict=True):
            if high != low:
                raise ValueError(
                    f"{name} must be the same in all workers, got {low:g} and {high:g}"
                )
        self._due = Every(steps=self._every, first_step=global_step(session))
        return is_over

    def after_step(
        self, session: Any, step: int, stop_requested: bool, in_step: Callable[[bool], None]
    ) -> bool:
        """Exchanges what workers know, where an evaluation may have ended the run."""
        if not self._due.take(step):
            return stop_requested
        return self._exchange(session, stop_requested, in_step)[2]

    def _exchange(
        self, session: Any, is_over: bool, in_step: Callable[[bool], None]
    ) -> tuple[Any, Any, bool]:
        """Returns the largest and smallest settings of all workers, and whether one is over."""
        own = list(self._settings.values())
        falls = self._plateau.falls if self._plateau is not None and self._is_chief else 0
        given = {self._given: [*own, *(-value for value in own), falls, float(is_over)]}
        in_step(True)
        found = run_until_closed(session, lambda: session.run(self._largest, given))
        in_step(False)
        if self._plateau is not None and not self._is_chief:
            self._plateau.falls = int(found[-2])
            self._plateau.put_into(session)
        return found[: len(own)], -found[len(own) : -2], bool(found[-1])


def early_end_of(
    model: DeployedModel,
    cluster: Cluster | None,
    options: LoopOptions,
    *,
    has_metrics: bool,
    plateau: Plateau | None = None,
) -> EarlyEnd:
    """Returns how a run ends early, by the way to train.

    Args:
      model: what `deploy` returned, with an optimizer.
      cluster: the cluster, or None.
      options: the settings of the loop.
      has_metrics: whether the model has metrics, which workers show together.
      plateau: the learning rate that follows the chief's evaluations, or None.
    """
    config = model.config
    if config is not None and model.owns_variables and config.num_replicas > 1:
        ends = options.stop_patience is not None or options.stop_at_metric is not None
        ends = ends or plateau is not None
        by_evaluator = options.log_every_n_steps if options.stop_by else None
        every = (options.eval_every_n_steps or by_evaluator) if ends else None
        log_every = options.log_every_n_steps if has_metrics else 0
        settings = {"eval_every_n_steps": every or 0, "log_every_n_steps": log_every}
        return EndByCollective(config, settings, every, plateau)
    if cluster is not None and cluster.ps:
        return EndByServers(cluster)
    return EarlyEnd()

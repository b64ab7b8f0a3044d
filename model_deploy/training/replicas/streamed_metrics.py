"""`StreamedMetrics`: a model's metrics in training, since the last line of the log, of all workers.

Each step adds its sums to a local variable of its worker.  A line of the log takes what is there:

- By all-reduce a collective op adds up the sums of all workers, which all show the same.
- With parameter servers each worker hands its sums to a variable on ps 0 with each of its own
  lines, and the chief takes what is there with its own.  So each example counts once, whether
  workers are synchronous or not.  For synchronous ones the chief waits a moment.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, run_unless_refused
from model_deploy.collectives import Collectives
from model_deploy.deployment import DeployedModel
from model_deploy.hooks import add_session_hook
from model_deploy.metrics import UndefinedMetricError, metrics_of
from model_deploy.parameter_servers import unsaved_variable, value_of
from model_deploy.training.replicas.shared_variables import StartHook

# Seconds that the chief waits for what synchronous workers hand in, and between two looks.
_WAIT_SECS = 1.0
_POLL_SECS = 0.01


class StreamedMetrics:
    """The metrics that `metrics.add_metric` has noted; adds ops to the default graph.

    Args:
      model: what `deploy` returned, with an optimizer and with metrics.
    """

    def __init__(self, model: DeployedModel) -> None:
        self._columns = metrics_of(model.clones)
        self._sizes = [column[0].statistics.shape.num_elements() for column in self._columns]
        self._device = model.train_op.device
        if model.config is not None:
            self._device = model.config.optimizer_device()
        with tf.name_scope("streamed_metrics"), tf.device(self._device):
            # The last number counts steps.
            self._total = tf.Variable(
                tf.zeros([sum(self._sizes) + 1], tf.float64),
                trainable=False,
                use_resource=True,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
                name="total",
            )
            self._own = self._total.read_value()
            with tf.control_dependencies([self._own]):
                # Asynchronous clones may add meanwhile.  Otherwise nobody does, and 0 is exact.
                self._reset = (
                    self._total.assign_sub(self._own, read_value=False)
                    if model.clone_updates
                    else self._total.assign(tf.zeros_like(self._own), read_value=False)
                )

    def add(self, parts: Sequence[int], was_left_out: Any) -> Any:
        """Returns an op that adds the sums of a step.

        Args:
          parts: places of the clones, or parts of clones, that the step is of.
          was_left_out: whether the step's update was skipped: then nothing is added, as predictions
            may not be finite; a scalar.
        """
        with tf.name_scope("streamed_metrics"), tf.device(self._device):
            sums = [tf.add_n([column[i].statistics for i in parts]) for column in self._columns]
            step = tf.concat([*sums, tf.ones([1], tf.float64)], axis=0)
            step *= 1 - tf.cast(was_left_out, tf.float64)
            return self._total.assign_add(step, read_value=False)

    def read(self, session: Any, in_step: Callable[[bool], None]) -> dict[str, float]:
        """Returns the metrics since the last call by name, and begins anew.

        Args:
          session: the session.
          in_step: called with True before this process waits for others, and with False after it.

        Returns:
          A float for each metric, NaN for one that the examples do not define; nothing in a worker
          that leaves showing to the chief.

        Raises:
          ValueError: if a label or weight breaks a metric's rule.
          FloatingPointError: if a prediction does.
        """
        in_step(True)
        totals = self._take(session)
        in_step(False)
        if totals is None:
            return {}
        parts = np.split(totals[:-1], np.cumsum(self._sizes)[:-1])
        found = {}
        for column, part in zip(self._columns, parts, strict=True):
            metric = column[0].metric
            try:
                found[metric.name] = metric.value(part)
            except UndefinedMetricError:
                found[metric.name] = math.nan
        return found

    def _take(self, session: Any) -> Any:
        """Takes the sums of all workers, a float64 vector, or None."""
        return session.run([self._own, self._reset])[0]


class MetricsByCollective(StreamedMetrics):
    """Metrics of all workers by all-reduce, which all take after the same steps."""

    def __init__(self, model: DeployedModel) -> None:
        super().__init__(model)
        config = model.config
        if config is None:
            raise ValueError("model must have a config with all-reduce, got None")
        with tf.name_scope("streamed_metrics"):
            group = Collectives([self._device], config.replica_id, config.num_replicas, "metrics")
            [self._sum] = group.sum([self._own], "totals")

    def _take(self, session: Any) -> Any:
        return session.run([self._sum, self._reset])[0]


class MetricsByServers(StreamedMetrics):
    """Metrics of all workers by a variable on ps 0; on the chief adds a session hook."""

    def __init__(self, model: DeployedModel, cluster: Cluster) -> None:
        super().__init__(model)
        config = model.config
        self._is_chief = cluster.is_chief
        self._num_expected = 0 if config is None else config.num_aggregated or 0
        device = cluster.ps[0].device
        zeros = np.zeros(self._total.shape.as_list())
        with tf.name_scope("streamed_metrics"):
            shared = unsaved_variable(device, "of_all_workers", zeros)
            with tf.device(device):
                self._of_all = value_of(shared, zeros)
                self._handed = shared.assign_add(self._own, read_value=False)
                self._taken = tf.placeholder(tf.float64, zeros.shape, "taken")
                self._give_out = shared.assign_sub(self._taken, read_value=False)
        if cluster.is_chief:
            add_session_hook(StartHook(shared.initializer))

    def _take(self, session: Any) -> Any:
        take = [self._own, self._handed, self._reset]
        own, *_ = run_unless_refused(lambda: session.run(take))
        if not self._is_chief:
            return None
        end = time.monotonic() + _WAIT_SECS
        while True:
            found = run_unless_refused(lambda: session.run(self._of_all))
            if found[-1] >= own[-1] * self._num_expected or time.monotonic() >= end:
                break
            time.sleep(_POLL_SECS)
        run_unless_refused(lambda: session.run(self._give_out, {self._taken: found}))
        return found


def streamed_metrics_of(model: DeployedModel, cluster: Cluster | None) -> StreamedMetrics | None:
    """Returns the metrics of a model in training, by the way to train; None without metrics.

    Args:
      model: what `deploy` returned, with an optimizer.
      cluster: the cluster, or None.
    """
    if not metrics_of(model.clones):
        return None
    if cluster is not None and cluster.ps:
        return MetricsByServers(model, cluster)
    if model.owns_variables and model.config is not None and model.config.num_replicas > 1:
        return MetricsByCollective(model)
    return StreamedMetrics(model)

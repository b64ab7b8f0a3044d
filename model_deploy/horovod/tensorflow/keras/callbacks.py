"""Callbacks for `fit` of tf-keras in graph mode, in a job of several processes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tf_keras.api._v1.keras import backend
from tf_keras.callbacks import Callback

from model_deploy import horovod


class BroadcastGlobalVariablesCallback(Callback):
    """Gives all variables the values of one process when the training begins.

    Args:
      root_rank: of the process.
      device: is not used: values travel from CPU to CPU.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        del device
        self._root_rank = root_rank

    def on_train_begin(self, logs: Any = None) -> None:
        """Runs in all processes; the variables of the optimizer are there by now."""
        del logs
        session = backend.get_session()  # which initializes variables
        session.run(horovod.broadcast_global_variables(self._root_rank))


class MetricAverageCallback(Callback):
    """Puts the means over all processes in the place of metrics at the end of each epoch.

    It comes before callbacks that use them.

    Args:
      device: is not used: values travel from CPU to CPU.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()
        del device
        self._fed: Any = None
        self._mean: Any = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Changes `logs`."""
        del epoch
        if not logs or horovod.size() == 1:
            return
        names = sorted(name for name, value in logs.items() if np.ndim(value) == 0)
        if self._fed is None:
            self._fed = tf.placeholder(tf.float64, [len(names)])
            self._mean = horovod.allreduce(self._fed, name=f"metrics {names}")
        values = [logs[name] for name in names]
        means = backend.get_session().run(self._mean, {self._fed: values})
        logs.update(zip(names, means, strict=True))


class LearningRateScheduleCallback(Callback):
    """Multiplies the learning rate of the start, in some epochs.

    Args:
      initial_lr: learning rate; None for that of the optimizer when the training begins.
      multiplier: a number, or a function of the epoch, with its fraction unless `staircase`.
      start_epoch: the first epoch.
      end_epoch: the first one after; None for none.
      staircase: whether the rate changes with epochs only, not with batches.
      momentum_correction: whether the momentum of the batch at which the rate changes changes by
        the same factor (Goyal et al. 2017, https://arxiv.org/abs/1706.02677, section 2.2).
      steps_per_epoch: batches of an epoch; None for what `fit` knows.

    Raises:
      ValueError: if there is no `multiplier`.
    """

    def __init__(
        self,
        initial_lr: float | None = None,
        multiplier: float | Callable[[float], float] | None = None,
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        if multiplier is None:
            raise ValueError("multiplier must be a number or a function, got None")
        self._initial_lr, self._multiplier = initial_lr, multiplier
        self._start_epoch, self._end_epoch = start_epoch, end_epoch
        # A number changes nothing within an epoch.
        self._staircase = staircase or not callable(multiplier)
        self._momentum_correction = momentum_correction
        self._steps_per_epoch = steps_per_epoch
        self._epoch = 0
        self._momentum: float | None = None  # to restore

    def on_train_begin(self, logs: Any = None) -> None:
        """Notes the learning rate of the start.

        Raises:
          ValueError: if the batches of an epoch are needed and not known.
        """
        del logs
        if self._initial_lr is None:
            self._initial_lr = float(backend.get_value(self.model.optimizer.lr))
        found = self.params
        if self._steps_per_epoch is None:
            self._steps_per_epoch = found.get("steps")
        if self._steps_per_epoch is None and found.get("samples") and found.get("batch_size"):
            self._steps_per_epoch = -(-found["samples"] // found["batch_size"])
        if self._steps_per_epoch is None and not self._staircase:
            raise ValueError("steps_per_epoch must be given where fit does not know it, got None")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes the epoch."""
        del logs
        self._epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets the learning rate."""
        del logs
        ended = self._end_epoch is not None and self._epoch >= self._end_epoch
        if self._epoch < self._start_epoch or ended or (self._staircase and batch):
            return
        fraction = 0.0 if self._staircase else batch / float(self._steps_per_epoch or 1)
        self._set_rate(self._epoch + fraction)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Sets the momentum back."""
        del batch, logs
        if self._momentum is not None:
            backend.set_value(self.model.optimizer.momentum, self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Puts the learning rate into `logs`."""
        del epoch
        if logs is not None:
            logs["lr"] = float(backend.get_value(self.model.optimizer.lr))

    def _set_rate(self, epoch: float) -> None:
        by = self._multiplier(epoch) if callable(self._multiplier) else self._multiplier
        optimizer = self.model.optimizer
        before, rate = float(backend.get_value(optimizer.lr)), float(self._initial_lr or 0) * by
        backend.set_value(optimizer.lr, rate)
        if self._momentum_correction and hasattr(optimizer, "momentum") and before:
            self._momentum = float(backend.get_value(optimizer.momentum))
            backend.set_value(optimizer.momentum, self._momentum * rate / before)


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from 1 / `size` of it to all of it in the first epochs.

    Programs multiply the rate by the number of processes, with which a training may not begin
    (Goyal et al. 2017, https://arxiv.org/abs/1706.02677).

    Args:
      initial_lr: learning rate to which it rises; None for that of the optimizer.
      warmup_epochs: so many epochs, with fractions.
      momentum_correction: as `LearningRateScheduleCallback` has it.
      steps_per_epoch: batches of an epoch; None for what `fit` knows.
      verbose: whether a line tells of the end.
    """

    def __init__(
        self,
        initial_lr: float | None = None,
        warmup_epochs: float = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._warmup_epochs, self._verbose = warmup_epochs, verbose

        def multiplier(epoch: float) -> float:
            epoch += 1.0 / float(self._steps_per_epoch or 1)  # whole epochs have round numbers
            part = min(1.0, epoch / warmup_epochs) if warmup_epochs else 1.0
            return (1 + part * (horovod.size() - 1)) / horovod.size()

        super().__init__(
            initial_lr,
            multiplier,
            start_epoch=0,
            end_epoch=int(np.ceil(warmup_epochs)),
            staircase=False,
            momentum_correction=momentum_correction,
            steps_per_epoch=steps_per_epoch,
        )

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Puts the learning rate into `logs`."""
        super().on_epoch_end(epoch, logs)
        if epoch == (self._end_epoch or 0) - 1 and self._verbose:
            rate = backend.get_value(self.model.optimizer.lr)
            print(f"epoch {epoch + 1}: the warmup ends with learning rate {rate:g}")

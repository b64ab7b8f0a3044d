"""`LowRank`: all-reduce whose gradients travel as products of thin matrices, where that saves.

The factors of `collectives.LowRankSums` are summed over replicas; tensors with one axis, sparse
gradients and small matrices are summed as they are.  The clones of a process are summed first.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.all_reduce import StartHook, note_own
from model_deploy.collectives import Collectives, Left, LowRankSums, sizes_of
from model_deploy.gradients import GradientAndVariable
from model_deploy.hooks import add_session_hook
from model_deploy.updating import Change, Condition
from model_deploy.ways.all_reduce import AllReduce
from model_deploy.ways.way import Training, Update


class LowRank(AllReduce):
    """Updates the copies alike, from an approximate sum of the gradients of all replicas."""

    def update(self, training: Training) -> Update:
        """Builds the step; the gradients of sparse variables stay sparse.

        Raises:
          ValueError: as `AllReduce.update`; for a single process that is no worker of an elastic
            run.
        """
        if self.config.num_replicas == 1 and not self._has_parts:
            raise ValueError(
                "gradient_rank must be None with num_replicas=1, where nothing crosses a process "
                f"border, got {self.config.gradient_rank}"
            )
        update = super().update(training)
        # After the hook of all-reduce, which hands out the chief's values.  In `train` another one
        # comes later, which gives each replica its own back.
        zeros = [
            Change(error, "assign", tf.zeros(error.shape)).make() for error in self._sums.errors
        ]
        add_session_hook(StartHook(tf.group(*zeros, name="start_errors")))
        return update

    def _exchanged(
        self,
        collectives: Collectives,
        gradients: Sequence[Sequence[GradientAndVariable]],
        total_loss: Any,
        left: Left | None,
    ) -> tuple[list[list[GradientAndVariable]], Any]:
        """Sums gradients and losses over replicas, weighted by their shares of the batch."""
        places = [k for k, column in enumerate(zip(*gradients, strict=True)) if self._saves(column)]
        device = gpus.placing(self.config.clone_device(0))
        self._sums = LowRankSums(
            [gradients[0][k][1] for k in places], self.config.gradient_rank or 1, device
        )
        note_own(self._sums.errors)
        rest = [
            [pair for k, pair in enumerate(of_clone) if k not in places] for of_clone in gradients
        ]
        if not places or any(gradient is not None for gradient, _ in rest[0]):
            summed, loss = super()._exchanged(collectives, rest, total_loss, left)
        else:
            summed, loss = [[] for _ in rest], self._mean_loss(collectives, total_loss)
        with tf.device(device):
            own = [tf.add_n([of_clone[k][0] for of_clone in gradients]) for k in places]
            sums, state = self._sums.sum(collectives, own, self.config.share)
        self._state = [Change(variable, "assign", value) for variable, value in state]
        for i, of_clone in enumerate(
            collectives.on_devices(lambda _: list(map(tf.identity, sums)))
        ):
            own_variables = [gradients[i][k][1] for k in places]
            summed[i] = [*summed[i], *zip(of_clone, own_variables, strict=True)]
        return summed, loss

    def _saves(self, column: Sequence[GradientAndVariable]) -> bool:
        """Whether the gradients of a variable, one of each clone, are sent as factors."""
        variable = column[0][1]
        is_dense = all(isinstance(gradient, tf.Tensor) for gradient, _ in column)
        if not is_dense or variable.dtype.base_dtype != tf.float32:
            return False
        sizes = sizes_of(variable.shape.as_list(), self.config.gradient_rank or 1)
        return sizes is not None and sizes.saves

    def _mean_loss(self, collectives: Collectives, total_loss: Any) -> Any:
        """Returns the mean of the replicas' losses, a scalar, weighted by their shares."""
        firsts = collectives.first_clones()
        own = tf.reshape(total_loss, []) * self.config.share
        [[loss]] = firsts.in_packs([[own]], [own], firsts.sum)
        return loss

    def _applied(
        self,
        training: Training,
        gradients: Sequence[Sequence[GradientAndVariable]],
        conditions: Sequence[Condition],
        changes: Sequence[Sequence[Change]],
    ) -> list[list[Any]]:
        """Returns for each clone the ops that update its copies, the first one's with the state."""
        first, *others = changes
        return super()._applied(training, gradients, conditions, [[*first, *self._state], *others])

    def __str__(self) -> str:
        return f"all-reduce of gradients of rank {self.config.gradient_rank}, with error feedback"

    def describe_wire(self) -> str:
        return "gradients that are not sent as factors"

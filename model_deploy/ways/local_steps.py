"""`LocalSteps`: replicas make steps by themselves, and now and then average what has changed.

Each replica trains its own copy of the variables, on its clones' gradients alone.  Every
`local_steps` steps an outer optimizer applies the mean over replicas of their changes
(`local_steps.Exchanges`), and all go on from there.
"""

import dataclasses
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce import (
    add_start_hook,
    average_state,
    copies_difference,
    mean_changes,
    note_common,
    sendable_variables,
)
from model_deploy.collectives import (
    Collectives,
    collectives_in_process,
    collectives_of,
    exchange_gradients,
)
from model_deploy.feature import join
from model_deploy.gradients import GradientAndVariable, values_of
from model_deploy.local_steps import Exchanges
from model_deploy.updating import Change, check_updates_wait, gate_op, with_functions
from model_deploy.ways.all_reduce import AllReduce
from model_deploy.ways.way import Training, Update


class LocalSteps(AllReduce):
    """Updates each replica's copies by its own gradients, and averages changes at intervals."""

    def update(self, training: Training) -> Update:
        """Builds the step; the gradients of sparse variables stay sparse.

        Raises:
          ValueError: as `AllReduce.update`.
        """
        gradients = self._gradients(training)
        own = collectives_in_process(self.config, "step")
        join(training.clones, own)
        summed, _ = exchange_gradients(own, gradients, None, 1.0)
        if training.clip_norm is not None:
            summed = own.on_devices(lambda i: training.clip(summed[i]))
        computed = [value for of_clone in gradients for value in values_of(of_clone)]
        exchanges = Exchanges(self.config, self._copies, self._exchanged_variables(summed[0]))
        step = tf.cast(tf.train.get_global_step().read_value(), tf.int64)
        arrived = exchanges.send(step)
        changes: list[list[Change]] = [[] for _ in summed]
        # The loss comes first: its forward pass must not read variables half updated.
        first = tf.group(training.total_loss, *arrived)
        if self._has_parts:
            changes = self._changes_of_parts(training, own, [training.total_loss, *computed])
            first = gate_op(self.config, [training.total_loss, *arrived])
        noted = tf.group(first, *exchanges.note(first))
        conditions = self._conditions(training, summed, noted)
        applied = self._applied(training, summed, conditions, changes)
        updates = [op for of_clone in applied for op in of_clone]
        if not self._has_parts:
            updates = [average_state(own, self._copies, applied)]
        updates = exchanges.end_step(updates)
        updates = with_functions(updates, training.functions)
        with tf.control_dependencies(updates):
            train_op = tf.identity(training.total_loss, name="train_op")
        if self._has_parts:
            check_updates_wait(train_op, first)
        note_common(exchanges.common)
        add_start_hook(self.config, self._copies)
        exchanges.add_start_hook()
        return Update(
            train_op,
            gradients[0],
            copies_difference=self._difference(exchanges),
            computed=[training.total_loss, *computed],
        )

    def _exchanged_variables(self, gradients: list[GradientAndVariable]) -> list[Any]:
        """Returns the trained variables, and those of floats that update ops change."""
        trained = [variable for _, variable in gradients]
        state = [
            original
            for original, _ in self._copies.variables()
            if not original.trainable and original.dtype.base_dtype.is_floating
        ]
        return [*trained, *state]

    def _changes_of_parts(
        self, training: Training, own: Collectives, computed: list[Any]
    ) -> list[list[Change]]:
        """Returns for each clone the mean of the changes by the update ops of this replica."""
        alone = dataclasses.replace(
            self.config,
            replica_id=0,
            num_replicas=1,
            first_part=0,
            global_parts=self.config.batches_per_step // self.config.num_clones,
        )
        return mean_changes(self._copies, own, training.weighed_parts(alone), computed)

    def _difference(self, exchanges: Exchanges) -> Any:
        """Returns the largest difference of copies in a process, and of anchors between them."""
        own = collectives_in_process(self.config, "difference in process")
        between = collectives_of(self.config, "difference").first_clones()
        return tf.maximum(
            copies_difference(self.config, self._copies, own, sendable_variables()),
            copies_difference(self.config, self._copies, between, exchanges.common),
            name="copies_difference",
        )

    def __str__(self) -> str:
        return f"local steps: an exchange between replicas every {self.config.local_steps} step(s)"

    def describe_wire(self) -> str:
        return "changes of variables"

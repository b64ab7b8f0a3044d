"""`Together`: one update per replica from all of its clones; each replica updates by itself."""

import tensorflow.compat.v1 as tf

from model_deploy.gradients import values_of
from model_deploy.parameter_servers import StepCounter, pack_gradients
from model_deploy.updating import apply_changes, with_functions
from model_deploy.ways.way import Training, Update, Way


class Together(Way):
    """Makes one update from the sum of the clones' gradients."""

    def update(self, training: Training) -> Update:
        is_remote = self.config.num_ps_tasks > 0
        update_ops = [*training.ops_of_nobody(), *training.ops_of_parts()[0]]
        gradients = training.clip(training.gradients(training.clones, training.losses))
        # The loss comes first: its forward pass must not read variables half updated.
        moved = pack_gradients(self.config, gradients, after=training.total_loss)
        counter = StepCounter(is_remote=is_remote, others_update=self.config.num_replicas > 1)
        first = [] if is_remote else [training.total_loss]
        condition = training.condition(gradients, first)
        updates = apply_changes(
            training.optimizer,
            moved,
            condition,
            global_step=tf.train.get_global_step(),
            update_ops=update_ops,
        )
        updates = condition.done(with_functions(updates, training.functions))
        staleness, global_step = counter.after(updates)
        with tf.control_dependencies([global_step]):
            train_op = tf.identity(training.total_loss, name="train_op")
        computed = [training.total_loss, *values_of(gradients)]
        return Update(
            train_op, gradients, computed=computed, staleness=staleness, global_step=global_step
        )

    def __str__(self) -> str:
        if self.config.num_replicas > 1:
            return "asynchronous: an update of each replica"
        return "an update of all clones"

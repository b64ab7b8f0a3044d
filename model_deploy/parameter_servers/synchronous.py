"""Synchronous replicas on parameter servers: one update from the gradients of several.

It does as `tf.train.SyncReplicasOptimizer`, without six faults of that class:

- All replicas take their tokens, which let them begin the next step, from one queue: a fast replica
  can take the token of a slow or dead one, and count twice in a step.  Here each replica has its
  own queue.
- A replica that is started again while it waits hands in a second time and counts twice, too.  Here
  it has receipts.
- At the start it puts extra tokens into the queue, so that the first step may consist of two
  gradients of one replica.  Here there are no extra tokens.
- Its accumulators divide each row of a sparse gradient by the number of replicas that use the row,
  and need sorted, unique rows.  Here rows are divided by the number of replicas that take part, and
  may come in any order.
- While it waits for gradients it runs ops that do not depend on them, such as Adam's decay of the
  moments for sparse gradients, which then shows in checkpoints.  Here no variable changes before
  all gradients have arrived.
- Its thread runs until the session is closed, but a session waits for its threads before it closes.
  Here the thread ends with the session.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.gradients import GradientAndVariable, clip_by_global_norm, values_of
from model_deploy.hooks import add_session_hook
from model_deploy.parameter_servers.accumulators import DenseAccumulator, RowAccumulator
from model_deploy.parameter_servers.begun import Begun
from model_deploy.parameter_servers.early_updates import EarlyUpdates
from model_deploy.parameter_servers.fence import Fence, noted_fence, repeats_steps
from model_deploy.parameter_servers.stamps import Stamps, step_of
from model_deploy.parameter_servers.synchronous_hook import SynchronousHook
from model_deploy.updating import (
    Change,
    Condition,
    apply_changes,
    check_updates_wait,
    read_late,
    with_functions,
)


class SynchronousOptimizer(tf.train.Optimizer):
    """Applies the mean of several replicas' gradients once per global step.

    Each replica adds its gradients to accumulators beside the variables.  Once there are
    enough, the chief takes their means, updates the variables, adds 1 to the global step
    and lets all replicas go on.  Gradients that come too late are dropped.

    Args:
      optimizer: makes the updates.
      replicas_to_aggregate: how many replicas make one update; the others are backups.
      num_replicas: number of replicas.
      replica_id: index of this one; 0 is the chief.
      clip_norm: largest joint L2 norm of the mean.
      wire_dtype: type in which rows of sparse gradients of float32 are handed in.
      after_update: functions that make ops to run after each update.
      condition: returns the `Condition` of an update, from its gradients and the ops to wait for.
        Where an update is skipped, the global step stays, and all replicas go on.
      changes: this replica's changes of other variables; their mean is applied with the update.
      gate: makes an op, from tensors received from replicas, that the update waits for; or None.
      early: the variables that are updated, and read, as soon as their own gradients are there;
        by default none.  For them all replicas take part in each update.

    Attributes:
      was_updated: whether the update that `apply_gradients` waited for was made, a bool scalar.
      handed_in: the ops by which this replica hands in gradients and changes.
      token: the token that ends the wait for the update, an int64 scalar, see `Stamps`.
    """

    def __init__(
        self,
        optimizer: Any,
        replicas_to_aggregate: int,
        num_replicas: int,
        replica_id: int,
        *,
        clip_norm: float | None = None,
        wire_dtype: tf.DType = tf.float32,
        after_update: Sequence[Callable[[], Any]] = (),
        condition: Callable[..., Condition] = lambda _, first: Condition(first=first),
        changes: Sequence[Change] = (),
        gate: Callable[[Sequence[Any]], Any] | None = None,
        early: EarlyUpdates | None = None,
    ) -> None:
        super().__init__(use_locking=False, name="SynchronousOptimizer")
        self._optimizer = optimizer
        self._replicas_to_aggregate = replicas_to_aggregate
        self._num_replicas = num_replicas
        self._replica_id = replica_id
        self._clip_norm = clip_norm
        self._wire_dtype = wire_dtype
        self._after_update = after_update
        self._condition = condition
        self._changes = changes
        self._gate = gate
        self._early = early or EarlyUpdates(None, (), num_replicas, replica_id)
        self._fence: Fence | None = None
        self._stamps: Any = None
        self.was_updated: Any = None
        self.handed_in: Sequence[Any] = ()
        self.token: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the wrapped optimizer: gradients of variables' shapes, or rows of them."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the wrapped optimizer's slot, of the variable's shape."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the names of the wrapped optimizer's slots."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """Returns the wrapped optimizer's variables: scalars, or of variables' shapes."""
        return self._optimizer.variables()

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Adds this replica's gradients to the accumulators and waits for the update.

        Adds the hook that every session needs, see `hooks.session_hooks`.

        Args:
          grads_and_vars: `(gradient, variable)` pairs; a gradient has the variable's shape, or
            is an `IndexedSlices` over its rows.
          global_step: the global step, an integer scalar variable.
          name: ignored.

        Returns:
          An op that is done when the update is.
        """
        del name
        local_step = tf.Variable(
            0,
            name="synchronous_local_step",
            dtype=tf.int64,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            trainable=False,
        )
        self._fence = noted_fence()
        self._stamps = Stamps(global_step)
        with self._names_of_the_world():
            accumulators = [self._accumulator(g, v) for g, v in grads_and_vars]
            others = [self._accumulator(c.value, c.variable, c.method) for c in self._changes]
        stamp = local_step.read_value()
        handed_in, means = self._exchange(grads_and_vars, accumulators, stamp)
        added, operands = self._exchange(
            [(change.value, change.variable) for change in self._changes], others, stamp
        )
        read = self._early.read(grads_and_vars, handed_in, step_of(stamp))
        handed_in += added
        self.handed_in = handed_in
        accumulators += others
        devices = [variable.device for _, variable in (*means, *operands)] + [global_step.device]
        with tf.device(global_step.device):
            with self._names_of_the_world():
                queues = [
                    tf.FIFOQueue(-1, tf.int64, (), shared_name=f"tokens_{i}")
                    for i in range(self._num_replicas)
                ]
            own_queue = queues[self._replica_id]
            # Tokens left from before this replica was restarted.
            emptied = own_queue.dequeue_many(own_queue.size())
            with tf.control_dependencies([emptied]):
                local_start = tf.assign(local_step, self._stamps.now())
            is_chief = self._replica_id == 0
            # In an elastic run each world has accumulators and queues of its own.
            begun = Begun(devices) if is_chief and self._fence is None else None
            receipts = [each.receipts.start() for each in accumulators]
            started = [local_start, *receipts, *self._early.start()]
            if is_chief:
                started += self._steps_set(accumulators, global_step)
            if begun is not None:
                started.append(begun.set_marks)
            start = tf.group(*started)
            update = self._update(means, operands, global_step, queues, accumulators)
            start_anew = self._made_anew(accumulators, global_step, queues) if is_chief else None
            woken = self._let_go(queues, self._stamps.now())
            shrunk = [] if self._fence is None else [a.shrink() for a in accumulators]
        repeats = repeats_steps(self._fence)
        update = update if is_chief else None
        add_session_hook(
            SynchronousHook(start, update, start_anew, woken, shrunk, repeats=repeats, begun=begun)
        )
        return self._wait_for_update(handed_in, read, own_queue, local_step)

    def _steps_set(self, accumulators: Sequence[Any], step: Any) -> list[Any]:
        """Returns ops after which gradients of the next step's present try count, and no others."""
        counts = self._early.set_counts(step.read_value())
        stamp = self._stamps.now()
        return [each.accumulator.set_global_step(stamp) for each in accumulators] + counts

    def _made_anew(self, accumulators: Sequence[Any], step: Any, queues: Sequence[Any]) -> Any:
        """Returns an op of the chief: replicas no longer wait for an update that will not come.

        Gradients of an earlier try, those that are there and those that are under way, are dropped.
        """
        with tf.control_dependencies([self._stamps.next_try()]):
            steps_set = self._steps_set(accumulators, step)
        with tf.control_dependencies(steps_set):
            forgotten = [each.forget() for each in accumulators]
            forgotten += [each.receipts.forget() for each in accumulators]
        # One that starts meanwhile may have a receipt of this try for what is forgotten.
        with tf.control_dependencies(forgotten):
            next_try = self._stamps.next_try()
        with tf.control_dependencies([next_try]):
            steps_set = self._steps_set(accumulators, step)
        with tf.control_dependencies(steps_set):
            return self._let_go(queues, self._stamps.now())

    def _let_go(self, queues: Sequence[Any], stamp: Any) -> Any:
        """Returns an op that lets each replica end its step, without an update."""
        return tf.group(*(queue.enqueue(stamp) for queue in queues), *self._early.let_go())

    def _wait_for_update(
        self, handed_in: Sequence[Any], read: Sequence[Any], own_queue: Any, local_step: Any
    ) -> Any:
        """Returns an op that is done when the gradients are handed in and the update is made.

        So are the ops in `read`.
        """
        with tf.control_dependencies(handed_in):
            self.token = own_queue.dequeue()
        with tf.control_dependencies([self.token]):  # a backup may have missed several updates
            tokens = tf.concat([[self.token], own_queue.dequeue_many(own_queue.size())], axis=0)
            self.was_updated = step_of(tokens[-1]) > step_of(local_step.read_value())
        with tf.control_dependencies([self.was_updated, *read]):
            return tf.assign(local_step, tokens[-1]).op

    def _names_of_the_world(self) -> Any:
        """Opens the container for resources of this world of an elastic run."""
        if self._fence is None:
            return contextlib.nullcontext()
        return tf.container(self._fence.container)

    def _accumulator(self, gradient: Any, variable: Any, what: str = "gradients") -> Any:
        where = gradient, variable, self._num_replicas, self._replica_id
        if isinstance(gradient, tf.IndexedSlices):
            return RowAccumulator(*where)
        return DenseAccumulator(*where, what)

    def _exchange(
        self, values: Sequence[GradientAndVariable], accumulators: Sequence[Any], stamp: Any
    ) -> tuple[list[Any], list[GradientAndVariable]]:
        """Returns ops that hand in values, such as gradients, and (mean, variable) pairs."""
        handed_in, means = [], []
        for (_, variable), accumulator in zip(values, accumulators, strict=True):
            with tf.device(variable.device):
                handed_in.append(accumulator.add(stamp, self._wire_dtype))
                means.append((accumulator.take_mean(self._replicas_to_aggregate), variable))
        return handed_in, means

    def _update(
        self,
        means: list[GradientAndVariable],
        operands: list[GradientAndVariable],
        global_step: Any,
        queues: Sequence[Any],
        accumulators: Sequence[Any],
    ) -> Any:
        """Builds the chief's update from the means, and the tokens that let replicas go on."""
        if self._clip_norm is not None:
            means = clip_by_global_norm(means, self._clip_norm)
        needed = [*values_of(means), *values_of(operands)]
        gate = [] if self._gate is None else [self._gate(needed)]
        begun = gate
        if self._fence is not None:
            with tf.control_dependencies([*needed, *gate]):
                begun = [self._fence.begin_update()]
        first = [] if self._early.is_any else [*needed, *begun]
        condition = self._condition(means, first=first)
        changes = [
            change._replace(value=operand)
            for change, (operand, _) in zip(self._changes, operands, strict=True)
        ]
        with graph_walk.new_ops() as ops:
            updates = apply_changes(
                self._optimizer, means, condition, global_step=global_step, changes=changes
            )
        if self._early.is_any:
            # Initializers are among the new ops, too.
            made = graph_walk.ancestors(updates, control_inputs=True).intersection(ops)
            updates += self._early.wait_for_own(self._optimizer, made, means, global_step)
            needed = needed[-1:]  # of the last variable, which has the first gradient
        read_late(ops, needed)
        updates = condition.done(with_functions(updates, self._after_update))
        if gate:
            check_updates_wait(tf.group(*updates), gate[0])
        if self._fence is not None:
            with tf.control_dependencies(updates):
                updates = [self._fence.end_update()]
        if not condition.is_always_true:  # the same step is made again
            with tf.control_dependencies(updates):
                updates = [self._stamps.next_try(tf.logical_not(condition.predicate))]
        with tf.control_dependencies(updates):
            stamp = self._stamps.now()
        # An accumulator's own step count grows with each mean taken, also for a skipped update.
        set_steps = []
        if not condition.is_always_true:
            set_steps = [each.accumulator.set_global_step(stamp) for each in accumulators]
        with tf.control_dependencies([stamp, *set_steps]):
            others = [queue.enqueue(stamp) for queue in queues[1:]]
        # The chief may close its session after its last step, and with it end this op.
        with tf.control_dependencies([*set_steps, *others]):
            return queues[0].enqueue(stamp)

"""`tf.contrib.training.SequenceQueueingStateSaver`: long sequences, a piece at a time.

Each sequence is cut into segments of `num_unroll` steps. A batch has one segment of each of several
sequences; the next segment of a sequence comes when the state after this one has been saved.
"""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals

# What the barrier keeps of a segment besides what the program gives.
_NUMBERS = ("sequence", "sequence_count", "total_length")


class SequenceQueueingStateSaver:
    """Cuts sequences into segments, and has for each the state that was saved before it.

    A queue runner fills it: `tf.train.QueueRunner(saver, [saver.prefetch_op] * num_threads)`.

    Args:
      batch_size: number of segments in a batch.
      num_unroll: number of steps of a segment.
      input_length: number of steps of an example, an integer; a tensor.
      input_key: its name, a text that no other example in work has.
      input_sequences: name -> tensor [steps, ...] of it, whose steps are a multiple of
        `num_unroll`, at least the length.
      input_context: name -> tensor of it that is the same at all steps.
      initial_states: name -> the state before its first step.
      capacity: the greatest number of examples in work; any by default.
      allow_small_batch: whether at the end of the input a batch may be smaller.
      name: of the ops.

    Raises:
      ValueError: for names that are taken twice, or shapes that are not known.
    """

    def __init__(
        self,
        batch_size: Any,
        num_unroll: int,
        input_length: Any,
        input_key: Any,
        input_sequences: Mapping[str, Any],
        input_context: Mapping[str, Any],
        initial_states: Mapping[str, Any],
        capacity: int | None = None,
        allow_small_batch: bool = False,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name, "SequenceQueueingStateSaver") as scope:
            self.name = scope.rstrip("/")
            self.batch_size, self.num_unroll = batch_size, num_unroll
            self.sequences = _tensors(input_sequences)
            self.context, self.states = _tensors(input_context), _tensors(initial_states)
            names = [*self.sequences, *self.context, *self.states]
            if len(set(names)) != len(names):
                raise ValueError(f"names must differ in all dicts, got {names}")
            if not self.states:
                raise ValueError("initial_states must have at least one state, got none")
            self._length = tf.cast(tf.convert_to_tensor(input_length), tf.int32)
            self._key = tf.convert_to_tensor(input_key, tf.string)
            self._places = [*_NUMBERS, "next_key", *names]
            self.barrier = self._barrier()
            self._tokens = tf.FIFOQueue(capacity or -1, tf.bool, [[]])  # one per example in work
            self.prefetch_op = self._prefetch()
            self._allows_small_batch = allow_small_batch
            self.next_batch = self._next_batch()

    def _barrier(self) -> Any:
        pieces = {
            key: [self.num_unroll, *each.shape.as_list()[1:]]
            for key, each in self.sequences.items()
        }
        whole = {**self.context, **self.states}
        shapes = {**pieces, **{key: each.shape.as_list() for key, each in whole.items()}}
        unknown = {key: shape for key, shape in shapes.items() if None in shape}
        if unknown:
            raise ValueError(f"shapes must be known but for the steps, got {unknown}")
        types = {key: each.dtype for key, each in {**self.sequences, **whole}.items()}
        return internals.barrier_class()(
            [tf.int32] * len(_NUMBERS) + [tf.string] + [types[key] for key in shapes],
            [[]] * len(_NUMBERS) + [[]] + list(shapes.values()),
        )

    def insert(self, name: str, keys: Any, values: Any) -> tf.Operation:
        """Puts values, [number of keys, ...], into the part of the barrier with a name."""
        return self.barrier.insert_many(self._places.index(name), keys, values)

    def _prefetch(self) -> tf.Operation:
        """Puts the segments of an example into the barrier; all but the first lack a state."""
        count = -(-self._length // self.num_unroll)
        steps = {key: tf.shape(each)[0] for key, each in self.sequences.items()}
        checks = [
            tf.assert_equal(size, count * self.num_unroll, message=f"steps of {key} must be padded")
            for key, size in steps.items()
        ]
        waits = self._tokens.enqueue(True)
        with tf.control_dependencies([tf.assert_positive(self._length), *checks, waits]):
            numbers = tf.range(count)
            keys = tf.map_fn(
                lambda number: self._key_of(number, count), numbers, fn_output_signature=tf.string
            )
        parts: dict[str, Any] = {
            "sequence": numbers,
            "sequence_count": tf.fill([count], count),
            "total_length": tf.fill([count], self._length),
            "next_key": tf.concat([keys[1:], [""]], 0),
        }
        for key, each in self.sequences.items():
            shape = tf.concat([[count, self.num_unroll], tf.shape(each)[1:]], 0)
            parts[key] = tf.reshape(each, shape)
        for key, each in self.context.items():
            repeats = tf.concat([[count], tf.ones([tf.rank(each)], tf.int32)], 0)
            parts[key] = tf.tile(each[tf.newaxis], repeats)
        inserts = [self.insert(key, keys, values) for key, values in parts.items()]
        with tf.control_dependencies(inserts):  # the first segment is whole only then
            starts = [
                self.insert(key, keys[:1], each[tf.newaxis]) for key, each in self.states.items()
            ]
        return tf.group(*starts, name="prefetch")

    def _key_of(self, number: Any, count: Any) -> Any:
        place = tf.string_join([tf.as_string(number, width=5, fill="0"), "_of_"])
        return tf.string_join([place, tf.as_string(count, width=5, fill="0"), ":", self._key])

    def _next_batch(self) -> "NextQueuedSequenceBatch":
        index, keys, values = self.barrier.take_many(self.batch_size, self._allows_small_batch)
        if self._allows_small_batch:
            is_segment = values[self._places.index("sequence")] >= 0
            index, keys, values = tf.nest.map_structure(
                lambda each: tf.boolean_mask(each, is_segment), (index, keys, values)
            )
        values = dict(zip(self._places, values, strict=True))
        done = tf.equal(values["sequence"], values["sequence_count"] - 1)
        free = tf.reduce_sum(tf.cast(done, tf.int32))
        if self._allows_small_batch:
            # After the last segment there are fillers alone, and this queue is closed: it says so.
            free = tf.where(tf.size(done) > 0, free, self._tokens.size() + 1)
        with tf.control_dependencies([self._tokens.dequeue_many(free)]):
            values = {key: tf.identity(each) for key, each in values.items()}
        return NextQueuedSequenceBatch(self, index, keys, values, done)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> tf.Operation:
        """An op after which no example comes in; what is in work can be finished.

        Args:
          cancel_pending_enqueues: whether examples that wait for their turn are given up, and
            nothing else is closed: a barrier that is closed for the second time waits forever.
          name: of the op.
        """
        if cancel_pending_enqueues:
            return self._tokens.close(cancel_pending_enqueues=True, name=name)
        with tf.control_dependencies(self._insert_fillers() if self._allows_small_batch else []):
            return tf.group(self.barrier.close(), self._tokens.close(), name=name)

    def _insert_fillers(self) -> list[tf.Operation]:
        """Puts all but one of the segments of a batch into the barrier, without a sequence.

        Who waits for a whole batch when the barrier is closed would wait forever where what is
        missing are the next segments of the sequences in that batch.
        """
        count = tf.convert_to_tensor(self.batch_size) - 1
        keys = tf.string_join(["filler:", tf.as_string(tf.range(count))])
        fillers = {"next_key": tf.fill([count], "")}
        fillers.update((key, tf.fill([count], -1)) for key in _NUMBERS)
        for key, each in self.sequences.items():
            shape = [count, self.num_unroll, *each.shape.as_list()[1:]]
            fillers[key] = tf.zeros(shape, each.dtype)
        for key, each in {**self.context, **self.states}.items():
            fillers[key] = tf.zeros([count, *each.shape.as_list()], each.dtype)
        return [self.insert(key, keys, each) for key, each in fillers.items()]


class NextQueuedSequenceBatch:
    """A batch of segments, the `next_batch` of a `SequenceQueueingStateSaver`.

    Attributes:
      key: the names of the segments, string [batch].
      next_key: those of the segments behind them; the empty text for the last of a sequence.
      insertion_index: the order in which they came in, int64 [batch].
      sequence: which segment of its sequence each is, from 0, int32 [batch].
      sequence_count: how many there are in its sequence, int32 [batch].
      total_length: the number of steps of the sequence, int32 [batch].
      length: that of the segment, up to `num_unroll`, int32 [batch].
      sequences: name -> tensor [batch, num_unroll, ...].
      context: name -> tensor [batch, ...].
    """

    def __init__(
        self, saver: Any, index: Any, keys: Any, values: Mapping[str, Any], done: Any
    ) -> None:
        self._saver, self._values, self._done = saver, values, done
        self.key, self.insertion_index = keys, index
        self.next_key = values["next_key"]
        self.sequence, self.sequence_count, self.total_length = (values[name] for name in _NUMBERS)
        left = self.total_length - self.sequence * saver.num_unroll
        self.length = tf.minimum(left, saver.num_unroll)
        self.sequences = {name: values[name] for name in saver.sequences}
        self.context = {name: values[name] for name in saver.context}

    @property
    def batch_size(self) -> Any:
        """Number of segments, int32."""
        return tf.size(self.sequence)

    def state(self, state_name: str) -> Any:
        """The states before the segments, [batch, ...].

        Raises:
          KeyError: for another name.
        """
        return self._values[self._checked(state_name)]

    def save_state(self, state_name: str, value: Any, name: str | None = None) -> tf.Operation:
        """An op that saves the states after the segments; each state must be saved in each step.

        Args:
          state_name: one of the initial states.
          value: [batch, ...]; what comes after the last segment of a sequence is dropped.
          name: of the op.

        Raises:
          KeyError: for another name.
        """
        with tf.name_scope(name, "SaveState"):
            goes_on = tf.reshape(tf.where(tf.logical_not(self._done)), [-1])
            keys = tf.gather(self.next_key, goes_on)
            value = tf.gather(tf.convert_to_tensor(value), goes_on)
            return self._saver.insert(self._checked(state_name), keys, value)

    def _checked(self, state_name: str) -> str:
        if state_name not in self._saver.states:
            raise KeyError(
                f"state_name must be one of {sorted(self._saver.states)}, got {state_name!r}"
            )
        return state_name


def batch_sequences_with_states(
    input_key: Any,
    input_sequences: Mapping[str, Any],
    input_context: Mapping[str, Any],
    input_length: Any,
    initial_states: Mapping[str, Any],
    num_unroll: int,
    batch_size: Any,
    num_threads: int = 3,
    capacity: int | None = 1000,
    allow_small_batch: bool = True,
    pad: bool = True,
    name: str | None = None,
) -> NextQueuedSequenceBatch:
    """The batches of a `SequenceQueueingStateSaver`, with its queue runner.

    Args:
      input_key: see there.
      input_sequences: see there.
      input_context: see there.
      input_length: see there; None takes the steps of the sequences.
      initial_states: see there.
      num_unroll: see there.
      batch_size: see there.
      num_threads: which cut examples.
      capacity: see there.
      allow_small_batch: see there.
      pad: whether sequences get zeros up to a multiple of `num_unroll`.
      name: of the ops.

    Returns:
      A `NextQueuedSequenceBatch`.

    Raises:
      ValueError: for `num_unroll` or `batch_size` below 1, or without sequences.
    """
    if num_unroll < 1 or (isinstance(batch_size, int) and batch_size < 1) or not input_sequences:
        raise ValueError(
            "num_unroll, batch_size and the number of input_sequences must be at least 1, got "
            f"{num_unroll}, {batch_size} and {len(input_sequences)}"
        )
    with tf.name_scope(name, "batch_sequences_with_states"):
        sequences = _tensors(input_sequences)
        if input_length is None:
            input_length = tf.shape(next(iter(sequences.values())))[0]
        if pad:
            sequences = {key: _padded(each, num_unroll) for key, each in sequences.items()}
        saver = SequenceQueueingStateSaver(
            batch_size,
            num_unroll,
            input_length,
            input_key,
            sequences,
            input_context,
            initial_states,
            capacity,
            allow_small_batch,
        )
        runner = tf.train.QueueRunner(saver, [saver.prefetch_op] * num_threads)
        tf.train.add_queue_runner(runner)
    return saver.next_batch


def _tensors(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tf.convert_to_tensor(values[key]) for key in sorted(values)}


def _padded(sequence: Any, multiple: int) -> Any:
    """A sequence [steps, ...] with zeros up to a multiple of steps."""
    rest: Sequence[Any] = [[0, 0]] * (sequence.shape.ndims - 1)
    missing = -tf.shape(sequence)[0] % multiple
    return tf.pad(sequence, [[0, missing], *rest])

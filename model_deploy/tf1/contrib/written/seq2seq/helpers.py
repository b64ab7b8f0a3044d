"""Helpers: which token a decoder chooses at a step, and what it reads at the next."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import abc
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


class Helper(abc.ABC):
    """Chooses tokens for a `BasicDecoder`, and inputs for its steps."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """Number of sequences."""

    @property
    def sample_ids_shape(self) -> tf.TensorShape:
        """The shape of what is chosen for one sequence at one step."""
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> tf.DType:
        """The type of what is chosen."""
        return tf.int32

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are at their end before the first step, bool [batch]; its inputs."""

    @abc.abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Chooses from the outputs [batch, ...] of the step `time`, an integer."""

    @abc.abstractmethod
    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences are at their end after the step `time`; the next inputs and state."""


class CustomHelper(Helper):
    """A helper of three functions, which take and return what the methods of `Helper` do.

    Args:
      initialize_fn: in the place of `initialize`.
      sample_fn: in the place of `sample`, by the names `time`, `outputs` and `state`.
      next_inputs_fn: in the place of `next_inputs`, by these names and `sample_ids`.
      sample_ids_shape: by default that of a number.
      sample_ids_dtype: by default int32.
    """

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._shape = tf.TensorShape([] if sample_ids_shape is None else sample_ids_shape)
        self._dtype = tf.as_dtype(sample_ids_dtype or tf.int32)
        self._batch_size: Any = None

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size must be asked for after initialize")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> tf.TensorShape:
        return self._shape

    @property
    def sample_ids_dtype(self) -> tf.DType:
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with tf.name_scope(name, "CustomHelperInitialize"):
            finished, inputs = self._initialize_fn()
            self._batch_size = tf.size(finished)
            return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name, "CustomHelperSample", [time, outputs]):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "CustomHelperNextInputs", [time, outputs]):
            finished, inputs, state = self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
            return finished, inputs, state


class TrainingHelper(Helper):
    """Reads the inputs that are given, whatever the decoder chooses: the best class.

    Args:
      inputs: a tensor [batch, steps, ...], or a structure of such.
      sequence_length: integers [batch].
      time_major: whether inputs are [steps, batch, ...].
      name: of the ops.

    Raises:
      ValueError: if `sequence_length` has other dimensions.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name, "TrainingHelper", [sequence_length]):
            inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._inputs = inputs
            self._lengths = tf.cast(tf.convert_to_tensor(sequence_length), tf.int32)
            if self._lengths.shape.ndims != 1:
                raise ValueError(
                    f"sequence_length must have one dimension, got shape {self._lengths.shape}"
                )
            if not time_major:
                inputs = tf.nest.map_structure(_transposed, inputs)
            self._steps = tf.nest.map_structure(_array_of, inputs)
            self._none = tf.nest.map_structure(lambda each: tf.zeros_like(each[0]), inputs)
            self._batch_size = tf.size(self._lengths)

    @property
    def inputs(self) -> Any:
        """All inputs, as they were given."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The lengths, int32 [batch]."""
        return self._lengths

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with tf.name_scope(name, "TrainingHelperInitialize"):
            return self._read(0)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        del time, state
        with tf.name_scope(name, "TrainingHelperSample", [outputs]):
            return tf.argmax(outputs, -1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        del outputs, sample_ids
        with tf.name_scope(name, "TrainingHelperNextInputs", [time]):
            finished, inputs = self._read(time + 1)
            return finished, inputs, state

    def _read(self, time: Any) -> tuple[Any, Any]:
        finished = time >= self._lengths
        inputs = tf.cond(
            tf.reduce_all(finished),
            lambda: self._none,
            lambda: tf.nest.map_structure(lambda array: array.read(time), self._steps),
        )
        for read, none in zip(tf.nest.flatten(inputs), tf.nest.flatten(self._none), strict=True):
            read.set_shape(none.shape)
        return finished, inputs


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Reads the inputs that are given, or now and then the embedding of a token it draws.

    Scheduled sampling of Bengio and others, https://arxiv.org/abs/1506.03099.

    Args:
      inputs: float [batch, steps, depth].
      sequence_length: integers [batch].
      embedding: a function from tokens to inputs, or float [tokens, depth].
      sampling_probability: of drawing, a number or float [batch].
      time_major: whether inputs are [steps, batch, depth].
      seed: of the tokens drawn.
      scheduling_seed: of the choice whether to draw.
      name: of the ops.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = as_embedding(embedding)
        self._draw = _Draw(sampling_probability, scheduling_seed)
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Tokens drawn from the softmax of the outputs, or -1 where none is drawn."""
        del time, state
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [outputs]):
            drawn = self._draw(self.batch_size)
            tokens = _draw_tokens(outputs, self._seed)
            return tf.where(drawn, tokens, tf.fill(tf.shape(tokens), -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time]):
            finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
            embedded = self._embed(tf.maximum(sample_ids, 0))
            return finished, tf.where(sample_ids > -1, embedded, inputs), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Reads the inputs that are given, or now and then the outputs of the step before.

    Args:
      inputs: float [batch, steps, depth].
      sequence_length: integers [batch].
      sampling_probability: of reading outputs, a number or float [batch].
      time_major: whether inputs are [steps, batch, depth].
      seed: of the choice.
      next_inputs_fn: makes inputs of outputs; by default they are taken as they are.
      auxiliary_inputs: float [batch, steps, more], put behind the inputs of either kind.
      name: of the ops.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        inputs = tf.convert_to_tensor(inputs)
        self._depth = tf.shape(inputs)[2]
        if auxiliary_inputs is not None:
            inputs = tf.concat([inputs, auxiliary_inputs], -1)
        super().__init__(inputs, sequence_length, time_major, name)
        self._draw = _Draw(sampling_probability, seed)
        self._of_outputs = next_inputs_fn or (lambda outputs: outputs)

    @property
    def sample_ids_dtype(self) -> tf.DType:
        return tf.bool

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Whether each sequence reads its outputs at the next step, bool [batch]."""
        del time, outputs, state
        with tf.name_scope(name, "ScheduledOutputTrainingHelperSample"):
            return self._draw(self.batch_size)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time]):
            finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
            own = tf.concat([self._of_outputs(outputs), inputs[:, self._depth :]], -1)
            own.set_shape(inputs.shape)
            return finished, tf.where(sample_ids, own, inputs), state


class GreedyEmbeddingHelper(Helper):
    """Reads the embedding of the best token of the step before.

    Args:
      embedding: a function from tokens [batch] to inputs, or float [tokens, depth].
      start_tokens: int32 [batch], read at the first step.
      end_token: int32, the token after which a sequence is at its end.

    Raises:
      ValueError: for tokens of other dimensions.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = as_embedding(embedding)
        self._start_tokens, self._end_token = checked_tokens(start_tokens, end_token)
        self._batch_size = tf.size(self._start_tokens)
        self._start_inputs = self._embed(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        del name
        return tf.zeros_like(self._start_tokens, tf.bool), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        del time, state, name
        return tf.argmax(outputs, -1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        del time, outputs, name
        finished = tf.equal(sample_ids, self._end_token)
        inputs = tf.cond(
            tf.reduce_all(finished),
            lambda: self._start_inputs,  # which nobody reads
            lambda: self._embed(sample_ids),
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Reads the embedding of a token that is drawn from the softmax of the step before.

    Args:
      embedding: see `GreedyEmbeddingHelper`.
      start_tokens: see there.
      end_token: see there.
      softmax_temperature: outputs are divided by it; 1 by default.
      seed: of the tokens drawn.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        del time, state, name
        logits = outputs if self._temperature is None else outputs / self._temperature
        return _draw_tokens(logits, self._seed)


class InferenceHelper(Helper):
    """Reads what a function makes of the outputs of the step before.

    Args:
      sample_fn: outputs -> what is chosen.
      sample_shape: the shape of what is chosen for one sequence.
      sample_dtype: its type.
      start_inputs: read at the first step, [batch, ...].
      end_fn: what is chosen -> which sequences are at their end, bool [batch].
      next_inputs_fn: what is chosen -> inputs; by default it is taken as it is.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._shape = tf.TensorShape(sample_shape)
        self._dtype = tf.as_dtype(sample_dtype)
        self._start_inputs = tf.convert_to_tensor(start_inputs)
        self._end_fn = end_fn
        self._next_inputs_fn = next_inputs_fn or (lambda chosen: chosen)

    @property
    def batch_size(self) -> Any:
        return tf.shape(self._start_inputs)[0]

    @property
    def sample_ids_shape(self) -> tf.TensorShape:
        return self._shape

    @property
    def sample_ids_dtype(self) -> tf.DType:
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        del name
        return tf.zeros([self.batch_size], tf.bool), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        del time, state, name
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        del time, outputs, name
        return self._end_fn(sample_ids), self._next_inputs_fn(sample_ids), state


class _Draw:
    """Says of each sequence, with a probability, that something is drawn: bool [batch]."""

    def __init__(self, probability: Any, seed: int | None) -> None:
        self._probability = tf.convert_to_tensor(probability, tf.float32)
        if self._probability.shape.ndims not in (0, 1):
            raise ValueError(
                "sampling_probability must be a number or [batch], got shape "
                f"{self._probability.shape}"
            )
        self._seed = seed

    def __call__(self, batch_size: Any) -> Any:
        return tf.random_uniform([batch_size], seed=self._seed) < self._probability


def as_embedding(embedding: Any) -> Callable[[Any], Any]:
    """A function from tokens to inputs, also where the matrix float [tokens, depth] is given."""
    if callable(embedding):
        function: Callable[[Any], Any] = embedding
        return function
    return lambda tokens: tf.nn.embedding_lookup(embedding, tokens)


def checked_tokens(start_tokens: Any, end_token: Any) -> tuple[Any, Any]:
    """Both as int32.

    Raises:
      ValueError: unless they are [batch] and a number.
    """
    start_tokens = tf.convert_to_tensor(start_tokens, tf.int32, name="start_tokens")
    end_token = tf.convert_to_tensor(end_token, tf.int32, name="end_token")
    if start_tokens.shape.ndims != 1:
        raise ValueError(f"start_tokens must be [batch], got shape {start_tokens.shape}")
    if end_token.shape.ndims != 0:
        raise ValueError(f"end_token must be a number, got shape {end_token.shape}")
    return start_tokens, end_token


def _draw_tokens(logits: Any, seed: int | None) -> Any:
    return tf.reshape(tf.multinomial(logits, 1, seed=seed, output_dtype=tf.int32), [-1])


def _transposed(tensor: Any) -> Any:
    """A tensor [a, b, ...] as [b, a, ...]."""
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.ndims)])


def _array_of(tensor: Any) -> Any:
    """A `TensorArray` of the steps of a tensor [steps, batch, ...]."""
    array = tf.TensorArray(tensor.dtype, tf.shape(tensor)[0], element_shape=tensor.shape[1:])
    return array.unstack(tensor)

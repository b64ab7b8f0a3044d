"""Attention that never looks back (C. Raffel et al., 2017, https://arxiv.org/abs/1704.00784)."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written.seq2seq.attention import (
    AttentionMechanism,
    BahdanauAttention,
    LuongAttention,
)

_MODES = ("recursive", "parallel", "hard")
# Products of many probabilities are divided by; smaller ones count as this.
_LEAST = 1e-10


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """The probability that each step of the memory is the one that is chosen.

    From the step that was chosen before one goes on, and each step is chosen with its probability,
    or left for the next one (equations 8 to 11 of the paper).

    Args:
      p_choose_i: float [batch, steps], the probability to choose a step that one has come to.
      previous_attention: float [batch, steps], the weights of the output before; 1 at the first
        step and 0 elsewhere for the first output.
      mode: "recursive" and "parallel" give expectations, the first one step after the other, the
        second by cumulative sums, which are less exact where probabilities are near 1; "hard"
        takes probabilities of 0 and 1 and gives one step, or none.

    Returns:
      Float [batch, steps]; rows add up to 1 at most.

    Raises:
      ValueError: for another mode.
    """
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(_MODES)}, got {mode!r}")
    chosen, before = tf.convert_to_tensor(p_choose_i), tf.convert_to_tensor(previous_attention)
    if mode == "hard":
        reached = chosen * tf.cumsum(before, axis=1)
        return reached * tf.math.cumprod(1 - reached, axis=1, exclusive=True)
    if mode == "parallel":
        passed = _product_of_those_before(1 - chosen)
        return chosen * passed * tf.cumsum(before / tf.clip_by_value(passed, _LEAST, 1.0), axis=1)
    # q_j = (1 - p_{j-1}) q_{j-1} + before_j, weights p_j q_j; over steps first.
    passed = tf.concat([tf.ones_like(chosen[:, :1]), 1 - chosen[:, :-1]], 1)
    reached = tf.scan(
        lambda q, at: at[0] * q + at[1],
        (tf.transpose(passed), tf.transpose(before)),
        tf.zeros_like(chosen[:, 0]),
    )
    weights = chosen * tf.transpose(reached)
    weights.set_shape(chosen.shape)
    return weights


def _product_of_those_before(values: Any) -> Any:
    """For each step the product of the values before it, [batch, steps], by sums of logarithms."""
    tiny = values.dtype.as_numpy_dtype(2.0**-126 if values.dtype != tf.float16 else 2.0**-14)
    return tf.exp(tf.cumsum(tf.log(tf.clip_by_value(values, tiny, 1.0)), axis=1, exclusive=True))


class _Monotonic(AttentionMechanism):
    """Scores are of choosing a step, not of one against the others."""

    def _set(self, noise: float, seed: int | None, bias: float, mode: str) -> None:
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, got {mode!r}")
        self._noise, self._seed, self._bias, self._mode = noise, seed, bias, mode

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Before the first output one is at the first step: float [batch, steps]."""
        return tf.one_hot(tf.zeros([batch_size], tf.int32), self.alignments_size, dtype=dtype)

    def _shifted(self, scores: Any) -> Any:
        start = tf.constant_initializer(self._bias)
        return scores + tf.get_variable("attention_score_bias", [], self.dtype, start)

    def _weights(self, scores: Any, state: Any) -> Any:
        if self._noise > 0:
            drawn = tf.random_normal(tf.shape(scores), dtype=scores.dtype, seed=self._seed)
            scores += self._noise * drawn
        chosen = tf.cast(scores > 0, scores.dtype) if self._mode == "hard" else tf.sigmoid(scores)
        return monotonic_attention(chosen, state, self._mode)


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """`LuongAttention` that never looks back.

    Args:
      num_units: see `LuongAttention`.
      memory: see there.
      memory_sequence_length: see there.
      scale: see there.
      score_mask_value: see there.
      sigmoid_noise: the deviation of normal noise that is added to scores, in training.
      sigmoid_noise_seed: of the noise.
      score_bias_init: what a bias starts from, which is added to scores.
      mode: see `monotonic_attention`.
      dtype: see `LuongAttention`.
      name: see there.
    """

    _SCOPE = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: float | None = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        self._set(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)
        super().__init__(
            num_units, memory, memory_sequence_length, scale, None, score_mask_value, dtype, name
        )


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """`BahdanauAttention` that never looks back.

    Args:
      num_units: see `BahdanauAttention`.
      memory: see there.
      memory_sequence_length: see there.
      normalize: see there.
      score_mask_value: see there.
      sigmoid_noise: see `LuongMonotonicAttention`.
      sigmoid_noise_seed: see there.
      score_bias_init: see there.
      mode: see there.
      dtype: see `BahdanauAttention`.
      name: see there.
    """

    _SCOPE = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: float | None = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        self._set(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)
        super().__init__(
            *(num_units, memory, memory_sequence_length, normalize, None),
            *(score_mask_value, dtype, name),
        )

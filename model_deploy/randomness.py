"""Makes random ops functions of seed and step, so that a resumed run draws the same numbers."""

import contextlib
import contextvars
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals

# Suffix of the constants computed from an op's seeds; `copying` changes their values per copy.
SEED_BY_STEP = "/by_step/seed"

_batch: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    "number of the batch that model_fn is called for, over all replicas", default=None
)
_is_by_step = contextvars.ContextVar("model_fn is called by random_by_step", default=False)

# Type of op -> function (op, seed) that draws from the same distribution with a stateless op.
_STATELESS: dict[str, Callable[[Any, Any], Any]] = {
    "RandomUniform": lambda op, seed: tf.random.stateless_uniform(
        op.inputs[0], seed, dtype=op.outputs[0].dtype
    ),
    "RandomStandardNormal": lambda op, seed: tf.random.stateless_normal(
        op.inputs[0], seed, dtype=op.outputs[0].dtype
    ),
    "TruncatedNormal": lambda op, seed: tf.random.stateless_truncated_normal(
        op.inputs[0], seed, dtype=op.outputs[0].dtype
    ),
    "RandomUniformInt": lambda op, seed: tf.random.stateless_uniform(
        op.inputs[0], seed, op.inputs[1], op.inputs[2], op.outputs[0].dtype
    ),
    "Multinomial": lambda op, seed: tf.random.stateless_categorical(
        op.inputs[0], op.inputs[1], seed, op.outputs[0].dtype
    ),
}
_OTHERS = {"RandomGamma", "RandomPoissonV2", "RandomShuffle", "ParameterizedTruncatedNormal"}


def random_by_step(model_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a model function: its random ops, such as dropout, depend on seed and global step.

    TensorFlow's random ops count how often their process has run them, so a run resumed from a
    checkpoint draws other numbers than an uninterrupted one.  After each call of `model_fn` every
    random op with a seed (`tf.set_random_seed` gives one to all) is replaced by a stateless op
    with the seed `(hash of the op's seeds, step)`.

    Ops without a seed stay: they are meant to differ from run to run.  Ops of initial values stay:
    they run once.  Ops in loops, conditions and functions, and ops whose distribution has no
    stateless op, stay as well, and are named in one line on stderr.

    With `DeploymentConfig.global_parts` the seed depends on the seed of the graph or op, the number
    of the batch within the global batch, and the op's order in `model_fn`: it does not matter which
    replica takes a batch.

    Layers of Keras 3 then draw their seeds from the step as well, and not from their counters.

    Args:
      model_fn: a function for `deploy`, called once per clone.

    Returns:
      A function with the same arguments and results.
    """

    @functools.wraps(model_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        graph = tf.get_default_graph()
        before = len(graph.get_operations())
        token = _is_by_step.set(True)
        try:
            outputs = model_fn(*args, **kwargs)
        finally:
            _is_by_step.reset(token)
        _replace(graph.get_operations()[before:])
        return outputs

    return wrapped


@contextlib.contextmanager
def for_batch(number: int | None) -> Iterator[None]:
    """Tells `model_fn`, called in the `with` block, the number of its batch in the global batch."""
    token = _batch.set(number)
    try:
        yield
    finally:
        _batch.reset(token)


def batch_number() -> int | None:
    """Returns the number given to `for_batch`; None outside, or if any replica's numbers may do."""
    return _batch.get()


def is_by_step() -> bool:
    """Whether the `model_fn` now running was wrapped by `random_by_step`."""
    return _is_by_step.get()


def seed_of_copy(number: int, copy: int | str) -> int:
    """Returns the 64-bit seed of a copied clone for a seed of the first clone.

    Args:
      number: the first clone's seed.
      copy: identifies the copy.
    """
    return _hashed(f"{number} {copy}")


def _replace(ops: list[Any]) -> None:
    """Replaces seeded random ops among `ops` by stateless ones; reports those that it cannot."""
    random_ops = [op for op in ops if op.type in _STATELESS or op.type in _OTHERS]
    if not random_ops:
        return
    variables = tf.global_variables() + tf.local_variables()
    for_initial_values = graph_walk.ancestors(variable.initializer for variable in variables)
    kept = []
    replaced = 0
    for op in random_ops:
        if op in for_initial_values or not (op.get_attr("seed") or op.get_attr("seed2")):
            continue
        if op.type in _OTHERS or internals.in_old_control_flow(op):
            kept.append(op.name)
        else:
            _replace_op(op, replaced)
            replaced += 1
    if kept:
        print(
            f"not a function of the step: {', '.join(kept)} (a resumed run will differ)",
            file=sys.stderr,
        )


def _replace_op(op: Any, order: int) -> None:
    """Connects the consumers of a random op, the `order`-th of the model, to a stateless op."""
    with tf.name_scope(f"{op.name}/by_step/"), tf.device(op.device):
        step = tf.cast(tf.identity(tf.train.get_or_create_global_step()), tf.int64)
        values = _STATELESS[op.type](op, tf.stack([_number(op, order), step]))
    [output] = op.outputs
    for consumer in output.consumers():
        for index, tensor in enumerate(consumer.inputs):
            if tensor.name == output.name:
                internals.replace_input(consumer, index, values)


def _number(op: Any, order: int) -> Any:
    """Returns the op's two seeds as one int64; with `for_batch` the batch number takes part."""
    batch = _batch.get()
    seeds = f"{op.get_attr('seed')} {op.get_attr('seed2')}"
    if batch is not None:  # not the second seed: it depends on the number of ops in the graph
        seeds = f"{op.get_attr('seed')} {order} {batch}"
    return tf.constant(_hashed(seeds), tf.int64, name="seed")


def _hashed(text: str) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)

"""`look_up`: rows of ids, one by one or combined; dense, ragged and sparse ids, with weights."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.checks import check_choice
from model_deploy.embeddings.exchange import Request, answer
from model_deploy.embeddings.shards import Shards
from model_deploy.embeddings.table import FixedTable, GrowingTable

COMBINERS = ("mean", "sum", "sqrtn")

# The requests of the part that is being built, and its deployment.
_asking: contextvars.ContextVar[tuple[Any, list[Request]] | None] = contextvars.ContextVar(
    "requests of the part that is being built", default=None
)


def look_up(
    table: FixedTable | GrowingTable,
    ids: Any,
    weights: Any = None,
    *,
    combiner: str | None = None,
    is_training: bool = True,
) -> Any:
    """Returns the rows of ids, or one combined row for each example.

    In `model_fn` all clones of a worker look up together: each id crosses to a parameter server
    once per step, and so does the gradient of its row.  Makes the variables of the table, or finds
    them, in whatever variable scope it is called.  Programs that call `apply_gradients` themselves
    call `connect_slots` afterwards.

    Args:
      table: the table.
      ids: int32, int64 or string.  A `Tensor` of any shape, a `RaggedTensor` or `SparseTensor`
        [examples, ids of each].  Integers are at least 0.  Strings stand for 63 bits of their hash
        (`tf.strings.to_hash_bucket_fast`): of n strings, some n^2 / 2^64 share a row with another.
      weights: float32, of the same structure as `ids`; only with a combiner.
      combiner: None for a row per id; `sum` for the sum over the ids of an example, each times its
        weight, `mean` for that sum divided by the sum of the weights, `sqrtn` for that sum divided
        by the root of the sum of their squares; an example without ids gets zeros.
      is_training: whether a growing table makes rows and notes which are used.  A look-up that does
        not comes after those of the step that do.

    Returns:
      float32 [..., width]: without a combiner of the structure of `ids`; with one, the last
      dimension of `ids` is combined.

    Raises:
      ValueError: if a type, rank or structure is another one, or inside of a loop or condition.
    """
    with _not_compiled():
        ids, weights, like = _flat(table, ids, weights, combiner)
        rows = _rows(table, ids, is_training)
        if combiner is None:
            return like.with_rows(rows)
        return _combined(rows, weights, like, combiner)


class _Structure:
    """Where the ids of a tensor, flat, belong.

    Attributes:
      ids: the ids as given.
      examples: the example of each id, int64 [ids].
      num_examples: number of examples, an integer scalar.
      shape: shape of the examples, an int tensor.
    """

    def __init__(self, ids: Any) -> None:
        self.ids = ids
        self.shape: Any = None
        if isinstance(ids, tf.RaggedTensor):
            self.flat = ids.values
            self.examples, self.num_examples = ids.value_rowids(), ids.nrows()
        elif isinstance(ids, tf.SparseTensor):
            self.flat = ids.values
            self.examples, self.num_examples = ids.indices[:, 0], ids.dense_shape[0]
        else:
            self.flat = tf.reshape(ids, [-1])
            self.shape = tf.shape(ids)
            if ids.shape.rank:
                self.num_examples = tf.reduce_prod(self.shape[:-1])
                self.examples = tf.repeat(tf.range(self.num_examples), self.shape[-1])

    def with_rows(self, rows: Any) -> Any:
        """Returns rows, float32 [ids, width], in the structure of the ids."""
        if isinstance(self.ids, tf.RaggedTensor):
            return self.ids.with_values(rows)
        shaped = tf.reshape(rows, tf.concat([self.shape, tf.shape(rows)[1:]], 0))
        shaped.set_shape([*self.ids.shape.as_list(), rows.shape[-1]])
        return shaped


def _flat(table: Any, ids: Any, weights: Any, combiner: str | None) -> tuple[Any, Any, _Structure]:
    """Returns ids as int64 [n], weights as float32 [n] or None, and where they belong."""
    where = f"table {table.name}"
    if not isinstance(ids, (tf.RaggedTensor, tf.SparseTensor)):
        ids = tf.convert_to_tensor(ids)
    if ids.dtype not in (tf.int32, tf.int64, tf.string):
        raise ValueError(f"{where}: ids must be int32, int64 or string, got {ids.dtype.name}")
    if combiner is not None:
        check_choice("combiner", combiner, COMBINERS)
    elif isinstance(ids, tf.SparseTensor):
        raise ValueError(f"{where}: combiner must be given for ids in a SparseTensor, got None")
    elif weights is not None:
        raise ValueError(f"{where}: combiner must be given with weights, got None")
    rank = ids.shape.rank
    if rank is None or (isinstance(ids, (tf.RaggedTensor, tf.SparseTensor)) and rank != 2):
        raise ValueError(
            f"{where}: ids must be a tensor of known rank, or ragged or sparse of rank 2, got "
            f"rank {rank}"
        )
    if combiner is not None and rank == 0:
        raise ValueError(f"{where}: ids must have a dimension to combine, got rank 0")
    structure = _Structure(ids)
    if weights is not None:
        weights = _flat_weights(where, ids, weights)
    flat = structure.flat
    if flat.dtype == tf.string:
        return tf.strings.to_hash_bucket_fast(flat, tf.int64.max), weights, structure
    return tf.cast(flat, tf.int64), weights, structure


def _flat_weights(where: str, ids: Any, weights: Any) -> Any:
    """Returns weights [n] of ids of the same structure."""
    if isinstance(ids, (tf.RaggedTensor, tf.SparseTensor)):
        if type(weights) is not type(ids):
            raise ValueError(
                f"{where}: weights must be a {type(ids).__name__} as ids are, got "
                f"{type(weights).__name__}"
            )
        flat = weights.values
    else:
        flat = tf.reshape(tf.convert_to_tensor(weights), [-1])
    same = tf.debugging.assert_equal(
        tf.size(flat),
        tf.size(_Structure(ids).flat),
        message=f"{where}: weights must be as many as ids",
    )
    with tf.control_dependencies([same]):
        return tf.cast(flat, tf.float32)


def _combined(rows: Any, weights: Any, like: _Structure, combiner: str) -> Any:
    """Returns one row for each example; see `look_up`."""
    examples, num_examples = like.examples, like.num_examples
    if weights is None:
        weights = tf.ones([tf.shape(rows)[0]])
    total = tf.math.unsorted_segment_sum(rows * weights[:, tf.newaxis], examples, num_examples)
    if combiner != "sum":
        squared = combiner == "sqrtn"
        of_each = weights**2 if squared else weights
        size = tf.math.unsorted_segment_sum(of_each, examples, num_examples)
        total = tf.math.divide_no_nan(total, (tf.sqrt(size) if squared else size)[:, tf.newaxis])
    if like.shape is None:
        total.set_shape([None, rows.shape[-1]])
        return total
    return tf.reshape(total, tf.concat([like.shape[:-1], tf.shape(rows)[1:]], 0))


def _rows(table: Any, ids: Any, is_training: bool) -> Any:
    """Returns a row, float32 [n, width], for each id, int64 [n]."""
    asking = _asking.get()
    config = None if asking is None else asking[0]
    if tf.get_default_graph().building_function:
        raise ValueError(
            f"table {table.name}: look_up must be called outside of loops, conditions and "
            "functions, got a call inside of one"
        )
    shards = Shards(table, config)
    # Of the look-ups of all clones; it takes their place when all are known.
    unique = tf.placeholder(tf.float32, [None, table.width], f"{table.name}/unique")
    positions = tf.placeholder(tf.int32, [None], f"{table.name}/positions")
    request = Request(shards, ids, unique, positions, is_training)
    # `gather_nd` of a matrix of indices has a dense gradient: the sum for each unique id.
    rows = tf.gather_nd(unique, positions[tf.newaxis, :, tf.newaxis])[0]
    if asking is None:
        answer([[request]], "/device:CPU:0")
    else:
        asking[1].append(request)
    return rows


def _not_compiled() -> contextlib.AbstractContextManager[Any]:
    """Opens a scope of ops that `xla` leaves alone.

    Their sizes are those of a step's ids.  XLA would compile them anew for each, and takes the
    largest possible number for that of ids in the rows of a ragged tensor.
    """
    asking = _asking.get()
    if asking is None or not asking[0].xla:
        return contextlib.nullcontext()
    scope: contextlib.AbstractContextManager[Any] = tf.xla.experimental.jit_scope(compile_ops=False)
    return scope


@contextlib.contextmanager
def asking_for(config: Any) -> Iterator[list[Request]]:
    """A `with` block of `model_fn` in which look-ups are noted, and answered later.

    Yields:
      The list of the requests.
    """
    requests: list[Request] = []
    token = _asking.set((config, requests))
    try:
        yield requests
    finally:
        _asking.reset(token)

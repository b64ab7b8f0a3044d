"""Collective ops on single tensors, compared with what NumPy makes of all processes' values."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import model_deploy.horovod as hvd
from tests.horovod.jobs import joined_as, run_job

SIZE = 4
_RANDOM = np.random.RandomState(1)
FLOATS = _RANDOM.randn(SIZE, 2, 3).astype(np.float32)
NUMBERS = _RANDOM.randint(-9, 9, [SIZE, 5])
COUNTS = [2, 0, 3, 1]
SPLITS = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [3, 1, 0, 1], [0, 2, 0, 0]])
pytestmark = pytest.mark.one_mode


def _rows(rank, count, dtype=np.float64):
    """Rows that are told apart."""
    return (100 * rank + np.arange(2 * count).reshape(count, 2)).astype(dtype)


def _of_numpy(a, b):
    """Adasum of two."""
    dot = np.sum(a * b)
    return (1 - dot / (2 * np.sum(a * a))) * a + (1 - dot / (2 * np.sum(b * b))) * b


def _build(rank):
    own = tf.constant(FLOATS[rank])
    numbers = tf.constant(NUMBERS[rank], tf.int64)
    unknown = tf.placeholder_with_default(FLOATS[rank], [None, None])
    sparse = tf.IndexedSlices(
        tf.constant(_rows(rank, COUNTS[rank], np.float32)),
        tf.range(COUNTS[rank]),
        tf.constant([5, 2]),
    )
    variables = [
        tf.get_variable("floats", initializer=FLOATS[rank]),
        tf.get_variable("bytes", initializer=NUMBERS[rank].astype(np.int8)),
        tf.get_variable("flag", initializer=rank == 2),
    ]
    with tf.control_dependencies([hvd.broadcast_variables(variables, root_rank=2)]):
        after = [variable.read_value() for variable in variables]
    return [], {
        "average": hvd.allreduce(own),
        "average of integers": hvd.allreduce(numbers),
        "sum": hvd.allreduce(numbers, average=False),
        "of bytes": hvd.allreduce(tf.cast(numbers, tf.int8), op=hvd.Sum),
        "of unknown shape": hvd.allreduce(unknown, op=hvd.Sum, name="of unknown shape"),
        "scaled": hvd.allreduce(own, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0),
        "adasum": hvd.allreduce(own, op=hvd.Adasum),
        "of rows": hvd.allreduce(sparse),
        "gathered": hvd.allgather(tf.constant(_rows(rank, COUNTS[rank])), name="rows"),
        "gathered flags": hvd.allgather(tf.constant([rank == 1])),
        "broadcast": hvd.broadcast(own, 3),
        "exchanged": hvd.alltoall(tf.constant(_rows(rank, SIZE))),
        "exchanged by splits": hvd.alltoall(
            tf.constant(_rows(rank, SPLITS[rank].sum())), splits=SPLITS[rank]
        ),
        "variables": after,
    }


def test_values_of_all_processes():
    """Each op gives each process what it is to get, of any types and numbers of rows."""
    found = [values for _, values in run_job(SIZE, _build)]
    gathered = np.concatenate([_rows(rank, COUNTS[rank]) for rank in range(SIZE)])
    a, b, c, d = FLOATS.astype(np.float64)
    for rank, values in enumerate(found):
        expected = {
            "average": FLOATS.mean(0),
            "average of integers": NUMBERS.sum(0) // SIZE,
            "sum": NUMBERS.sum(0),
            "of bytes": NUMBERS.sum(0).astype(np.int8),
            "of unknown shape": FLOATS.sum(0),
            "scaled": 6 * FLOATS.sum(0),
            "adasum": _of_numpy(_of_numpy(a, b), _of_numpy(c, d)),
            "gathered": gathered,
            "gathered flags": [False, True, False, False],
            "broadcast": FLOATS[3],
            "exchanged": [_rows(other, SIZE)[rank] for other in range(SIZE)],
        }
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(values["of rows"].values, gathered / SIZE)
        np.testing.assert_array_equal(values["of rows"].indices, [0, 1, 0, 1, 2, 0])
        rows, counts = values["exchanged by splits"]
        np.testing.assert_array_equal(counts, SPLITS[:, rank])
        begins = np.cumsum(SPLITS, axis=1) - SPLITS
        parts = [
            _rows(other, SPLITS[other].sum())[begins[other, rank] :][: SPLITS[other, rank]]
            for other in range(SIZE)
        ]
        np.testing.assert_array_equal(rows, np.concatenate(parts))
        floats, numbers, flag = values["variables"]
        np.testing.assert_array_equal(floats, FLOATS[2])
        np.testing.assert_array_equal(numbers, NUMBERS[2])
        assert flag


def test_a_process_alone_gets_its_own():
    """Without other processes nothing changes, and no server is needed."""
    [(_, values)] = run_job(
        1,
        lambda rank: (
            hvd.broadcast_global_variables(0),
            [
                hvd.allreduce(tf.constant([1.0, 2.0])),
                hvd.allgather(tf.constant([[3]])),
                hvd.alltoall(tf.constant([4.0])),
                hvd.broadcast(tf.constant(5), 0),
            ],
        ),
    )
    assert [np.ravel(value).tolist() for value in values] == [[1.0, 2.0], [3], [4.0], [5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda: hvd.allreduce(1.0, average=True, op=hvd.Sum), "op must be None", id="both"
        ),
        pytest.param(lambda: hvd.allreduce(1.0, op=1), "hvd.Adasum, got 1", id="op"),
        pytest.param(
            lambda: hvd.allreduce(1.0, compression="fp16"), "none or .fp16, got 'fp16'", id="16"
        ),
        pytest.param(lambda: hvd.allreduce("a"), "of numbers to be sent, got string", id="text"),
        pytest.param(lambda: hvd.allgather(1.0), "must have rows", id="scalar"),
        pytest.param(lambda: hvd.broadcast(1.0, 3), "less than 3, got 3", id="root"),
        pytest.param(
            lambda: hvd.broadcast(tf.placeholder_with_default([1], [None]), 0),
            "must have a known shape",
            id="shape",
        ),
        pytest.param(
            lambda: hvd.allreduce([1.0], op=hvd.Adasum), "power of two .* got 3", id="adasum"
        ),
    ],
)
def test_bad_arguments(call, message):
    """What cannot be done is said when the op is built."""
    with joined_as(0, 3), pytest.raises(ValueError, match=message):
        call()


def test_a_session_without_the_server_is_refused():
    """A session in the process names the device of the worker that it does not have."""
    with joined_as(1, 2):
        total = hvd.allreduce([1.0])
    config = tf.ConfigProto(allow_soft_placement=True)
    with (
        tf.Session(config=config) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="/job:worker/task:1"),
    ):
        session.run(total)


def test_gradients_of_rows_and_of_a_broadcast():
    """The gradient of what all get from a process is the sum of all gradients of it, and has a
    gradient itself; that of a row which another process gets is what this one makes of it.
    """

    def build(rank):
        factor = rank + 1.0
        rows = tf.constant(_rows(rank, COUNTS[rank]))
        places = tf.range(sum(COUNTS), dtype=tf.float64)[:, tf.newaxis]
        gathered = tf.cast(factor, tf.float64) * places * hvd.allgather(rows, name="rows")
        own = tf.constant(FLOATS[rank])
        [once] = tf.gradients(hvd.broadcast(own, 1) ** 3, own)
        parts = tf.constant(_rows(rank, SPLITS[rank].sum(), np.float32))
        exchanged, _ = hvd.alltoall(parts, splits=SPLITS[rank])
        return [], [
            tf.gradients(gathered, rows)[0],
            tf.gradients(factor * hvd.broadcast(own, 2), own)[0],
            tf.gradients(factor * exchanged, parts)[0],
            tf.gradients(once, own)[0],
        ]

    factors, first = sum(range(1, SIZE + 1)), np.cumsum([0, *COUNTS])
    for rank, (_, found) in enumerate(run_job(SIZE, build)):
        of_rows = factors * np.arange(first[rank], first[rank + 1])[:, np.newaxis]
        of_parts = np.repeat(np.arange(1.0, SIZE + 1), SPLITS[rank])[:, np.newaxis]
        np.testing.assert_allclose(found[0], np.tile(of_rows, [1, 2]))
        np.testing.assert_allclose(found[1], np.full([2, 3], factors * (rank == 2)))
        np.testing.assert_allclose(found[2], np.tile(of_parts, [1, 2]))
        # In each process 3 b^2 of the b that all have; their sum counts for one, and so does 6 b.
        again = SIZE * 6 * FLOATS[1] * (rank == 1)
        np.testing.assert_allclose(found[3], again, rtol=1e-5)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64, tf.int32, tf.bool])
def test_compressed_values(dtype):
    """Floats of any size are compressed to 16 bits, as Horovod does, and come back; others stay."""
    tensor = tf.ones([2], dtype)
    compressed, kept = hvd.Compression.fp16.compress(tensor)
    assert compressed.dtype == (tf.float16 if dtype.is_floating else dtype)
    assert hvd.Compression.fp16.decompress(compressed, kept).dtype == dtype
    assert hvd.Compression.none.compress(tensor)[0] is tensor


@pytest.mark.parametrize(("op", "share"), [(hvd.Sum, 1.0), (hvd.Average, 1 / SIZE)])
def test_gradient_of_allreduce(op, share):
    """The gradient of what all get is what the same reduction makes of all gradients of it."""

    def build(rank):
        own = tf.constant(FLOATS[rank])
        reduced = hvd.allreduce(own, op=op)
        return [], tf.gradients((rank + 1.0) * reduced, own)

    factors = sum(range(1, SIZE + 1)) * share
    for _, [gradient] in run_job(SIZE, build):
        np.testing.assert_allclose(gradient, np.full([2, 3], factors), rtol=1e-6)

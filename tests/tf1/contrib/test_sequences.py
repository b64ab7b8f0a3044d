"""`tf.contrib.training.batch_sequences_with_states`: segments with the states saved before them."""

from concurrent import futures

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells
from model_deploy.tf1.contrib.written import sequences
from tests.tf1.contrib.sessions import read

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # queues and cells are deprecated
]

_LENGTHS = [5, 2, 7, 4]  # eight segments of three steps: four batches


def _batches(**options):
    """Four sequences, of the numbers from 10 times their own; the state sums them."""
    number = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    length = tf.gather(tf.constant(_LENGTHS), number)
    return sequences.batch_sequences_with_states(
        tf.as_string(number),
        {"x": tf.cast(10 * number + tf.range(length), tf.float32)},
        {"number": number},
        length,
        {"sum": tf.zeros([])},
        num_unroll=3,
        batch_size=2,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"num_threads": 1, "capacity": None}])
def test_states_go_along_with_their_sequences(options):
    """Each segment has its place in its sequence, its length, and the sum of those before it."""
    batch = _batches(**options)
    total = batch.state("sum") + tf.reduce_sum(batch.sequences["x"], 1)
    fetched = {
        "number": batch.context["number"],
        "sequence": batch.sequence,
        "count": batch.sequence_count,
        "length": batch.length,
        "total_length": batch.total_length,
        "before": batch.state("sum"),
        "x": batch.sequences["x"],
        "key": batch.key,
        "size": batch.batch_size,
        "saved": batch.save_state("sum", total),
    }
    rows = {}
    for each in read(fetched):
        for row in range(each["size"]):
            values = {
                key: value[row] for key, value in each.items() if key not in ("size", "saved")
            }
            rows[values["number"], values["sequence"]] = values
    expected = {(n, s) for n, length in enumerate(_LENGTHS) for s in range(-(-length // 3))}
    assert set(rows) == expected
    for (number, place), values in rows.items():
        whole = 10 * number + np.arange(_LENGTHS[number])
        part = whole[3 * place : 3 * place + 3]
        count = -(-_LENGTHS[number] // 3)
        assert values["x"].tolist() == [*part, *[0] * (3 - len(part))]
        assert values["before"] == whole[: 3 * place].sum()
        assert (values["length"], values["total_length"]) == (len(part), len(whole))
        assert values["count"] == count
        assert values["key"] == f"{place:05d}_of_{count:05d}:{number}".encode()


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_who_waits_when_the_input_ends(batch_size):
    """A batch that is waited for at the end of the input comes with the segments that there are;
    the next one has the segment behind them, and after the last one the input is over.
    """
    initial = {"sum": tf.zeros([])}
    saver = sequences.SequenceQueueingStateSaver(
        tf.constant(batch_size),
        3,
        6,
        "key",
        {"x": tf.range(6.0)},
        {},
        initial,
        allow_small_batch=True,
    )
    batch = saver.next_batch
    total = batch.state("sum") + tf.reduce_sum(batch.sequences["x"], 1)
    fetched = [batch.sequence, batch.state("sum"), batch.save_state("sum", total)]
    close = saver.close()
    with tf.Session() as session, futures.ThreadPoolExecutor(1) as pool:
        session.run(saver.prefetch_op)
        first = pool.submit(session.run, fetched)
        assert not futures.wait([first], 0.3).done or batch_size == 1
        session.run(close)
        assert [each.tolist() for each in first.result(60)[:2]] == [[0], [0.0]]
        assert [each.tolist() for each in session.run(fetched)[:2]] == [[1], [3.0]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(fetched)


def test_state_saving_rnn():
    """`static_state_saving_rnn` goes on where the last segment of a sequence ended."""
    number = tf.train.range_input_producer(1, num_epochs=1).dequeue()
    whole = tf.constant(np.random.RandomState(0).normal(size=[6, 2]), tf.float32)
    batch = sequences.batch_sequences_with_states(
        tf.as_string(number),
        {"x": whole},
        {},
        None,
        {"state": tf.zeros([4])},
        3,
        1,
        allow_small_batch=False,
    )
    cell = cells.BasicRNNCell(4, name="cell")
    outputs, _ = tf.nn.static_state_saving_rnn(
        cell, tf.unstack(batch.sequences["x"], axis=1), batch, "state", scope="same"
    )
    with tf.variable_scope("", reuse=True):
        expected, _ = tf.nn.dynamic_rnn(cell, whole[tf.newaxis], dtype=tf.float32, scope="same")
    found = read([tf.stack(outputs, 1), expected])
    segments = np.concatenate([each[0] for each in found], 1)
    np.testing.assert_allclose(segments, found[0][1], rtol=1e-5)


def _saver(**options):
    given = {"x": tf.zeros([3])}, {}, {"s": tf.zeros([])}
    arguments = dict(
        zip(("input_sequences", "input_context", "initial_states"), given, strict=True)
    )
    return sequences.SequenceQueueingStateSaver(2, 3, 3, "key", **{**arguments, **options})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: _saver(input_context={"x": 1}), ValueError, r"in all dicts, got \['x', 'x'"),
        (lambda: _saver(initial_states={}), ValueError, "at least one state, got none"),
        (
            lambda: _saver(input_context={"c": tf.placeholder(tf.float32, [None])}),
            ValueError,
            r"must be known but for the steps, got \{'c': \[None\]\}",
        ),
        (lambda: _saver().next_batch.state("no"), KeyError, r"one of \['s'\], got 'no'"),
        (
            lambda: sequences.batch_sequences_with_states("k", {}, {}, 1, {}, 0, 1),
            ValueError,
            "at least 1, got 0, 1 and 0",
        ),
    ],
)  # fmt: skip
def test_refusals(make, error, message):
    """What cannot be is told with its values."""
    with pytest.raises(error, match=message):
        make()

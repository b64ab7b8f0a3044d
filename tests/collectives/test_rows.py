"""Numbers of rows that processes send, and what servers keep of them."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import model_deploy.horovod as hvd
from model_deploy.collectives import rows_to_send
from tests.horovod.jobs import run_job

pytestmark = pytest.mark.one_mode
SIZE = 2


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_rows_to_send(dtype):
    """All processes send what the one with the most rows has, and 1 / 16 more at most, so that few
    numbers are ever sent: up to 2^12 rows, 16 x 9.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        several = tf.map_fn(rows_to_send, tf.range(1, 2**12 + 1, dtype=dtype))
        most = rows_to_send(tf.constant([7, 2**30], dtype))
        found, largest, least = session.run([several, most, rows_to_send(tf.zeros([2], dtype))])
    needed = np.arange(1, 2**12 + 1)
    assert np.all((found >= needed) & (found - needed <= needed / 16))
    assert len(set(found)) == 16 * 9
    assert (largest, least) == (2**30, 1)


def _exchanged(how, counts):
    """A build of `run_job`: in its t-th step process r has or sends counts[t] rows of value r."""

    def build(rank):
        turn = tf.get_local_variable("turn", initializer=-1, use_resource=True)
        count = tf.gather(counts, turn.assign_add(1))
        rows = tf.fill([SIZE * count, 3], float(rank))
        if how == "allgather":
            result = hvd.allgather(rows, name="rows")
        elif how == "allreduce of rows":
            slices = tf.IndexedSlices(rows, tf.range(SIZE * count), tf.constant([99, 3]))
            result = hvd.allreduce(slices, op=hvd.Sum, name="rows").values
        elif how == "allreduce":
            return hvd.allreduce(rows, op=hvd.Sum, name="rows"), []
        elif how == "alltoall":
            result = hvd.alltoall(rows, name="rows")
        else:
            splits = tf.stack([count, count])
            result, _ = hvd.alltoall(rows, splits, name="rows")
        return result, []

    return build


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("allgather", lambda count: np.repeat([0, 1], 2 * count)),
        ("allreduce of rows", lambda count: np.repeat([0, 1], 2 * count)),
        ("allreduce", lambda count: np.ones(2 * count)),
        ("alltoall", lambda count: np.repeat([0, 1], count)),
        ("alltoall by splits", lambda count: np.repeat([0, 1], count)),
    ],
    ids=["allgather", "allreduce of rows", "allreduce", "alltoall", "alltoall by splits"],
)
def test_rows_differ_from_run_to_run(how, expected):
    """Rows may be more or fewer in each run, and in the first run of a second session."""
    for counts in ([3, 1, 0, 40], [1, 5, 3, 41]):
        for found, _ in run_job(SIZE, _exchanged(how, counts), runs=len(counts)):
            for rows, count in zip(found, counts, strict=True):
                np.testing.assert_array_equal(rows, np.tile(expected(count)[:, None], [1, 3]))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_tensors_without_elements(shape):
    """They are exchanged as others are: there is nothing to send, and each process goes on."""

    def build(rank):
        own = tf.fill(shape, float(rank))
        kernel = tf.get_variable("kernel", initializer=own)
        slices = tf.IndexedSlices(own, tf.range(shape[0]))
        optimizer = hvd.DistributedOptimizer(
            tf.train.MomentumOptimizer(1.0, 0.9), op=hvd.Adasum, name="optimizer"
        )
        return optimizer.minimize(tf.reduce_sum(2 * kernel)), [
            hvd.allreduce(own, name="plain"),
            hvd.allreduce(own, compression=hvd.Compression.fp16, name="narrow"),
            hvd.allreduce(own, op=hvd.Adasum, name="adasum"),
            hvd.broadcast(own, 1, name="broadcast"),
            hvd.alltoall(own, name="exchanged"),
            hvd.allgather(own, name="gathered"),
            hvd.allreduce(slices, name="slices").values,
        ]

    gathered = (SIZE * shape[0], *shape[1:])
    for _, values in run_job(SIZE, build):
        assert [value.shape for value in values] == [shape] * 5 + [gathered] * 2

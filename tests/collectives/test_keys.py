"""Keys of collective ops: servers remember shapes and dtypes by them, beyond a session."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.collectives import Collectives


def _key(shape, dtype=tf.float32):
    with tf.Graph().as_default() as graph:
        group = Collectives(["/job:worker/task:0/device:CPU:0"], 0, 2, "test")
        group.gather([tf.placeholder(dtype, shape)], "rows of a table")
        [op] = [op for op in graph.get_operations() if op.type == "CollectiveGather"]
        return op.get_attr("group_key")


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (([None, 3],), True),
        (([8, 3],), True),
        (([None, 4],), False),
        (([None],), False),
        (([None, 3], tf.int32), False),
    ],
)
def test_keys_of_models(other, is_same):
    """Models in which a name stands for rows of another kind have other keys, whatever the rows."""
    assert (_key([None, 3]) == _key(*other)) == is_same

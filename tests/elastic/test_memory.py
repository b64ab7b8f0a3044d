"""Values that a worker keeps between two worlds come back into the variables of the next graph."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.elastic import memory


@pytest.mark.parametrize("most", [1, 16, 1 << 20], ids=["each alone", "in packs", "all at once"])
def test_values_come_back(most, monkeypatch):
    """Each variable has its value, in as many runs as it takes; one that is not kept is left."""
    monkeypatch.setattr(memory, "_PACK_BYTES", most)
    with tf.Graph().as_default(), tf.Session() as session:
        dtypes = {"a": tf.float32, "b": tf.bool, "c": tf.uint8, "new": tf.float32}
        start = tf.ones_initializer()
        variables = {
            name: tf.get_variable(name, [2], dtype, start) for name, dtype in dtypes.items()
        }
        step = tf.train.get_or_create_global_step()
        kept = memory.Memory()
        assert kept.step is None
        kept_dtypes = [dtypes[name].as_numpy_dtype for name in "abc"]
        values = {
            name: np.array([0, 2], dtype) for name, dtype in zip("abc", kept_dtypes, strict=True)
        }
        kept.values = {**values, "global_step": np.int64(7)}
        session.run(tf.global_variables_initializer())
        before = session.run(variables["new"])
        kept.put_into(session)
        found, at = session.run([variables, step])
    assert kept.step == at == 7
    for name, value in {**values, "new": before}.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize(
    ("sizes", "packs"),
    [
        ([], []),
        ([9], [(0, 1)]),
        ([1, 1, 2], [(0, 3)]),
        ([2, 2, 1, 4], [(0, 2), (2, 3), (3, 4)]),
        ([9, 1, 9], [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_packs(sizes, packs, monkeypatch):
    """Of 4 bytes at most, or of one value that is larger."""
    monkeypatch.setattr(memory, "_PACK_BYTES", 4)
    assert list(memory._packs(sizes)) == packs

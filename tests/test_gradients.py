"""Sums and means of gradients, dense and sparse."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import average_gradients
from model_deploy.gradients import clip_by_global_norm, sum_gradients


def _variable(name="v", shape=(3, 2)):
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer())


def _rows(indices, first):
    values = np.arange(first, first + 2 * len(indices), dtype=np.float32).reshape(-1, 2)
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant([3, 2]))


def _evaluate(gradient):
    """The dense value of a gradient, repeated rows added up."""
    with tf.Session() as session:
        if not isinstance(gradient, tf.IndexedSlices):
            return session.run(gradient).tolist()
        rows = session.run(gradient)
        dense = np.zeros([3, 2], np.float32)
        np.add.at(dense, rows.indices, rows.values)
        return dense.tolist()


DENSE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
# The rows [10, 11] for row 0 and [12, 13] for row 2.
SPARSE = [[10.0, 11.0], [0.0, 0.0], [12.0, 13.0]]
CASES = {
    "dense": (["dense", "dense"], 2 * np.array(DENSE), False),
    "sparse": (["sparse", "sparse"], 2 * np.array(SPARSE), True),
    "one clone, sparse": (["sparse"], np.array(SPARSE), True),
    "one clone, dense": (["dense"], np.array(DENSE), False),
    "dense and sparse": (["dense", "sparse"], np.array(DENSE) + SPARSE, False),
    "sparse and dense": (["sparse", "dense"], np.array(DENSE) + SPARSE, False),
    "None and dense": ([None, "dense"], np.array(DENSE), False),
    "None and sparse": (["sparse", None], np.array(SPARSE), True),
}


def _towers(kinds, variable):
    make = {
        None: lambda: None,
        "dense": lambda: tf.constant(DENSE),
        "sparse": lambda: _rows([0, 2], 10),
    }
    return [[(make[kind](), variable)] for kind in kinds]


@pytest.mark.parametrize(("kinds", "expected", "is_sparse"), CASES.values(), ids=CASES)
def test_sum(kinds, expected, is_sparse):
    """Gradients add up, None counts as zero, and sparse ones stay sparse."""
    variable = _variable()
    [(gradient, summed_for)] = sum_gradients(_towers(kinds, variable))
    assert summed_for is variable
    assert isinstance(gradient, tf.IndexedSlices) == is_sparse
    assert _evaluate(gradient) == expected.tolist()


@pytest.mark.parametrize(("kinds", "expected", "is_sparse"), CASES.values(), ids=CASES)
def test_average(kinds, expected, is_sparse):
    """The average is the sum divided by the number of towers, those with None included."""
    [(gradient, _)] = average_gradients(_towers(kinds, _variable()))
    assert isinstance(gradient, tf.IndexedSlices) == is_sparse
    assert _evaluate(gradient) == (expected / len(kinds)).tolist()


def test_sum_keeps_the_name():
    """The sum of a variable's gradients is called after the variable."""
    [(gradient, _)] = sum_gradients(_towers(["dense", "dense"], _variable("layer/v")))
    assert gradient.op.name == "layer/v/sum_grads"


def test_variables_without_gradient_are_named_once(caplog):
    """Variables that no clone has a gradient for are left out, and named in one warning."""
    a, b, c = (_variable(name) for name in "abc")
    clone = [(None, a), (tf.constant(DENSE), b), (None, c)]
    assert [v for _, v in sum_gradients([clone, clone])] == [b]
    assert [r.getMessage() for r in caplog.records] == [
        "not trained, for no loss depends on them: a, c"
    ]


@pytest.mark.parametrize("function", [sum_gradients, average_gradients])
def test_rejects(function):
    """Towers must exist and agree on their variables."""
    with pytest.raises(ValueError, match="at least one clone, got none"):
        function([])
    a, b = _variable("a"), _variable("b")
    with pytest.raises(
        ValueError, match=r"same variables .* got \['a:0'\] for clone 0 and \['b:0'\] for clone 1"
    ):
        function([[(None, a)], [(None, b)]])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("max_norm", "factor"), [(6.5, 0.5), (13.0, 1.0), (20.0, 1.0)], ids=["half", "at", "below"]
)
@pytest.mark.parametrize("other", [tf.float32, tf.float64], ids=["one type", "two types"])
def test_clip(sparse, max_norm, factor, other):
    """Gradients of joint norm 13 = |(5, 12)| are scaled to the norm allowed, each in its type.

    The sparse gradient holds row 1 twice, as (2, 0) and (3, 0), which count as (5, 0).
    """
    dense = tf.constant([[0.0, 0.0], [5.0, 0.0], [0.0, 0.0]])
    rows = tf.IndexedSlices(
        tf.constant([[2.0, 0.0], [3.0, 0.0]]), tf.constant([1, 1]), tf.constant([3, 2])
    )
    twelve = tf.constant([[0.0, 12.0], [0.0, 0.0], [0.0, 0.0]], other)
    pairs = [(rows if sparse else dense, _variable("a")), (twelve, _variable("b"))]
    (first, _), (second, _) = clip_by_global_norm(pairs, max_norm)
    assert isinstance(first, tf.IndexedSlices) == sparse
    assert (first.dtype, second.dtype) == (tf.float32, other)
    assert _evaluate(first) == [[0.0, 0.0], [5 * factor, 0.0], [0.0, 0.0]]
    assert _evaluate(second) == [[0.0, 12 * factor], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("max_norm", [0, -1.0, float("nan")])
def test_clip_rejects(max_norm):
    """A norm that lets nothing through is an error."""
    with pytest.raises(ValueError, match=f"clip_norm must be more than 0, got {max_norm}"):
        clip_by_global_norm([], max_norm)

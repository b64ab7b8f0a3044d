"""Every network against its reference numbers, in training mode with all random drops off."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests.nets import comparison, graphs, reference
from tests.nets.training_step import training


@pytest.fixture(scope="module")
def expected(reference_name):
    """The reference numbers of the network under test."""
    return reference.load(reference_name)


@pytest.fixture(scope="module")
def facts(expected):
    """The reference numbers of the training step."""
    return expected["training_loss_and_update"]


@pytest.fixture(scope="module")
def actual(reference_name):
    """The network under test, built and run once for this file."""
    return training(reference_name)


@pytest.fixture(scope="module")
def wrong(reference_name, actual):
    """The figures that are further from the reference than rounding can bring them, by kind."""
    return comparison.wrong(reference_name, actual.figures)


def test_variables(expected, facts, actual):
    """Names, shapes, order, trainable flag and model-variables membership are the reference's.

    The training figures of the largest networks are those of smaller images. There the kernel of
    the auxiliary head, which covers a whole feature map, is smaller, too.
    """
    step = {name for name, _ in expected["non_float32_variables"]}
    wanted = [v for v in expected["variables"] if v[0] not in step]
    got = actual.structure.variables
    if facts["input_shape"] != expected["input"]["shape"]:
        got, wanted = without_shape_of_head(got), without_shape_of_head(wanted)
    assert got == wanted


def without_shape_of_head(variables):
    """The variables, without the shape of the kernel that covers a whole map."""
    return [
        [name, None if graphs.WHOLE_MAP.fullmatch(name) else shape, *rest]
        for name, shape, *rest in variables
    ]


def test_initializers(expected, facts, actual):
    """Variables start from the reference's distributions."""
    step = {name for name, _ in expected["non_float32_variables"]}
    names = [v[0] for v in expected["variables"]]
    wanted = dict(zip(names, expected["initializers"], strict=True))
    smaller = facts["input_shape"] != expected["input"]["shape"]

    def compared(starts):  # the spread of the head's kernel depends on its size
        return {
            name: start
            for name, start in starts.items()
            if name not in step and not (smaller and graphs.WHOLE_MAP.fullmatch(name))
        }

    assert compared(actual.initializers) == compared(wanted)


def test_regularization_losses(expected, actual):
    """The same variables are regularized, once each."""
    assert actual.regularized == expected["regularized"]
    wanted = expected["losses_note"]["regularization_losses"]
    assert actual.structure.regularization_losses == wanted


def test_update_ops(expected, actual):
    """As many update ops as the reference."""
    assert actual.structure.update_ops == expected["update_ops"]


def test_other_collections(expected, actual):
    """Nothing else is put into collections than in the reference."""
    wanted = {k: n for k, n in expected["other_collections"].items() if k != "global_step"}
    assert actual.structure.other_collections == wanted


def test_end_points(expected, actual):
    """The training graph has the reference's end points, in order."""
    assert [key for key, _ in actual.structure.end_points] == expected["training_end_point_keys"]


def test_normalizations(expected, actual):
    """As many batch normalizations, of the same kind and epsilon, as the reference."""
    wanted = {key: expected["batch_norm_training"][key] for key in actual.structure.normalizations}
    assert actual.structure.normalizations == wanted


def test_logits(wrong):
    """Training logits equal the reference."""
    assert not wrong.get("logits")


def test_auxiliary_logits(facts, actual, wrong):
    """The auxiliary head exists where the reference has one, with equal logits."""
    assert (actual.figures.auxiliary_logits is None) == ("aux_logits" not in facts)
    assert not wrong.get("auxiliary_logits")


def test_cross_entropy(wrong):
    """The loss equals the reference."""
    assert not wrong.get("cross_entropy")


def test_regularization_loss(facts, actual):
    """The regularization losses add up to the reference: no noise, they only read the weights."""
    wanted = facts["regularization_loss_sum"]
    assert reference.relative_difference(actual.figures.regularization_loss, wanted) < 1e-5


def test_gradient_norms(expected, wrong):
    """Gradient norms, of all variables and of the first and last, equal the reference."""
    if len(expected["input"]["shape"]) == 5 and _max_pool3d_counts_equal_maxima():
        pytest.skip("this machine's 3-D max pooling has wrong gradients where maxima are equal")
    assert not wrong.get("gradient_norm")
    assert not wrong.get("gradient_norms")


def _max_pool3d_counts_equal_maxima():
    """Whether a gradient goes in full to each of several equal maxima, not to one of them.

    TensorFlow's own CPU kernel does so, oneDNN's does not. Under two poolings on top of each other
    many maxima are equal: the second sees the same value from several windows of the first.
    """
    with tf.Graph().as_default() as graph:
        equal = tf.placeholder(tf.float32, [1, 2, 2, 2, 1])
        largest = tf.nn.max_pool3d(equal, 2, 2, "VALID")
        gradient = tf.gradients(largest, equal)[0]
        with graphs.session(graph) as sess:
            return sess.run(gradient, {equal: np.ones(equal.shape)}).sum() > 1


def test_variables_without_gradient(facts, actual):
    """Only the auxiliary head gets no gradient from the main loss."""
    assert len(actual.without_gradient) == facts["variables_without_gradient"]


def test_moving_statistics(wrong):
    """Moving means and variances after one update equal the reference."""
    assert not wrong.get("moving_statistics")
    assert not wrong.get("moving_sums")

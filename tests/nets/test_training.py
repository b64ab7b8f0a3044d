"""Every network against its reference numbers, in training mode with all random drops off."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests.nets import comparison, graphs, reference
from tests.nets.training_step import training
from tests.nets.twins import TWINS, VARIANTS

# Of the twins one stays in place of the other, as in `test_wrong_networks.py`.
LEFT_OUT = {*TWINS, *VARIANTS, "mobilenet_v1"} - {"mobilenet_v1_025"}


@pytest.fixture(scope="module")
def expected(reference_name):
    """The reference numbers of the network under test."""
    return reference.load(reference_name)


@pytest.fixture(scope="module")
def actual(reference_name):
    """The network under test, built and run once for this file."""
    return training(reference_name)


def test_structure(expected, actual):
    """Names, shapes, order, trainable flag, membership of the model variables and initializers are
    the reference's; and the same variables are regularized, once each. There are as many update ops
    and normalizations, of the same kind and epsilon, the same end points in order, and nothing else
    in collections.

    The training figures of the largest networks are those of smaller images. There the kernel of
    the auxiliary head, which covers a whole feature map, is smaller, too, and so is its spread.
    """
    step = {name for name, _ in expected["non_float32_variables"]}
    both = zip(expected["variables"], expected["initializers"], strict=True)
    wanted = [(*facts, start) for facts, start in both if facts[0] not in step]
    got = [(*facts, actual.initializers[facts[0]]) for facts in actual.structure.variables]
    if expected["training_loss_and_update"]["input_shape"] != expected["input"]["shape"]:
        got, wanted = without_heads(got), without_heads(wanted)
    assert got == wanted
    assert actual.regularized == expected["regularized"]
    structure = actual.structure
    losses = expected["losses_note"]["regularization_losses"]
    assert structure.regularization_losses == losses
    assert structure.update_ops == expected["update_ops"]
    assert [key for key, _ in structure.end_points] == expected["training_end_point_keys"]
    wanted = {key: expected["batch_norm_training"][key] for key in structure.normalizations}
    assert structure.normalizations == wanted
    wanted = {k: n for k, n in expected["other_collections"].items() if k != "global_step"}
    assert structure.other_collections == wanted


def without_heads(variables):
    """The variables, without shape and start of the kernel that covers a whole map."""
    whole = graphs.WHOLE_MAP.fullmatch
    return [(v[0], *v[2:-1]) if whole(v[0]) else v for v in variables]


def test_figures(reference_name, expected, actual):
    """Logits, losses, gradients and the moving statistics after an update equal the reference, and
    only the auxiliary head gets no gradient from the main loss.

    The regularization losses only read the weights: no noise.
    """
    facts, figures = expected["training_loss_and_update"], actual.figures
    assert (figures.auxiliary_logits is None) == ("aux_logits" not in facts)
    assert len(actual.without_gradient) == facts["variables_without_gradient"]
    wanted = facts["regularization_loss_sum"]
    assert reference.relative_difference(figures.regularization_loss, wanted) < 1e-5
    wrong = comparison.wrong(reference_name, figures)
    if len(expected["input"]["shape"]) == 5 and _max_pool3d_counts_equal_maxima():
        # This machine's 3-D max pooling has wrong gradients where maxima are equal.
        wrong = {kind: each for kind, each in wrong.items() if "gradient" not in kind}
    assert wrong == {}


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

"""Every network against its reference numbers, in inference mode at its full size."""

import pytest

from tests.nets import graphs, reference


@pytest.fixture(scope="module")
def expected(reference_name):
    """The reference numbers of the network under test."""
    return reference.load(reference_name)


@pytest.fixture(scope="module")
def actual(reference_name):
    """The network under test, built and run once for this file."""
    return graphs.inference(reference_name)


def test_variables_are_those_of_training_but_for_the_auxiliary(expected, actual):
    """An evaluation graph creates the reference variables, in the order of the training graph."""
    training_only = set(expected["training_only_variables"])
    wanted = [v[:2] for v in expected["variables"] if v[0] not in training_only]
    assert [v[:2] for v in actual.structure.variables] == wanted


def test_nothing_is_regularized_or_updated(actual):
    """With weight decay 0 there is no regularization loss, and inference updates nothing."""
    assert actual.structure.regularization_losses == 0
    assert actual.structure.update_ops == 0


def test_normalizations(expected, actual):
    """As many batch normalizations, of the same kind and epsilon, as the reference."""
    wanted = {key: expected["batch_norm_inference"][key] for key in actual.structure.normalizations}
    assert actual.structure.normalizations == wanted


def test_end_points(expected, actual):
    """End points have the reference names, order and shapes."""
    assert actual.structure.end_points == expected["end_points"]


def test_op_names(reference_name, actual):
    """The ops of the logits and of the end points are called as TF-Slim's."""
    assert actual.op_names == reference.op_names(reference_name, "classes")


def test_every_network_has_op_names():
    """There are names of ops for each network that has reference numbers, with and without classes.

    The original video networks give no features.
    """
    assert sorted(reference.all_op_names()) == reference.names()
    without = [name for name, kinds in reference.all_op_names().items() if "features" not in kinds]
    assert without == ["i3d", "s3dg"]


def test_logits(expected, actual):
    """Logits equal the reference."""
    difference = reference.relative_difference(actual.logits, expected["logits"])
    assert difference < reference.INFERENCE_TOLERANCE


def test_end_point_values(expected, actual):
    """Mean, deviation and first values of every end point equal the reference."""
    differences = {}
    for key, wanted in expected["end_point_stats"].items():
        scale = max(abs(wanted[0]), wanted[1], *map(abs, wanted[2]))
        mean, deviation, first = actual.statistics[key]
        got = [mean, deviation, *first]
        flat = [wanted[0], wanted[1], *wanted[2]]
        differences[key] = max(abs(a - b) for a, b in zip(got, flat, strict=True)) / scale
    wrong = {k: d for k, d in differences.items() if not d < reference.INFERENCE_TOLERANCE}
    assert not wrong
    assert list(actual.statistics) == list(expected["end_point_stats"])

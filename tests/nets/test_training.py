"""Every network against its reference numbers, in training mode with all random drops off."""

import numpy as np
import pytest

from tests.nets import graphs, reference


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
    return graphs.training(reference_name)


def noise(facts, key):
    """How far the figure called `key` may be from the reference."""
    return reference.training_tolerance(facts["measured_noise"], key)


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


def test_logits(facts, actual):
    """Training logits equal the reference within its measured noise."""
    difference = reference.relative_difference(actual.logits, facts["logits"])
    assert difference < noise(facts, "logits_relative_to_largest")


def test_auxiliary_logits(facts, actual):
    """The auxiliary head exists where the reference has one, with equal logits."""
    if "aux_logits" not in facts:
        assert actual.auxiliary_logits is None
        return
    difference = reference.relative_difference(actual.auxiliary_logits, facts["aux_logits"])
    assert difference < reference.auxiliary_tolerance(facts["measured_noise"])


def test_cross_entropy(facts, actual):
    """The loss equals the reference within its measured noise."""
    difference = reference.relative_difference(actual.cross_entropy, facts["cross_entropy"])
    assert difference < noise(facts, "cross_entropy_relative")


def test_regularization_loss(facts, actual):
    """The regularization losses add up to the reference: no noise, they only read the weights."""
    wanted = facts["regularization_loss_sum"]
    assert reference.relative_difference(actual.regularization_loss, wanted) < 1e-5


def test_gradient_norms(facts, actual):
    """Gradient norms, of all variables and of the first and last, equal the reference."""
    wanted = facts["gradient_global_norm"]
    tolerance = noise(facts, "gradient_global_norm_relative")
    assert reference.relative_difference(actual.gradient_norm, wanted) < tolerance
    measured = facts["measured_noise"]
    wrong = {
        name: (actual.gradient_norms[name], norm)
        for name, norm in facts["gradient_norms_some"]
        if not abs(actual.gradient_norms[name] - norm)
        < reference.gradient_tolerance(measured, norm, wanted)
    }
    assert not wrong


def test_variables_without_gradient(facts, actual):
    """Only the auxiliary head gets no gradient from the main loss."""
    assert len(actual.without_gradient) == facts["variables_without_gradient"]


def test_moving_statistics(facts, actual):
    """Moving means and variances after one update equal the reference."""
    tolerance = noise(facts, "logits_relative_to_largest")
    differences = {}
    for name, mean, deviation, first in facts.get("moving_statistics_after_one_update", []):
        got_mean, got_deviation, got_first = graphs.statistics(actual.moving[name])
        got = [got_mean, got_deviation, *got_first]
        differences[name] = reference.relative_difference(got, [mean, deviation, *first])
    assert not {name: d for name, d in differences.items() if not d < tolerance}
    for kind in ("mean", "variance"):
        values = [v.ravel() for name, v in actual.moving.items() if name.endswith(kind)]
        values = np.concatenate([np.zeros(1), *values])
        wanted = facts.get(f"moving_{kind}_sum_after_one_update", 0.0)
        assert abs(values.sum() - wanted) <= tolerance * np.abs(values).sum()

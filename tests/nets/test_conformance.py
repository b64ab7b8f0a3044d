"""Every network against its reference: numbers, names and shapes, and keywords.

In training all random drops are off. Of networks that are the same code with fewer layers or
another width one stands for its twins, but for their variables and how their parts are called and
how large they are.
"""

import inspect
import json
import re
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from tests.nets import comparison, graphs, reference
from tests.nets.network import Network
from tests.nets.twins import TWINS, VARIANTS


def parameters_of(function: Any) -> dict[str, Any]:
    """Returns keyword -> default; a function stands for its name, as in the reference."""
    return {
        name: {"callable": parameter.default.__name__}
        if callable(parameter.default) and parameter.default is not parameter.empty
        else parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }


def test_signatures():
    """A network and its arg scope take the reference's arguments, in order, with its defaults."""
    for name in reference.names():
        flags = reference.load(name)["flags"]
        wanted = {
            key: inspect.Parameter.empty if default == {"required": True} else default
            for key, default in flags["parameters"]
        }
        actual = parameters_of(nets_factory.networks_map[name])
        for key, value in flags.get("preset_by_this_name", {}).items():
            wanted[key] = actual[key] if value == {"preset": "the variant of this name"} else value
        assert list(actual.items()) == list(wanted.items()), name
        of_scope = parameters_of(nets_factory.arg_scopes_map[name])
        assert [list(item) for item in of_scope.items()] == flags["arg_scope_parameters"], name


def test_every_network_has_op_names():
    """There are names of ops for each network that has reference numbers, with and without classes.

    The original video networks give no features.
    """
    assert sorted(reference.all_op_names()) == reference.names()
    without = [name for name, kinds in reference.all_op_names().items() if "features" not in kinds]
    assert without == ["i3d", "s3dg"]


@pytest.fixture(scope="module")
def network(reference_name):
    """The network under test, built and run once for this file."""
    return Network(reference_name)


@pytest.fixture
def training(network):
    """The network's first step of training; skips those for which another network stands."""
    if network.training is None:
        pytest.skip("another network is the same code, or of the same layers")
    return network.training


def test_structure(network):
    """An evaluation graph has the reference's variables, in the order of the training graph, its
    end points and normalizations; with weight decay 0 nothing is regularized, nor updated. The ops
    of the logits and of the end points are called as TF-Slim's.
    """
    expected, found = network.expected, network.evaluation
    training_only = set(expected["training_only_variables"])
    wanted = [v[:2] for v in expected["variables"] if v[0] not in training_only]
    assert found.variables == wanted
    assert found.end_points == expected["end_points"]
    wanted = {key: expected["batch_norm_inference"][key] for key in found.normalizations}
    assert found.normalizations == wanted
    assert found.added == (0, 0)
    assert found.op_names == reference.op_names(network.name, "classes")


def test_values(network):
    """Logits, and mean, deviation and first values of every end point, equal the reference; on
    smaller images the logits do, on the same variables.
    """
    if network.name in TWINS:
        pytest.skip(f"{TWINS[network.name]} is the same code")
    expected, values = network.expected, network.values
    differences = {"logits": reference.relative_difference(values["logits"], expected["logits"])}
    for key, (*moments, first) in expected["end_point_stats"].items():
        wanted = [*moments, *first]
        scale = max(abs(wanted[0]), wanted[1], *map(abs, first))
        mean, deviation, got = graphs.statistics(values["end_points"][key])
        pairs = zip([mean, deviation, *got], wanted, strict=True)
        differences[f"end point {key}"] = max(abs(a - b) for a, b in pairs) / scale
    if network.small is not None:  # some take one size only
        small = expected["logits_small_input"]
        assert len(network.small.variables) == small["variables_count"]
        difference = reference.relative_difference(values["small"], small["logits"])
        differences["small logits"] = difference
    assert not {k: d for k, d in differences.items() if not d < reference.INFERENCE_TOLERANCE}
    assert list(values["end_points"]) == list(expected["end_point_stats"])


@pytest.mark.one_mode
def test_features_of_smallest_images(network):
    """With `num_classes=0` a network returns the features before the logits layer; images of the
    smallest size are enough for them.
    """
    if network.features is None:
        pytest.skip(f"{(TWINS | VARIANTS)[network.name]} is the same code, or of the same layers")
    found = network.features
    features, end_points = found.tensors
    assert (features.shape[0], features.shape.num_elements() > 0) == (2, True)
    if network.is_video:  # the reference has no features of videos; see test_video.py
        return
    expected = network.expected["num_classes_0"]
    assert features.shape.as_list() == expected["output_shape"]
    assert len(found.variables) == expected["variables_count"]
    assert len(end_points) == expected["end_point_keys_count"]
    assert list(end_points)[-3:] == expected["last_end_point_keys"]
    wanted = reference.op_names(network.name, "features")
    assert without_sizes(found.op_names) == without_sizes(wanted)


def without_sizes(names):
    """The names of ops without the size of a pooling over the whole map."""
    return re.sub(r"(AvgPool_\d\w)_\d+x\d+", r"\1", json.dumps(names))


def test_structure_in_training(network, training):
    """Names, shapes, order, trainable flag, membership of the model variables and initializers are
    the reference's; and the same variables are regularized, once each. There are as many update ops
    and normalizations, of the same kind and epsilon, the same end points in order, and nothing else
    in collections.

    The training figures of the largest networks are those of smaller images. There the kernel of
    the auxiliary head, which covers a whole feature map, is smaller, too, and so is its spread.
    """
    expected, structure = network.expected, training.structure
    step = {name for name, _ in expected["non_float32_variables"]}
    both = zip(expected["variables"], expected["initializers"], strict=True)
    wanted = [(*facts, start) for facts, start in both if facts[0] not in step]
    got = [(*facts, training.initializers[facts[0]]) for facts in structure.variables]
    if expected["training_loss_and_update"]["input_shape"] != expected["input"]["shape"]:
        got, wanted = without_heads(got), without_heads(wanted)
    assert got == wanted
    assert training.regularized == expected["regularized"]
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


def test_figures(network, training):
    """Logits, losses, gradients and the moving statistics after an update equal the reference, and
    only the auxiliary head gets no gradient from the main loss.

    The regularization losses only read the weights: no noise.
    """
    facts, figures = network.expected["training_loss_and_update"], training.figures
    assert (figures.auxiliary_logits is None) == ("aux_logits" not in facts)
    assert len(training.without_gradient) == facts["variables_without_gradient"]
    wanted = facts["regularization_loss_sum"]
    assert reference.relative_difference(figures.regularization_loss, wanted) < 1e-5
    wrong = comparison.wrong(network.name, figures)
    if network.is_video and _max_pool3d_counts_equal_maxima():
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


@pytest.mark.parametrize(("name", "twin"), TWINS.items())
def test_smallest_images_of_twins(name, twin):
    """The same code takes images as small."""
    assert graphs.sample(name, smallest=1).shape == graphs.sample(twin, smallest=1).shape

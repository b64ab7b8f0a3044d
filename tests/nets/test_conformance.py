"""Every network against its reference: numbers, names and shapes of inference, and keywords.

Of networks that are the same code with fewer layers or another width one stands for its twins,
but for their variables and how their parts are called and how large they are.
"""

import contextlib
import inspect
import json
import re
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from tests.nets import graphs, reference
from tests.nets.twins import TWINS, VARIANTS

# A kernel of an auxiliary head, as large as the map up to 5 x 5.
KERNEL_OF_MAP = re.compile(r"(?<=AuxLogits/)Conv2d_2a_\dx\d")
DROPOUT = re.compile(r"(.*?[Dd]ropout[^/]*)/.*[Rr]andom_?[Uu]niform$")


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


class Network:
    """One network, built several times over the same variables; the first time as the reference.

    Attributes:
      structure: what the graph held after the first time.
      op_names: of the logits and end points of the first time.
      values: what ran: `logits`, `end_points`, and `small`, the logits of a small image; of twins
        nothing is run.
      small_variables: how many variables those have.
    """

    def __init__(self, name: str) -> None:
        self.name, self.expected = name, reference.load(name)
        self.keywords = {key for key, _ in self.expected["flags"]["parameters"]}
        small = self.expected.get("logits_small_input", {})
        self.full = self.expected["input"]["shape"]
        self.small = small.get("input_shape")
        self._graph = tf.Graph()
        with self._entered():
            images = tf.placeholder(tf.float32, self.full)
            logits, end_points = graphs.build(name, images)
            self.structure = graphs.structure(end_points)
            self.op_names = graphs.op_names(logits, end_points)
            fetches = {"logits": logits, "end_points": end_points}
        if name in TWINS:
            return
        if self.small:
            fetches["small"], sizes = self._build_small()
            self.small_variables = len(sizes)
        with self._entered(), graphs.session(self._graph) as sess:
            graphs.load_weights(sess)
            self.values = sess.run(fetches, {images: reference.images(self.full)})

    @contextlib.contextmanager
    def _entered(self, custom_getter=None):
        with (
            self._graph.as_default(),
            tf.variable_scope("", reuse=tf.AUTO_REUSE, custom_getter=custom_getter),
        ):
            yield

    def _build_small(self):
        """Builds the network once more, for a small image; the sizes of variables it asks for."""
        asked = {}

        def note(getter, name, *arguments, **keywords):
            variable = getter(name, *arguments, **keywords)
            asked[name] = variable.shape.num_elements()
            return variable

        keywords = self.expected["logits_small_input"].get("keywords", {})
        if "reuse" in self.keywords:
            keywords = {"reuse": True, **keywords}
        with self._entered(note):
            images = tf.constant(reference.images(self.small))
            logits, _ = graphs.build(self.name, images, **keywords)
        return logits, asked


@pytest.fixture(scope="module")
def network(reference_name):
    """The network under test, built and run once for this file."""
    return Network(reference_name)


@pytest.fixture
def no_twin(reference_name):
    """Skips networks that are the same code as another one: each build takes seconds."""
    if reference_name in TWINS:
        pytest.skip(f"{TWINS[reference_name]} is the same code")


@pytest.fixture
def no_variant(reference_name, no_twin):
    """Skips networks of the same code as another one, with other layers, too."""
    if reference_name in VARIANTS:
        pytest.skip(f"{VARIANTS[reference_name]} is of the same layers")


def test_structure(network):
    """An evaluation graph has the reference's variables, in the order of the training graph, its
    end points and normalizations; with weight decay 0 nothing is regularized, nor updated. The ops
    of the logits and of the end points are called as TF-Slim's.
    """
    expected, structure = network.expected, network.structure
    training_only = set(expected["training_only_variables"])
    wanted = [v[:2] for v in expected["variables"] if v[0] not in training_only]
    assert [v[:2] for v in structure.variables] == wanted
    assert structure.end_points == expected["end_points"]
    wanted = {key: expected["batch_norm_inference"][key] for key in structure.normalizations}
    assert structure.normalizations == wanted
    assert (structure.regularization_losses, structure.update_ops) == (0, 0)
    assert network.op_names == reference.op_names(network.name, "classes")


@pytest.mark.usefixtures("no_twin")
def test_values(network):
    """Logits, and mean, deviation and first values of every end point, equal the reference; on
    smaller images the logits do, on the same variables.
    """
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
        assert network.small_variables == small["variables_count"]
        difference = reference.relative_difference(values["small"], small["logits"])
        differences["small logits"] = difference
    assert not {k: d for k, d in differences.items() if not d < reference.INFERENCE_TOLERANCE}
    assert list(values["end_points"]) == list(expected["end_point_stats"])


@pytest.mark.one_mode
@pytest.mark.usefixtures("no_variant")
def test_features_of_smallest_images(network):
    """With `num_classes=0` a network returns the features before the logits layer; images of the
    smallest size are enough for them.
    """
    with tf.Graph().as_default():
        images = graphs.sample(network.name, smallest=1)
        features, end_points = graphs.build(network.name, images, num_classes=0)
        assert (features.shape[0], features.shape.num_elements() > 0) == (2, True)
        if len(network.full) == 5:  # the reference has no features of videos; see test_video.py
            return
        expected = network.expected["num_classes_0"]
        assert features.shape.as_list() == expected["output_shape"]
        assert len(tf.global_variables()) == expected["variables_count"]
        assert len(end_points) == expected["end_point_keys_count"]
        assert list(end_points)[-3:] == expected["last_end_point_keys"]
        names = graphs.op_names(features, end_points)
        assert without_sizes(names) == without_sizes(reference.op_names(network.name, "features"))


def without_sizes(names):
    """The names of ops without the size of a pooling over the whole map."""
    return re.sub(r"(AvgPool_\d\w)_\d+x\d+", r"\1", json.dumps(names))


@pytest.mark.one_mode
@pytest.mark.usefixtures("no_variant", "few_blocks")
def test_pooling_dropout_and_depth_in_training(network):
    """`global_pool=True` makes one row of logits of an image of any size, `spatial_squeeze=False`
    keeps its height and width; in training there are the reference's dropouts, drawn at random.

    Half as deep, a network has smaller variables of the same names.
    """
    keywords = {"spatial_squeeze": False, "global_pool": True}
    keywords = {key: value for key, value in keywords.items() if key in network.keywords}
    depth = parameters_of(nets_factory.networks_map[network.name]).get("depth_multiplier")
    half = {} if depth is None else {"depth_multiplier": depth / 2}
    shape = network.full.copy()  # in training auxiliary heads need more than the smallest size
    if "global_pool" in keywords and network.small:
        shape[1:3] = [network.small[1] + 64, network.small[2] + 32]
    with tf.Graph().as_default() as graph:
        images = tf.constant(reference.images(shape))
        logits, _ = graphs.build(network.name, images, is_training=True, **keywords, **half)
        found = {v.op.name: v.shape.num_elements() for v in tf.global_variables()}
        matches = [DROPOUT.match(op.name) for op in graph.get_operations()]
    assert logits.shape.as_list() == ([2, 1, 1, 10] if "spatial_squeeze" in keywords else [2, 10])
    wanted = network.expected["dropout_training"]
    assert {match[1] for match in matches if match} == {scope for scope, keep in wanted if keep < 1}
    if depth is not None:
        found = {KERNEL_OF_MAP.sub("Conv2d_2a_5x5", name): size for name, size in found.items()}
        sizes = {name: np.prod(shape) for name, shape, *_ in network.expected["variables"]}
        assert found.keys() == sizes.keys()
        assert sum(found.values()) < 0.5 * sum(sizes.values())


@pytest.mark.parametrize(("name", "twin"), TWINS.items())
def test_smallest_images_of_twins(name, twin):
    """The same code takes images as small."""
    assert graphs.sample(name, smallest=1).shape == graphs.sample(twin, smallest=1).shape

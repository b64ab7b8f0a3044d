"""The keyword arguments that the networks of the reference share."""

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from tests.nets import graphs, reference, twins


def parameters_of(function: Any) -> dict[str, Any]:
    """Returns keyword -> default; a function stands for its name, as in the reference."""
    return {
        name: {"callable": parameter.default.__name__}
        if callable(parameter.default) and parameter.default is not parameter.empty
        else parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }


def test_network_signature(reference_name):
    """A network takes the reference's arguments, in order, with the same defaults."""
    flags = reference.load(reference_name)["flags"]
    required = {"required": True}
    wanted = {
        name: inspect.Parameter.empty if default == required else default
        for name, default in flags["parameters"]
    }
    actual = parameters_of(nets_factory.networks_map[reference_name])
    presets = flags.get("preset_by_this_name", {})
    for name, value in presets.items():
        wanted[name] = actual[name] if value == {"preset": "the variant of this name"} else value
    assert list(actual.items()) == list(wanted.items())


def test_arg_scope_signature(reference_name):
    """An arg scope function takes the reference's arguments with the same defaults."""
    wanted = reference.load(reference_name)["flags"]["arg_scope_parameters"]
    actual = parameters_of(nets_factory.arg_scopes_map[reference_name])
    assert [list(item) for item in actual.items()] == wanted


class Variants:
    """A graph in which one network is built several times over the same variables."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = tf.Graph()
        self.expected = reference.load(name)
        self.keywords = {key for key, _ in self.expected["flags"]["parameters"]}
        small = self.expected.get("logits_small_input", {})
        self.shape = small.get("input_shape", self.expected["input"]["shape"])
        self.small_keywords = small.get("keywords", {})
        with self.entered():
            images = tf.zeros(self.expected["input"]["shape"])
            self.features, end_points = graphs.build(name, images, num_classes=0)
        self.feature_end_points = list(end_points)
        self.feature_op_names = graphs.op_names(self.features, end_points)
        self.feature_variables = self.count_variables()

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Makes the graph the current one, and variables of the same name the same."""
        with self.graph.as_default(), tf.variable_scope("", reuse=tf.AUTO_REUSE):
            yield

    def count_variables(self) -> int:
        """Returns the number of variables so far."""
        return len(self.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES))

    def build(self, shape: list[int] | None = None, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        """Builds the network for the reference input of the given or the small shape."""
        with self.entered():
            images = tf.constant(reference.images(shape or self.shape))
            return graphs.build(self.name, images, **{**self.small_keywords, **keywords})

    @functools.cached_property
    def logits(self) -> Any:
        """The logits for the reference input of the small shape."""
        logits, _ = self.build()
        return logits


@pytest.fixture(scope="module")
def variants(reference_name):
    """The graph of the network under test, with its features built."""
    return Variants(reference_name)


@pytest.fixture
def no_twin(variants):
    """Skips networks that are the same code as another one: each build takes many seconds."""
    if variants.name in twins.TWINS:
        pytest.skip(f"{twins.TWINS[variants.name]} is the same code")


def test_no_classes_means_features(variants):
    """With `num_classes=0` a network returns the features before the logits layer."""
    expected = variants.expected["num_classes_0"]
    if len(variants.expected["input"]["shape"]) == 5:
        pytest.skip("the reference has no features of videos; see test_video.py")
    assert variants.features.shape.as_list() == expected["output_shape"]
    assert variants.feature_variables == expected["variables_count"]
    assert len(variants.feature_end_points) == expected["end_point_keys_count"]
    assert variants.feature_end_points[-3:] == expected["last_end_point_keys"]
    assert variants.feature_op_names == reference.op_names(variants.name, "features")


def test_small_images(variants):
    """On smaller images the logits equal the reference, on the same variables."""
    if "logits_small_input" not in variants.expected:
        pytest.skip("takes one size only")
    expected = variants.expected["logits_small_input"]
    logits = variants.logits
    assert variants.count_variables() == expected["variables_count"]
    with variants.entered(), graphs.session(variants.graph) as sess:
        graphs.load_weights(sess)
        actual = sess.run(logits)
    difference = reference.relative_difference(actual, expected["logits"])
    assert difference < reference.INFERENCE_TOLERANCE


def test_none_means_no_classes_and_reuse_makes_no_variables(variants, no_twin):
    """`num_classes=None` is 0, and `reuse=True` makes no variable."""
    logits = variants.logits
    before = variants.count_variables()
    reuse = {"reuse": True} if "reuse" in variants.keywords else {}
    features, end_points = variants.build(num_classes=None, **reuse)
    assert features.shape[-1] == variants.features.shape[-1]
    assert features.shape[0] == logits.shape[0]
    assert list(end_points) or variants.feature_end_points == []
    assert variants.count_variables() == before


def test_spatial_squeeze_and_global_pool(variants, no_twin):
    """`global_pool=True` makes one row of logits of an image of any size, and
    `spatial_squeeze=False` keeps its height and width.
    """
    keywords = {"spatial_squeeze": False, "global_pool": True}
    keywords = {key: value for key, value in keywords.items() if key in variants.keywords}
    if not keywords:
        pytest.skip("has no such keywords")
    shape = variants.shape.copy()
    if "global_pool" in keywords:
        shape[1:3] = [shape[1] + 64, shape[2] + 32]
    logits, _ = variants.build(shape, **keywords)
    assert logits.shape.as_list() == ([2, 1, 1, 10] if "spatial_squeeze" in keywords else [2, 10])


def test_depth_multiplier(variants):
    """Half the depth makes a smaller network with the same variable names."""
    parameters = parameters_of(nets_factory.networks_map[variants.name])
    if "depth_multiplier" not in parameters:
        pytest.skip("has no such keyword")
    assert variants.logits.shape[-1] == 10
    whole = sizes(variants.graph)
    keywords = {**variants.small_keywords, "depth_multiplier": parameters["depth_multiplier"] / 2}
    with tf.Graph().as_default() as graph:
        graphs.build(variants.name, graphs.sample(variants.name, smallest=True), **keywords)
        half = sizes(graph)
    assert half.keys() == whole.keys()
    assert sum(half.values()) < 0.5 * sum(whole.values())


def sizes(graph: tf.Graph) -> dict[str, int]:
    """Returns the number of elements of each variable."""
    variables = graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    return {v.op.name: v.shape.num_elements() for v in variables}

"""Networks of `keras.applications`: their names, images and weight decay."""

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import keras_networks, nets_factory
from tests.keras import few_blocks

NAME = "keras/MobileNetV3Small"


def test_names():
    """Every classifier of Keras is there; `networks_map` has none of them."""
    names = keras_networks.names()
    assert {"keras/ConvNeXtTiny", "keras/EfficientNetV2B0", "keras/ResNet50"} <= set(names)
    assert nets_factory.all_network_names() == [*nets_factory.network_names(), *names]
    assert not set(names) & set(nets_factory.network_names())
    for name in names:
        assert callable(getattr(keras.applications, name.removeprefix("keras/")))


def test_unknown_name():
    """A name that Keras does not have is answered with those that it has."""
    with pytest.raises(ValueError, match=r"^name must be one of .*keras/ResNet50.*, got 'keras/R"):
        nets_factory.get_network_fn("keras/ResNet51", 10)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([2, 16, 16, 3], "images must be at least 32 pixels high and wide"),
        ([2, None, 32, 3], "images must have a known height and width"),
        ([2, 32, 32, 4], "images must have 1 or 3 channels, got 4"),
    ],
)
def test_images_rejected(shape, message):
    """Images that the network cannot take are named with their shape."""
    images = tf.placeholder(tf.float32, shape)
    with pytest.raises(ValueError, match=f"^{message}"):
        nets_factory.get_network_fn(NAME, 10)(images)


@pytest.fixture(scope="module")
def built():
    """A network of 5 classes with weight decay, and what it makes of grey images."""
    with tf.Graph().as_default():
        network_fn = nets_factory.get_network_fn(NAME, 5, weight_decay=0.5)
        logits, end_points = network_fn(tf.ones([2, 32, 32, 1]))
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            again, _ = network_fn(tf.ones([2, 32, 32, 3]))
        model = keras_networks.built_model()
        # It has layers for the preprocessing.
        yield logits, end_points, [again, model(tf.ones([2, 32, 32, 3]), training=False)], model


def test_grey_images_are_repeated(built):
    """Grey images are those with three equal channels; a second call shares the variables."""
    logits, end_points, again, model = built
    assert logits.shape.as_list() == [2, 5]
    assert sorted(end_points) == ["Logits", "Predictions"]
    with logits.graph.as_default(), tf.Session() as session:
        assert len(tf.global_variables()) == len(model.variables)
        session.run(tf.global_variables_initializer())
        one, others, shares = session.run([logits, again, end_points["Predictions"]])
    for other in others:
        np.testing.assert_allclose(one, other, rtol=1e-5)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)


def test_weight_decay(built):
    """Kernels have slim's L2 loss, half of the sum of squares; biases, norms and depthwise none."""
    *_, model = built
    decayed = {v.path for v in model.trainable_variables if v.regularizer is not None}
    kernels = {v.path for v in model.trainable_variables if v.path.endswith("/kernel")}
    depthwise = {path for path in kernels if "depthwise" in path}
    assert depthwise  # of this network
    assert decayed == kernels - depthwise
    weights = tf.constant([[1.0, 2.0]])
    regularizer = next(v.regularizer for v in model.trainable_variables if v.regularizer)
    with tf.Session() as session:
        assert session.run(regularizer(weights)) == pytest.approx(0.5 * 5 / 2)


IMAGES = np.arange(2 * 32 * 32 * 3, dtype=np.float32).reshape(2, 32, 32, 3) % 256
# The modes of `keras.applications.imagenet_utils.preprocess_input`, from its documentation: blue
# first, minus the means of ImageNet; -1 to 1; by mean and deviation of ImageNet.
SCALED = {
    "VGG16": IMAGES[..., ::-1] - [103.939, 116.779, 123.68],
    "MobileNet": IMAGES / 127.5 - 1,
    "DenseNet121": (IMAGES / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
}


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("name", SCALED)
def test_own_preprocessing(name, monkeypatch):
    """Images of 0 to 255 come to the network as Keras' own preprocessing makes them."""
    few_blocks.shorten(monkeypatch)
    logits, _ = nets_factory.get_network_fn(f"keras/{name}", 5)(tf.constant(IMAGES))
    scaled = tf.constant(SCALED[name], tf.float32)
    expected = keras_networks.built_model()(scaled, training=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, wanted = session.run([logits, expected])
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)

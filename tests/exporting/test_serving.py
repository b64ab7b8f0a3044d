"""Signatures: what they take and give, and what cannot be served."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import training
from nets import nets_factory
from tests.inputs.files import encode, noise


def _serving(model_name="lenet", **options):
    names = ("use_grayscale", "train_image_size", "preprocessing_name")
    own = {name: options.pop(name) for name in names if name in options}
    classifier = training.Classifier(
        training.ClassifierOptions(model_name=model_name, **own), 4, nets_factory.get_network_fn
    )
    return training.Serving(classifier, **{"channels": 1, **options})


def _example(encoded):
    """A record as datasets have it."""
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded]))
    features = tf.train.Features(feature={"image/encoded": feature})
    return tf.train.Example(features=features).SerializeToString()


def _shapes(tensors):
    return {name: (tensor.dtype.name, tensor.shape.as_list()) for name, tensor in tensors.items()}


def test_shapes_and_names():
    """Any number of images in, one row each out; `input` is called as in TF-Slim."""
    signatures = _serving(class_names="abcd").signatures()
    assert list(signatures) == ["serving_default", "encoded_images", "serialized_examples"]
    images, encoded, examples = signatures.values()
    assert _shapes(images.inputs) == {"images": ("float32", [None, 28, 28, 1])}
    assert _shapes(encoded.inputs) == {"encoded_images": ("string", [None])}
    assert _shapes(examples.inputs) == {"examples": ("string", [None])}
    for signature in (images, encoded, examples):
        assert _shapes(signature.outputs) == {
            "logits": ("float32", [None, 4]),
            "probabilities": ("float32", [None, 4]),
            "classes": ("int64", [None]),
            "labels": ("string", [None]),
        }
    assert images.inputs["images"].name == "input:0"
    assert len(tf.global_variables()) == 8, "the second network has variables of its own"


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"batch_size": 3, "train_image_size": 32}, [3, 32, 32, 1]),
        ({"channels": 3}, [None, 28, 28, 3]),
        ({"channels": 3, "use_grayscale": True}, [None, 28, 28, 1]),
        ({"with_preprocessing": True}, [None, None, None, 1]),
        (
            {"channels": 3, "use_grayscale": True, "with_preprocessing": True},
            [None, None, None, 3],
        ),
    ],
)
def test_the_input_follows_the_settings(options, shape):
    """Sizes that are given are fixed, and preprocessing takes images as they are."""
    signatures = _serving(**options).signatures()
    images = signatures["serving_default"]
    assert images.inputs["images"].shape.as_list() == shape
    assert images.outputs["logits"].shape.as_list() == [options.get("batch_size"), 4]
    assert "labels" not in images.outputs


@pytest.mark.one_mode
@pytest.mark.parametrize("family", ["lenet", "cifarnet", "inception", "vgg"])
def test_raw_and_encoded_images_agree(family):
    """For each preprocessing, a PNG and its values give the same; a JPEG is decoded, too."""
    options = {"channels": 3, "preprocessing_name": family, "with_preprocessing": True}
    raw, encoded, examples = _serving(**options).signatures().values()
    image = noise([40, 36, 3])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        want = session.run(raw.outputs, {raw.inputs["images"]: [image, 255.0 - image]})
        contents = [encode(image), encode(255 - image), encode(image, "jpeg")]
        got = session.run(encoded.outputs, {encoded.inputs["encoded_images"]: contents})
        serialized = [_example(each) for each in contents]
        same = session.run(examples.outputs, {examples.inputs["examples"]: serialized})
    assert np.ptp(want["logits"]) > 0
    # Sums of products are rounded by their largest values, up to 1,000 where pixels are.
    largest = np.abs(want["logits"]).max()
    np.testing.assert_allclose(got["logits"][:2], want["logits"], rtol=1e-5, atol=1e-6 * largest)
    np.testing.assert_allclose(want["probabilities"].sum(axis=1), [1, 1], rtol=1e-6)
    np.testing.assert_array_equal(want["classes"], want["logits"].argmax(axis=1))
    assert got["logits"].shape == (3, 4)
    np.testing.assert_array_equal(same["logits"], got["logits"])


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_name": "text_lstm"}, "model_name must be a network of images, got 'text_lstm'"),
        (
            {"is_video": True},
            "is_video_model must be for a network of videos, got True with 'lenet'",
        ),
        ({"num_frames": 8}, "num_frames must be for a network of videos, got 8 with 'lenet'"),
        (
            {"model_name": "i3d", "with_preprocessing": True},
            "with_preprocessing must be for a network of images, got True with 'i3d'",
        ),
        (
            {"preprocessing_name": "slim"},
            "preprocessing_name must be one of .*lenet.*, got 'slim'",
        ),
    ],
)
def test_cannot_be_served(options, message):
    """A network that does not fit the settings is named with them."""
    with pytest.raises(ValueError, match=message):
        _serving(**options).signatures()

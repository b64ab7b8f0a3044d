"""`tf.contrib.image` against NumPy's turns and shifts."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import image

_IMAGE = np.arange(25, dtype=np.float32).reshape([5, 5])


def _run(values):
    with tf.Session() as session:
        return session.run(values)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
@pytest.mark.parametrize("shape", [(5, 5), (5, 5, 1), (1, 5, 5, 1)], ids=["hw", "hwc", "nhwc"])
def test_quarter_turns(shape, dtype):
    """Turns by 90 degrees are NumPy's, for images of any rank and type."""
    given = _IMAGE.astype(dtype)
    for quarters in range(4):
        turned = image.rotate(given.reshape(shape), quarters * np.pi / 2)
        assert turned.shape.as_list() == list(shape)
        assert turned.dtype.as_numpy_dtype == dtype
        np.testing.assert_array_equal(_run(turned).reshape([5, 5]), np.rot90(given, quarters))


def test_each_image_has_its_angle():
    """A vector of angles turns each image by its own."""
    batch = np.stack([_IMAGE, _IMAGE])[..., None]
    found = _run(image.rotate(batch, [0.0, np.pi / 2], interpolation="BILINEAR"))
    np.testing.assert_allclose(found[0, ..., 0], _IMAGE, atol=1e-4)
    np.testing.assert_allclose(found[1, ..., 0], np.rot90(_IMAGE), atol=1e-3)


def test_translations():
    """Pixels move to the right and down; 0 comes in."""
    expected = np.zeros([5, 5], np.float32)
    expected[1:, 2:] = _IMAGE[:-1, :-2]
    moved, each = _run(
        [image.translate(_IMAGE, [2, 1]), image.translate(_IMAGE[None, ..., None], [[2, 1]])]
    )
    np.testing.assert_array_equal(moved, expected)
    np.testing.assert_array_equal(each[0, ..., 0], expected)


def test_transforms():
    """A transform leads from a pixel of the result to one of the image; sizes may differ."""
    doubled = image.transform(_IMAGE, [0.5, 0, 0, 0, 0.5, 0, 0, 0], output_shape=[10, 4])
    half = _run(image.transform(_IMAGE, [1, 0, 0.5, 0, 1, 0, 0, 0], "BILINEAR"))
    found = _run(doubled)
    assert found.shape == (10, 4)
    np.testing.assert_array_equal(found[::2, ::2], _IMAGE[:, :2])
    np.testing.assert_allclose(half[:, :4], _IMAGE[:, :4] + 0.5)


def test_composition():
    """Composed transforms do what the transforms do one after the other."""
    turn = image.angles_to_projective_transforms(np.pi / 2, 5, 5)
    move = image.translations_to_projective_transforms([1.0, 0.0])
    both = image.transform(_IMAGE, image.compose_transforms(turn, move))
    after = image.transform(image.transform(_IMAGE, turn), move)
    there = image.matrices_to_flat_transforms(image.flat_transforms_to_matrices(turn))
    found = _run([both, after, there, turn])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[3])
    assert found[0].any()


def test_gradients_reach_the_image():
    """The gradient of an image that was moved is the one moved back."""
    given = tf.constant(_IMAGE)
    weights = np.random.RandomState(0).normal(size=[5, 5]).astype(np.float32)
    [gradient] = tf.gradients(tf.reduce_sum(image.translate(given, [1, 0]) * weights), given)
    found = _run(gradient)
    np.testing.assert_allclose(found[:, :-1], weights[:, 1:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: image.transform([1.0], [0.0] * 8), r"must be \[h, w\].*got"),
        (lambda: image.transform(_IMAGE, 1.0), r"transforms must be \[8\] or \[n, 8\]"),
        (lambda: image.angles_to_projective_transforms([[1.0]], 5, 5), "angles must be a number"),
        (image.compose_transforms, "at least one, got none"),
    ],
)
def test_refusals(make, message):
    """What cannot be is told with its shape."""
    with pytest.raises(ValueError, match=message):
        make()


def test_warp():
    """Each pixel comes from where the flow says, or from the nearest edge; halves are means."""
    picture = np.arange(12, dtype=np.float32).reshape([1, 3, 4, 1])
    flow = np.zeros([1, 3, 4, 2], np.float32)
    flow[0, 1, 1] = [1, -2]
    flow[0, 2, 2] = [0.5, 0.5]
    flow[0, 0, 0] = [9, -9]
    expected = picture.copy()
    expected[0, 1, 1, 0] = picture[0, 0, 3, 0]
    expected[0, 2, 2, 0] = picture[0, 1:3, 1:3, 0].mean()
    expected[0, 0, 0, 0] = picture[0, 0, 3, 0]
    given = tf.constant(flow)
    warped = image.dense_image_warp(tf.constant(picture), given)
    with tf.Session() as session:
        found, slope = session.run([warped, tf.gradients(warped, given)[0]])
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(slope[0, 2, 2], [-4, -1])  # a row is 4 more, a column 1

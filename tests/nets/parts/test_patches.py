"""The basis of an image's patches."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets.parts.patches import patch_basis, patch_features


@pytest.mark.parametrize(("size", "channels"), [(1, 3), (2, 1), (2, 3), (2, 4), (3, 3)])
def test_patches_have_an_orthonormal_basis(size, channels):
    """There are as many vectors as a patch has numbers, of length 1 and at right angles."""
    numbers = size * size * channels
    basis = patch_basis(size, channels).reshape(numbers, -1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(numbers), atol=1e-6)


def test_parts_of_a_photograph_have_little_in_common():
    """Neighbouring pixels that are nearly the same become parts that hardly correlate."""
    # Noise that has been smoothed, in colours that have most of it in common.
    generator = np.random.RandomState(2)
    noise = np.cumsum(np.cumsum(generator.normal(size=[64, 30, 30, 3]), axis=1), axis=2)
    images = (noise.sum(axis=3, keepdims=True) + 0.3 * noise).astype(np.float32)
    images -= images.mean(axis=(1, 2, 3), keepdims=True)

    def correlation(values):
        both = np.corrcoef(values.reshape(-1, values.shape[-1]), rowvar=False)
        return np.abs(both - np.eye(len(both))).mean()

    windows = np.lib.stride_tricks.sliding_window_view(images, (2, 2), axis=(1, 2))
    assert correlation(windows.reshape([64, 29, 29, 12])) > 0.8
    features = patch_features(tf.constant(images), 2, "patches")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(features)
    assert found.shape == (64, 30, 30, 24)
    assert found.min() == 0
    signed = found[..., :12] - found[..., 12:]
    assert correlation(signed[:, :-1, :-1]) < 0.05

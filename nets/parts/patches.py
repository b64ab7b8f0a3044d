"""What small patches of an image consist of: a first layer in which there is nothing to learn.

Neighbouring pixels and the three colours are nearly the same, so that a network has to learn first
how they differ.  Networks that get what is left when that is taken away learn faster: K. Jordan,
"94% on CIFAR-10 in 3.29 seconds on a single GPU" (2024), https://arxiv.org/abs/2404.00498, section
3.2, takes the eigenvectors of the patches of its dataset.  Those of natural images are nearly the
same in all of them: cosines (N. Ahmed, T. Natarajan, K. R. Rao, "Discrete cosine transform", 1974)
of the brightness and of two differences of colours (Y. Ohta, T. Kanade, T. Sakai, "Color
information for region segmentation", 1980).  So these are constants, and a batch norm makes each of
them as strong as the others.
"""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import slim

# Brightness, red against blue, green against both: rows at right angles.
_COLOURS = ((1, 1, 1), (1, 0, -1), (-1, 2, -1))


def patch_basis(size: int, channels: int) -> Any:
    """An orthonormal basis of the patches of an image: cosines down, across, and of the colours.

    Args:
      size: height and width of a patch, in pixels.
      channels: of the image; without three of them each is by itself.

    Returns:
      float32 [size, size, channels, size * size * channels]; the last axis numbers the basis.
    """
    places = np.arange(size)
    cosines = _unit_rows(np.cos(np.pi * np.outer(places, places + 0.5) / size))
    colours = _unit_rows(np.array(_COLOURS if len(_COLOURS) == channels else np.eye(channels)))
    basis = np.einsum("ay,bx,cd->yxdabc", cosines, cosines, colours)
    return basis.reshape([size, size, channels, -1]).astype(np.float32)


def patch_features(images: Any, size: int, scope: str) -> Any:
    """The positive and the negative parts of what each patch consists of, each of variance 1.

    Args:
      images: float [batch, height, width, channels].
      size: height and width of a patch, in pixels.
      scope: variable scope of the batch norm, which has no variables but its averages.

    Returns:
      float [batch, height, width, 2 * size * size * channels].
    """
    with tf.variable_scope(scope):
        basis = tf.constant(
            patch_basis(size, images.shape.as_list()[-1]), images.dtype, name="basis"
        )
        parts = tf.nn.conv2d(images, basis, strides=1, padding="SAME")
        parts = slim.batch_norm(parts, center=False, scale=False, scope="BatchNorm")
        return tf.nn.relu(tf.concat([parts, -parts], axis=-1))


def _unit_rows(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)

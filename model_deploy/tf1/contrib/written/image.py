"""`tf.contrib.image`: images turned, moved and projected."""

from typing import Any

import tensorflow.compat.v1 as tf


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Any:
    """Turns images around their centres, counterclockwise.

    Args:
      images: uint8, int32, int64 or float [h, w], [h, w, c] or [n, h, w, c].
      angles: in radians, one for all images or one for each.
      interpolation: "NEAREST" or "BILINEAR".
      name: of the ops.

    Returns:
      Images of the same shape and type; 0 where there was none.
    """
    with tf.name_scope(name, "rotate"):
        images = tf.convert_to_tensor(images)
        size = _size(images)
        transforms = angles_to_projective_transforms(angles, size[0], size[1])
        return transform(images, transforms, interpolation)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Any:
    """Moves images to the right and down.

    Args:
      images: as in `rotate`.
      translations: float [2] or [n, 2], by how many pixels: to the right, down.
      interpolation: "NEAREST" or "BILINEAR".
      name: of the ops.

    Returns:
      Images of the same shape and type; 0 where there was none.
    """
    with tf.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Any:
    """Projects images.

    A transform of eight numbers `a0 a1 a2 b0 b1 b2 c0 c1` says of a pixel at column x and row y of
    the result where it is taken from: column `(a0 x + a1 y + a2) / k`, row
    `(b0 x + b1 y + b2) / k`, with `k = c0 x + c1 y + 1`.

    Args:
      images: as in `rotate`.
      transforms: float [8] or [1, 8] for all images, or [n, 8].
      interpolation: "NEAREST" or "BILINEAR".
      output_shape: int [2], height and width of the result; by default those of the images.
      name: of the ops.

    Returns:
      Images of the same type; 0 where they have no pixel.

    Raises:
      ValueError: for images or transforms of another rank.
    """
    with tf.name_scope(name, "transform"):
        images = tf.convert_to_tensor(images)
        batch = _with_rank_4(images)
        result = tf.raw_ops.ImageProjectiveTransformV3(
            images=batch,
            transforms=_as_batch(transforms),
            output_shape=_size(images) if output_shape is None else output_shape,
            interpolation=interpolation.upper(),
            fill_mode="CONSTANT",
            fill_value=0.0,
        )
        if output_shape is None:
            result.set_shape(batch.shape)
        return {2: lambda: result[0, :, :, 0], 3: lambda: result[0], 4: lambda: result}[
            images.shape.ndims
        ]()


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Any:
    """Transforms, as `transform` takes them, that turn images around their centres.

    Args:
      angles: in radians, counterclockwise, a number or float [n].
      image_height: in pixels.
      image_width: in pixels.
      name: of the ops.

    Returns:
      Float [1, 8] or [n, 8].

    Raises:
      ValueError: for angles of another rank.
    """
    with tf.name_scope(name, "angles_to_projective_transforms"):
        angles = tf.convert_to_tensor(angles, tf.float32)
        if angles.shape.ndims not in (0, 1):
            raise ValueError(f"angles must be a number or [n], got shape {angles.shape}")
        angles = tf.reshape(angles, [-1])
        sine, cosine, zero = tf.sin(angles), tf.cos(angles), tf.zeros_like(angles)
        x, y = (tf.cast(size, tf.float32) - 1 for size in (image_width, image_height))
        across = (x - (cosine * x - sine * y)) / 2
        down = (y - (sine * x + cosine * y)) / 2
        return tf.stack([cosine, -sine, across, sine, cosine, down, zero, zero], 1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """Transforms, as `transform` takes them, that move images to the right and down.

    Args:
      translations: float [2] or [n, 2], by how many pixels: to the right, down.
      name: of the ops.

    Returns:
      Float [1, 8] or [n, 8].
    """
    with tf.name_scope(name, "translations_to_projective_transforms"):
        moves = tf.reshape(tf.convert_to_tensor(translations, tf.float32), [-1, 2])
        one, zero = tf.ones_like(moves[:, 0]), tf.zeros_like(moves[:, 0])
        return tf.stack([one, zero, -moves[:, 0], zero, one, -moves[:, 1], zero, zero], 1)


def compose_transforms(*transforms: Any) -> Any:
    """One transform that does what several do one after the other, the first first.

    Args:
      *transforms: float [8] or [n, 8] each.

    Returns:
      Float [n, 8].

    Raises:
      ValueError: if there is none.
    """
    if not transforms:
        raise ValueError("transforms must be at least one, got none")
    with tf.name_scope("compose_transforms"):
        matrices = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            # A transform leads from the result back to the image: the last one is met first.
            matrices = tf.matmul(matrices, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(matrices)


def flat_transforms_to_matrices(transforms: Any) -> Any:
    """Transforms, float [8] or [n, 8], as matrices [n, 3, 3], whose last entry is 1."""
    transforms = _as_batch(transforms)
    one = tf.ones([tf.shape(transforms)[0], 1])
    return tf.reshape(tf.concat([transforms, one], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """Matrices, float [3, 3] or [n, 3, 3], as transforms [n, 8], divided by their last entries."""
    entries = tf.reshape(tf.convert_to_tensor(transform_matrices, tf.float32), [-1, 9])
    return entries[:, :8] / entries[:, 8:]


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Any:
    """Takes each pixel from where a flow says, between pixels by bilinear interpolation.

    Args:
      image: float [n, h, w, c], `h` and `w` at least 2.
      flow: float [n, h, w, 2]: by how many pixels what is at a place has come down, and right.
      name: of the ops.

    Returns:
      Float [n, h, w, c]: at (row, column) what is at (row, column) - flow in the image, or at the
      nearest edge.
    """
    with tf.name_scope(name):
        image, flow = tf.convert_to_tensor(image), tf.convert_to_tensor(flow)
        size = tf.shape(image)[1:3]
        rows, columns = tf.meshgrid(tf.range(size[0]), tf.range(size[1]), indexing="ij")
        places = tf.cast(tf.stack([rows, columns], -1), flow.dtype) - flow
        first = tf.clip_by_value(tf.floor(places), 0.0, tf.cast(size - 2, flow.dtype))
        share = tf.cast(tf.clip_by_value(places - first, 0.0, 1.0), image.dtype)
        down, right = share[..., :1], share[..., 1:]
        corner = tf.cast(first, tf.int32)

        def at(below: int, beside: int) -> Any:
            return tf.gather_nd(image, corner + tf.constant([below, beside]), batch_dims=1)

        upper = at(0, 0) + right * (at(0, 1) - at(0, 0))
        lower = at(1, 0) + right * (at(1, 1) - at(1, 0))
        return upper + down * (lower - upper)


def _as_batch(transforms: Any) -> Any:
    transforms = tf.convert_to_tensor(transforms, tf.float32)
    if transforms.shape.ndims not in (1, 2):
        raise ValueError(f"transforms must be [8] or [n, 8], got shape {transforms.shape}")
    return tf.reshape(transforms, [-1, 8])


def _with_rank_4(images: Any) -> Any:
    rank = images.shape.ndims
    if rank not in (2, 3, 4):
        raise ValueError(f"images must be [h, w], [h, w, c] or [n, h, w, c], got {images.shape}")
    return {2: lambda: images[None, :, :, None], 3: lambda: images[None], 4: lambda: images}[rank]()


def _size(images: Any) -> Any:
    """Height and width, int32 [2]."""
    shape = tf.shape(images)
    return shape[1:3] if images.shape.ndims == 4 else shape[:2]

"""RandAugment and random erasing: each operation against NumPy, and how often there is which."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs import augmentation
from model_deploy.inputs.augmentation import erasing, operations, randaugment
from tests.inputs.sessions import run, seeds_of, train_values

pytestmark = pytest.mark.one_mode

# More than 512 pixels, so that equalizing has a step of 2.
SHAPES = [(23, 27, 3), (26, 22, 1)]
# None of which takes a pixel from just between two others.
STRENGTHS = (0.9, -0.9, 0.37, 0.0, 0.95, -0.98)


def some_images(shape, count=6):
    """Images of smooth stripes and some noise, uint8 [count, h, w, c]; the last is constant."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    noise = np.random.RandomState(1).randint(0, 60, [count, *shape])
    waves = 90 + 70 * np.sin(rows / 3 + columns / 5)[..., np.newaxis]
    images = (waves + noise).astype(np.uint8)
    images[-1] = 77
    return images


def rounded(values):
    """As an image."""
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def grey_of(image):
    """The brightness of each pixel, float64 [h, w, 1]."""
    weights = [0.2989, 0.5870, 0.1140] if image.shape[-1] == 3 else [1.0]
    return (image.astype(float) * weights).sum(axis=-1, keepdims=True)


def warped(image, x_of, y_of):
    """Each pixel (row, column) from where the functions say, 128 from outside."""
    height, width, _ = image.shape
    result = np.full_like(image, 128)
    for row in range(height):
        for column in range(width):
            x, y = round(x_of(column, row)), round(y_of(column, row))
            if 0 <= x < width and 0 <= y < height:
                result[row, column] = image[y, x]
    return result


def autocontrast(image, _):
    channels = []
    for channel in np.moveaxis(image.astype(float), -1, 0):
        low, high = channel.min(), channel.max()
        channels.append(channel if low == high else (channel - low) * 255 / (high - low))
    return rounded(np.stack(channels, axis=-1))


def equalize(image, _):
    result = image.copy()
    for number in range(image.shape[-1]):
        counts = [int((image[..., number] == value).sum()) for value in range(256)]
        step = (sum(counts) - [count for count in counts if count][-1]) // 255
        if step:
            table = [min(255, (sum(counts[:value]) + step // 2) // step) for value in range(256)]
            result[..., number] = np.array(table)[image[..., number]]
    return result


def rotate(image, strength):
    height, width, _ = image.shape
    angle, x0, y0 = math.radians(30 * strength), (width - 1) / 2, (height - 1) / 2
    return warped(
        image,
        lambda x, y: math.cos(angle) * (x - x0) + math.sin(angle) * (y - y0) + x0,
        lambda x, y: -math.sin(angle) * (x - x0) + math.cos(angle) * (y - y0) + y0,
    )


def sharpness(image, strength):
    result = image.astype(float)
    for row in range(1, image.shape[0] - 1):
        for column in range(1, image.shape[1] - 1):
            around = image[row - 1 : row + 2, column - 1 : column + 2].astype(float)
            smooth = (around.sum(axis=(0, 1)) + 4 * around[1, 1]) / 13
            result[row, column] = smooth + (1 + 0.9 * strength) * (around[1, 1] - smooth)
    return rounded(result)


def away_from(zero, image, strength):
    return rounded(zero + (1 + 0.9 * strength) * (image - zero))


NUMPY = {
    "identity": lambda image, s: image,
    "autocontrast": autocontrast,
    "equalize": equalize,
    "rotate": rotate,
    "solarize": lambda image, s: np.where(image < 256 - 256 * abs(s), image, 255 - image),
    "color": lambda image, s: away_from(grey_of(image), image, s),
    "posterize": lambda image, s: image // 2 ** round(4 * abs(s)) * 2 ** round(4 * abs(s)),
    "contrast": lambda image, s: away_from(np.round(grey_of(image).mean()), image, s),
    "brightness": lambda image, s: away_from(0, image, s),
    "sharpness": sharpness,
    "shear_x": lambda image, s: warped(image, lambda x, y: x + 0.3 * s * y, lambda x, y: y),
    "shear_y": lambda image, s: warped(image, lambda x, y: x, lambda x, y: y + 0.3 * s * x),
    "translate_x": lambda image, s: warped(
        image, lambda x, y: x + round(0.45 * s * image.shape[1]), lambda x, y: y
    ),
    "translate_y": lambda image, s: warped(
        image, lambda x, y: x, lambda x, y: y + round(0.45 * s * image.shape[0])
    ),
}


@pytest.mark.parametrize("name", sorted(operations.OPERATIONS))
def test_operation_is_that_of_numpy(name):
    """Each of the paper's 14 gives what loops in NumPy give: one in a hundred values may round
    apart. At strength 0 only the two operations without a strength change images.
    """
    assert len(operations.OPERATIONS) == 14
    for shape in SHAPES:
        images = some_images(shape)
        given, zeros = tf.constant(images), tf.zeros([len(images)])
        operation = operations.OPERATIONS[name]
        with tf.compat.v1.Session() as session:
            found = operation(given, tf.constant(STRENGTHS))
            found, unchanged = session.run([found, operation(given, zeros)])
        expected = np.stack([NUMPY[name](*each) for each in zip(images, STRENGTHS, strict=True)])
        assert found.dtype == np.uint8
        assert np.mean(found != expected) < 0.01, shape
        assert (unchanged == images).all() or name in {"autocontrast", "equalize"}


@pytest.mark.slow
def test_a_batch_is_augmented_as_its_images():
    """Images of a batch get what each of them gets alone, whatever else is in the batch."""
    images, seeds = some_images((16, 16, 3), 20), seeds_of(20)
    calls = []
    with tf.compat.v1.Session() as session:
        for shape in ([None, 16, 16, 3], [16, 16, 3]):
            fed = [
                tf.compat.v1.placeholder(tf.uint8, shape),
                tf.compat.v1.placeholder(tf.int64, [*shape[:-3], 2]),
            ]
            calls.append(session.make_callable(randaugment.randaugment(*fed, 2, 9), fed))
        batched, alone = calls
        batch = batched(images, seeds)
        np.testing.assert_array_equal(batched(images[7:], seeds[7:]), batch[7:])
        for image, seed, expected in zip(images[:6], seeds, batch, strict=False):
            np.testing.assert_array_equal(alone(image, seed), expected)


@pytest.mark.slow
def test_each_operation_and_direction_is_as_likely():
    """Of 2,800 images with one layer, as many are what each operation and direction makes."""
    image = some_images((24, 24, 3))[0]
    found = run(
        lambda: randaugment.randaugment(
            tf.constant(np.repeat(image[np.newaxis], 2800, axis=0)),
            tf.constant(seeds_of(2800)),
            layers=1,
            magnitude=7,
        )
    )

    def changed():
        both, strengths = tf.constant(np.stack([image, image])), tf.constant([0.7, -0.7])
        return tf.concat([each(both, strengths) for each in operations.OPERATIONS.values()], axis=0)

    counts = collections.Counter(one.tobytes() for one in found)
    # Where both directions are one, it comes twice as often.
    for content, times in collections.Counter(one.tobytes() for one in run(changed)).items():
        share = times / 28
        # Five standard deviations of a binomial distribution.
        assert abs(counts.pop(content) - 2800 * share) < 5 * math.sqrt(2800 * share * (1 - share))
    assert not counts


def erased_boxes(shape, count=1000, probability=1.0):
    """Where ones became zeros, bool [count, h, w]."""
    seeds = seeds_of(count)
    found = run(lambda: erasing.erase(tf.ones([count, *shape, 2]), tf.constant(seeds), probability))
    np.testing.assert_array_equal(found[..., 0], found[..., 1])
    assert set(np.unique(found)) <= {0, 1}
    return found[..., 0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(64, 64), (40, 100)])
def test_erased_boxes_have_areas_and_aspects_of_the_range(shape):
    """Each is one box with 2 to 33 % of the image, evenly; 0.3 to 3.3 times as high as wide."""
    boxes = erased_boxes(shape)
    heights, widths = boxes.any(axis=2).sum(axis=1), boxes.any(axis=1).sum(axis=1)
    areas = boxes.sum(axis=(1, 2))
    np.testing.assert_array_equal(areas, heights * widths)
    # Sides are rounded to whole pixels.
    assert ((heights + 0.5) * (widths + 0.5)).min() >= 0.02 * shape[0] * shape[1]
    assert ((heights - 0.5) * (widths - 0.5)).max() <= 0.33 * shape[0] * shape[1]
    assert ((heights + 0.5) / (widths - 0.5)).min() >= 0.3
    assert ((heights - 0.5) / (widths + 0.5)).max() <= 1 / 0.3
    # The mean of a uniform distribution, to five standard deviations.
    deviation = 0.31 / math.sqrt(12 * len(areas))
    assert abs(areas.mean() / (shape[0] * shape[1]) - 0.175) < 5 * deviation + 0.001


def test_erasing_has_its_probability_and_reaches_every_pixel():
    """A quarter of the images is erased, and each pixel of some image; the rest is as before. Where
    no aspect of the range fits, the box is as wide as the image.
    """
    boxes = erased_boxes((20, 30), count=4000, probability=0.25)
    assert abs(boxes.any(axis=(1, 2)).mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)
    assert boxes.any(axis=0).all()
    boxes = erased_boxes((4, 200), count=200)
    assert boxes.any(axis=(1, 2)).all()
    assert not boxes.all(axis=(1, 2)).any()


@pytest.mark.parametrize("family", ["lenet", "cifarnet", "inception", "vgg"])
def test_families_give_cut_images_before_they_normalize(family):
    """What a family gives is of the wanted size, 0 to 255; what it gets back it normalizes."""
    found = inputs.get_preprocessing(family)
    image = some_images((40, 40, 3), 2)[0]
    options = {"resize_side_min": 40, "resize_side_max": 60} if family == "vgg" else {}
    seen = []

    def build():
        def extra(factor):
            def change(part):
                seen.append(tf.cast(part, tf.float32))
                return tf.cast(tf.round(seen[-1] * factor), tf.uint8)

            return change

        batch = tf.constant(image[np.newaxis] if found.batched else image)
        seed = tf.constant([[3, 4]] if found.batched else [3, 4], tf.int64)
        same, black, plain = (
            found.train(batch, 32, 32, seed, **options, **more)
            for more in ({"extra_augment": extra(1)}, {"extra_augment": extra(0)}, {})
        )
        return same, black, plain, seen[0]

    same, black, plain, part = run(build)
    assert part.shape[-3:] == (32, 32, 3)
    assert 100 < part.max() <= 255
    assert part.min() >= 0
    # Only that values are rounded to whole ones makes a difference.
    np.testing.assert_allclose(same, plain, atol={"vgg": 0.51, "inception": 0.02}.get(family, 1e-5))
    assert np.ptp(black.reshape([-1, 3]), axis=0).max() < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"randaugment_layers": -1}, "randaugment_layers must be at least 0, got -1"),
        ({"randaugment_layers": 1.5}, "randaugment_layers must be an integer, got 1.5"),
        ({"randaugment_magnitude": 10.5}, "randaugment_magnitude must be at most 10, got 10.5"),
        ({"random_erasing": 1.1}, "random_erasing must be at most 1, got 1.1"),
        ({"mixup": -0.1}, "mixup must be at least 0, got -0.1"),
        ({"mixup": math.inf}, "mixup must be finite, got inf"),
        ({"cutmix": 2000}, "cutmix must be at most 1000, got 2000"),
        ({"crop_padding": -1}, "crop_padding must be at least 0, got -1"),
        ({"cutmix": "1"}, "cutmix must be a number, got '1'"),
    ],
)
def test_augmentation_rejects(options, message):
    """A setting that breaks a rule is an error with its name, rule and value."""
    with pytest.raises(ValueError, match=message):
        augmentation.Augmentation(**options)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([1, 8, 8, 2], "0 for images without 1 or 3 channels, got 1 with 2 channels"),
        ([1, 2, 8, 3], "0 for images below 3 x 3, got 1 with 2 x 8"),
    ],
)
def test_randaugment_rejects(shape, message):
    """Images that its operations have no meaning for are an error when the graph is built."""
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        randaugment.randaugment(tf.zeros(shape, tf.uint8), tf.zeros([1, 2], tf.int64), 1, 9)


def test_crop_padding_reaches_the_family():
    """Without padding images of the right size are mirrored at most; with it 24 of 25 are moved.
    Where there is nothing left of the edges to mirror the error names the setting and both.
    """
    dataset = inputs.get_dataset("synthetic", "train", num_examples=64, image_size=8)

    def batch(padding):
        settings = augmentation.Augmentation(crop_padding=padding)
        options = {"preprocessing": "padded_crop", "augmentation": settings}
        [[batch]] = train_values(dataset, 1, batch_size=64, **options)
        return batch["image"]

    family = inputs.get_preprocessing("padded_crop")
    whole = run(lambda: family.evaluate(tf.constant(dataset.source.arrays[0]), 8, 8))
    known = np.concatenate([whole, whole[:, :, ::-1]])
    for padding, least, most in ((0, 1, 1), (2, 0, 0.25)):
        distances = np.abs(batch(padding)[:, np.newaxis] - known).max(axis=(2, 3, 4)).min(axis=1)
        assert least <= np.mean(distances < 1e-5) <= most
    with pytest.raises(ValueError, match=r"^crop_padding must be less than the 8 pixels .* got 8$"):
        batch(8)

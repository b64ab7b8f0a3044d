"""Images that vary in size: a batch has of each what the family makes of it alone."""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.order import randomness
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode

SIZES = [(9, 14), (16, 16), (12, 20), (20, 12), (16, 10), (11, 11), (30, 17)]
BATCH, SIZE, SEED = 3, (12, 10), 5
_FAMILIES = [
    ("cifarnet", {}),
    ("cifarnet", {"crop_padding": 2}),
    ("padded_crop", {}),
    ("lenet", {}),
    ("inception", {}),
    ("keras", {}),
    ("vgg", {}),
]


class InPython:
    """A source with nothing but `read`, as users register them."""

    def __init__(self, source):
        self.tolerance, self.read, self.corrupt = source.tolerance, source.read, source.corrupt


def _images():
    return [files.noise([*size, 3], number) for number, size in enumerate(SIZES)]


def _dataset(folder, kind):
    records = [files.example(files.encode(each), number) for number, each in enumerate(_images())]
    path = files.write_records(folder / "tiny_train.tfrecord", records)
    if kind == "with a corrupt record":
        content = bytearray(path.read_bytes())
        content[-20] ^= 1
        path.write_bytes(content)
    dataset = files.get(folder, num_classes=len(SIZES), skip_corrupt_records=1)
    if kind == "in Python":
        return inputs.Dataset(**vars(dataset) | {"source": InPython(dataset.source)})
    return dataset


def _each_alone(family, images, seeds=None, **options):
    """What a family makes of images, one by one."""

    def one(image, seed=None):
        inputs_of_one = [tf.constant(image), *([] if seed is None else [tf.constant(seed)])]
        if family.batched:
            inputs_of_one = [each[tf.newaxis] for each in inputs_of_one]
        function = family.evaluate if seed is None else family.train
        result = function(inputs_of_one[0], *SIZE, *inputs_of_one[1:], **options)
        return result[0] if family.batched else result

    return sessions.run(lambda: list(map(one, images, *([] if seeds is None else [seeds]))))


@pytest.mark.parametrize("kind", ["by ops", "in Python", "with a corrupt record"])
@pytest.mark.parametrize(("name", "options"), _FAMILIES)
def test_training(name, options, kind, tmp_path):
    """The image at a position is that of the seed with this position; a corrupt one has another in
    its place.
    """
    small = {"resize_side_min": 12, "resize_side_max": 15} if name == "vgg" else {}
    family = inputs.get_preprocessing(name)
    steps = sessions.train_values(
        _dataset(tmp_path, kind),
        4,
        batch_size=BATCH,
        image_size=SIZE,
        preprocessing=name,
        seed=SEED,
        preprocessing_options=small,
        augmentation=inputs.Augmentation(**options),
    )
    own = small | ({"padding": options["crop_padding"]} if options else {})
    found = {key: np.concatenate([step[0][key] for step in steps]) for key in steps[0][0]}
    assert len(found["index"]) == 4 * BATCH
    assert found["label"].tolist() == found["index"].tolist()
    assert (len(SIZES) - 1 in found["index"]) == (kind != "with a corrupt record")
    images = [_images()[index] for index in found["index"]]
    expected = _each_alone(family, images, sessions.seeds_of(len(images), SEED), **own)
    np.testing.assert_allclose(found["image"], expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["by ops", "in Python", "with a corrupt record"])
@pytest.mark.parametrize("name", ["cifarnet", "padded_crop", "lenet", "inception", "keras", "vgg"])
def test_evaluation(name, kind, tmp_path):
    """Each image once, as the family makes it of the image alone; a corrupt one is left out."""
    options = {"resize_side_min": 13} if name == "vgg" else {}
    batches = sessions.eval_values(
        _dataset(tmp_path, kind),
        batch_size=BATCH,
        image_size=SIZE,
        preprocessing=name,
        preprocessing_options=options,
    )
    found = np.concatenate([each["image"] for each in batches])
    assert len(found) == len(SIZES) - (kind == "with a corrupt record")
    family = inputs.get_preprocessing(name)
    expected = _each_alone(family, _images()[: len(found)], **options)
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "size", "padding", "message"),
    [
        ("cifarnet", 18, 4, r"height and width must be .* of the padded images, got \[18, 18\]"),
        ("padded_crop", 12, 9, r"padding \(crop_padding\) must be less than the pixels .*, got 9"),
    ],
)
def test_too_small_images(name, size, padding, message, tmp_path):
    """An image that cannot be cropped as wanted is an error that names rule and value."""
    augmentation = inputs.Augmentation(crop_padding=padding)
    options = {"image_size": size, "batch_size": 7, "preprocessing": name}
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sessions.train_values(_dataset(tmp_path, "by ops"), 1, augmentation=augmentation, **options)


def test_a_family_of_users(tmp_path):
    """A registered family may crop images alone and draw many numbers at once, too."""

    def shade(batch, height, width, seeds, *, crop_image=True):
        assert not crop_image
        assert batch.shape.as_list() == [BATCH, height, width, 3]
        return tf.cast(batch, tf.float32) + tf.cast(seeds[:, 1], tf.float32)[:, None, None, None]

    def crop(image, height, width, *, draws=None):
        if draws is None:
            return image[:height, :width]
        return tf.cast(tf.fill([height, width, 3], draws[1] * 100), tf.uint8)

    inputs.register_preprocessing(
        "shaded", lambda batch, *_: tf.cast(batch, tf.float32), batched=True, crop=crop, num_draws=2
    )(shade)
    options = {"image_size": (9, 10), "batch_size": BATCH, "preprocessing": "shaded"}
    dataset = _dataset(tmp_path, "by ops")
    [[batch]] = sessions.train_values(dataset, 1, seed=SEED, **options)
    for position, image in enumerate(batch["image"]):
        seed = np.array([SEED, position], np.int64)
        draws = sessions.run(lambda seed=seed: randomness.uniform(tf.constant(seed), 2))
        np.testing.assert_array_equal(image, np.floor(draws[1] * 100) + position + 0 * image)
    first = sessions.eval_values(dataset, **options)[0]["image"][0]
    np.testing.assert_array_equal(first, _images()[0][:9, :10])


def test_a_crop_of_another_size(tmp_path):
    """A crop that does not return the wanted size is named when the graph is built."""

    def crop(*_, **__):
        return tf.zeros([4, 5, 3], tf.uint8)

    family = inputs.Preprocessing("halved", crop, crop, batched=True, crop=crop)
    message = r"crop of preprocessing 'halved' must return \[9, 10, 3\], got \(4, 5, 3\)"
    options = {"image_size": (9, 10), "batch_size": BATCH, "preprocessing": family}
    with pytest.raises(ValueError, match=message):
        sessions.train_values(_dataset(tmp_path, "by ops"), 1, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop": len}, "crop of preprocessing 'mine' must come with batched=True, got .*=False"),
        ({"num_draws": -1}, "num_draws must be at least 0, got -1"),
        ({"num_draws": 2, "batched": True}, "which is batched, must be 0 without crop, got 2"),
    ],
)
def test_families_reject(options, message):
    """Settings of a family that would have no effect are refused."""
    with pytest.raises(ValueError, match=message):
        inputs.Preprocessing("mine", len, len, **options)

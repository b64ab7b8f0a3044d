"""Preprocessing families: evaluation against recorded numbers, training against its bounds."""

import itertools
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.preprocessing import cifarnet, inception
from nets import nets_factory
from tests.inputs.sessions import run, seeds_of

pytestmark = pytest.mark.one_mode  # with `--v1` tests/tf1/test_preprocessing.py calls the same

RECORDED = json.loads(
    pathlib.Path(__file__).with_name("data").joinpath("preprocessing.json").read_text()
)
RGB = [32, 32, 3]


def formula_image(shape, dtype="uint8", constant=None):
    """The image of the recorded outputs: a formula over three channels, or a constant."""
    height, width, channels = shape
    values = (np.arange(height * width * 3, dtype=np.int64) * 31 % 251).astype(np.uint8)
    image = values.reshape([height, width, 3])[..., :channels]
    if constant is not None:
        image = np.full_like(image, constant)
    return image if dtype == "uint8" else (image / 255).astype(np.float32)


def apply(family, image, height, width, seeds=None, **options):
    """Preprocesses one image [h, w, c], for training with each seed, if there are any."""
    family = inputs.get_preprocessing(family)

    def build():
        if seeds is None:
            batch = image[np.newaxis] if family.batched else image
            result = family.evaluate(tf.constant(batch), height, width, **options)
            return result[0] if family.batched else result
        batch = tf.constant(np.repeat(image[np.newaxis], len(seeds), axis=0))
        return family.train(batch, height, width, tf.constant(seeds), **options)

    if seeds is None or family.batched:
        return run(build)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        seed = tf.compat.v1.placeholder(tf.int64, [2])
        result = family.train(tf.constant(image), height, width, seed, **options)
        return np.stack([session.run(result, {seed: each}) for each in seeds])


def assert_recorded(result, case):
    """Asserts that an image has the recorded statistics and pixels to 1e-5 of the range."""
    assert list(result.shape) == case["shape"]
    flat = result.reshape(-1).astype(np.float64)
    middle = flat.size // 2
    found = {"first8": flat[:8], "middle8": flat[middle : middle + 8], "last8": flat[-8:]}
    found |= {name: getattr(flat, name)() for name in ("mean", "std", "min", "max")}
    for name, values in found.items():
        tolerance = 1e-5 * max(1, np.abs(flat).max())
        np.testing.assert_allclose(values, case[name], rtol=1e-7, atol=tolerance, err_msg=name)


recorded_cases = pytest.mark.parametrize("case", RECORDED["eval"], ids=lambda case: case["family"])


@recorded_cases
def test_evaluation_matches_recorded_numbers(case):
    """Evaluation gives the recorded statistics and pixels."""
    image = formula_image(case["input"], case.get("input_dtype", "uint8"), case.get("constant"))
    assert_recorded(apply(case["family"], image, *case["output_size"], **case["options"]), case)


@pytest.mark.parametrize(("network", "family"), sorted(RECORDED["networks"].items()))
def test_networks_have_their_family(network, family):
    """Each network name finds the family that it was trained with."""
    assert inputs.get_preprocessing(network).name == family


def test_all_networks_for_images_have_a_family():
    """Only the networks for videos have no preprocessing."""
    names = inputs.preprocessing_names()
    without = [each for each in nets_factory.networks_map if each not in names]
    assert without == ["i3d", "s3dg"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "size", "options"),
    [
        ("cifarnet", 28, {}),
        ("cifarnet", 28, {"use_grayscale": True}),
        ("padded_crop", 28, {}),
        ("padded_crop", 28, {"use_grayscale": True}),
        ("vgg", 32, {"resize_side_min": 40, "resize_side_max": 60}),
        ("inception", 24, {}),
        ("inception", 24, {"fast_mode": False}),
        ("inception", 24, {"crop_image": False}),
        ("inception", 24, {"use_grayscale": True}),
    ],
)
def test_training_is_a_function_of_the_seed(family, size, options):
    """The same seed gives the same image, other seeds give others. Inception's are from -1 to 1,
    those of the small families have mean 0 and standard deviation 1.
    """
    seeds = np.tile(seeds_of(8), [2, 1])
    found = apply(family, formula_image([32, 36, 3]), size, size, seeds, **options)
    np.testing.assert_array_equal(found[:8], found[8:])
    assert found.shape == (16, size, size, 1 if options.get("use_grayscale") else 3)
    assert len({each.tobytes() for each in found}) == 8
    if family == "inception":
        assert -1 <= found.min() < found.max() <= 1
    if family in ("cifarnet", "padded_crop"):
        np.testing.assert_allclose(found.mean(axis=(1, 2, 3), dtype=float), 0, atol=1e-5)
        np.testing.assert_allclose(found.std(axis=(1, 2, 3), dtype=float), 1, atol=1e-4)


def test_lenet_trains_as_it_evaluates():
    """The lenet family has no augmentation."""
    image = formula_image([32, 30, 1])
    trained = apply("lenet", image, 28, 28, seeds_of(3))
    np.testing.assert_array_equal(trained, np.stack([apply("lenet", image, 28, 28)] * 3))


@pytest.mark.parametrize(
    ("padding", "options"),
    [(4, {}), (2, {"padding": 2}), (0, {"padding": 0}), (11, {"padding": 11})],
)
def test_padded_crop_takes_parts_of_the_reflected_image(padding, options):
    """Each result is a part of the image with a border that mirrors it, or a mirrored part."""
    image = formula_image([12, 12, 3])
    padded = np.pad(image, [(padding, padding), (padding, padding), (0, 0)], mode="reflect")
    places = range(2 * padding + 1)
    parts = [padded[y : y + 12, x : x + 12] for y in places for x in places]
    parts += [part[:, ::-1] for part in parts]
    evaluate = inputs.get_preprocessing("padded_crop").evaluate
    possible = run(lambda: evaluate(tf.constant(np.stack(parts)), 12, 12))
    found = apply("padded_crop", image, 12, 12, seeds_of(40), **options)
    distances = np.abs(found[:, np.newaxis] - possible).max(axis=(2, 3, 4))
    assert distances.min(axis=1).max() < 1e-5
    assert len(set(distances.argmin(axis=1))) > min(20, len(parts) - 1)


def test_cifarnet_distorts_as_one_image_after_the_other():
    """The affine form of brightness, contrast and standardization equals the three steps."""
    generator = np.random.RandomState(3)
    batch = generator.randint(-128, 128, [5, 6, 7, 3]).astype(np.float32)
    batch[4] = 9  # constant: the standard deviation is bounded from below
    brightness = generator.uniform(-63, 63, [5]).astype(np.float32)
    contrast = generator.uniform(0.2, 1.8, [5]).astype(np.float32)

    def three_steps(image, delta, factor):
        image = tf.image.adjust_brightness(tf.constant(image), delta)
        image = tf.image.adjust_contrast(image, factor)
        return tf.image.per_image_standardization(image)

    distort = cifarnet.distort_and_standardize
    images = zip(batch, brightness, contrast, strict=True)
    at_once, one_by_one = run(
        lambda: (
            distort(*map(tf.constant, (batch, brightness, contrast))),
            tf.stack([three_steps(*each) for each in images]),
        )
    )
    np.testing.assert_allclose(at_once, one_by_one, atol=2e-4)


def test_cifarnet_shifts_and_mirrors_uniformly():
    """Every offset from 0 to 8 of both axes, mirrored or not, turns up about equally often."""
    # A pixel's value tells its place, and what is left tells which way it was cut.
    image = np.arange(64, dtype=np.uint8).reshape([8, 8, 1])
    places = run(
        lambda: cifarnet.shift_and_mirror(
            tf.constant(np.repeat(image[np.newaxis] + 1, 4000, axis=0)),
            8,
            8,
            cifarnet.uniform_per_image(tf.constant(seeds_of(4000)), 3),
        )
    )[..., 0].astype(int)
    padded = np.pad(image[..., 0].astype(int) + 1, 4)
    expected = {}
    for top, left in itertools.product(range(9), range(9)):
        window = padded[top : top + 8, left : left + 8]
        expected[window.tobytes()] = (top, left, False)
        expected[window[:, ::-1].tobytes()] = (top, left, True)
    found = np.array([expected[np.ascontiguousarray(each).tobytes()] for each in places])
    for column, size in ((0, 9), (1, 9), (2, 2)):
        counts = np.bincount(found[:, column], minlength=size)
        # Five standard deviations of a binomial distribution.
        share = 1 / size
        assert np.abs(counts - 4000 * share).max() < 5 * np.sqrt(4000 * share * (1 - share))


def test_vgg_cuts_a_part_of_the_scaled_image():
    """Without a choice of sides and offsets, training is evaluation or its mirror image."""
    image = formula_image(RGB)
    evaluated = apply("vgg", image, 40, 40, resize_side_min=40)
    trained = apply("vgg", image, 40, 40, seeds_of(8), resize_side_min=40, resize_side_max=40)
    expected = {evaluated.tobytes(), evaluated[:, ::-1].tobytes()}
    assert {each.tobytes() for each in trained} == expected


def test_inception_crops_encoded_images_as_decoded_ones():
    """Decoding only the random part of a JPEG gives the part that would be cut out."""
    image = np.repeat(np.repeat(formula_image([8, 9, 3]), 8, axis=0), 8, axis=1)

    def build(seed):
        contents = tf.io.encode_jpeg(image, quality=95)
        decoded = tf.io.decode_jpeg(contents)
        begin, size = inception.random_part(tf.shape(decoded), seed)
        return inception.crop_encoded(contents, seed, 3), tf.slice(decoded, begin, size)

    for at_once, after in run(lambda: [build(tf.constant(seed)) for seed in seeds_of(5)]):
        assert at_once.shape == after.shape
        # The edge of a part is decoded without its neighbours (chroma upsampling).
        inner = np.abs(at_once.astype(int) - after.astype(int))[2:-2, 2:-2]
        assert np.median(inner) == 0


@pytest.mark.parametrize("fast_mode", [False, True])
def test_inception_takes_grey_images(fast_mode):
    """Grey images keep their channel."""
    images = apply("inception", formula_image([20, 20, 1]), 8, 8, seeds_of(2), fast_mode=fast_mode)
    assert images.shape == (2, 8, 8, 1)


@pytest.mark.parametrize(
    ("family", "shape", "training", "options", "message"),
    [
        ("cifarnet", [20, 20, 3], True, {}, "height must be at most 28, .* got 32"),
        ("padded_crop", [20, 20, 3], True, {}, "must be at most 28, .* got 32"),
        ("padded_crop", RGB, True, {"padding": 32}, "less than the 32 pixels of an image, got 32"),
        ("vgg", RGB, False, {"use_grayscale": True}, "needs 3 channels, got 1"),
        ("vgg", [32, 32, 1], True, {}, "needs 3 channels, got 1"),
        ("vgg", RGB, False, {"resize_side_min": 31}, "most resize_side_min=31, got 32 x 32"),
        ("vgg", RGB, True, {"resize_side_max": 255}, "at least resize_side_min=256, got 255"),
    ],
)
def test_families_reject(family, shape, training, options, message):
    """Images that a family cannot preprocess are an error when the graph is built."""
    with pytest.raises(ValueError, match=message):
        apply(family, formula_image(shape), 32, 32, seeds_of(1) if training else None, **options)


@pytest.mark.parametrize(
    ("height", "padding", "message"),
    [
        (8, 8, r"padding \(crop_padding\) must be less than the pixels of an image, got 8"),
        (20, 4, "height must be at most that of the padded images, got 20"),
    ],
)
def test_padded_crop_rejects_images_of_unknown_size(height, padding, message):
    """Where a size is known only at run time, the error then names the rule and the value."""
    family = inputs.get_preprocessing("padded_crop")

    def build():
        images = tf.compat.v1.placeholder_with_default(np.zeros([1, 8, 8, 3], "uint8"), [None] * 4)
        return family.train(images, height, 8, tf.constant(seeds_of(1)), padding=padding)

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(build)


def test_names_are_rejected():
    """An unknown name is an error that lists the known ones; neither a family nor a network can get
    a second preprocessing.
    """
    with pytest.raises(ValueError, match=r"must be one of .*cifarnet.*, got 'other'"):
        inputs.get_preprocessing("other")
    for name in ("lenet", "resnet_v1_50"):
        with pytest.raises(ValueError, match=f"preprocessing name must be new, got '{name}'"):
            inputs.register_preprocessing("new_family", lambda *_: None, networks=(name,))

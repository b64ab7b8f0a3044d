"""`preprocessing` of TF-Slim: one image at a time, as it was prepared."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import inputs
from model_deploy.tf1.preprocessing import (
    arguments,
    cifarnet_preprocessing,
    inception_preprocessing,
    vgg_preprocessing,
)
from model_deploy.tf1.preprocessing.preprocessing_factory import get_preprocessing
from tests.inputs.sessions import run
from tests.inputs.test_preprocessing import (
    RECORDED,
    assert_recorded,
    formula_image,
    recorded_cases,
)

# Their evaluation takes the width for the height, as TF-Slim's does.
_SWAPPED = ("cifarnet", "lenet")


def _many(preprocess, image, count=20):
    """The image, preprocessed with fresh random numbers each time: float32 [count, ...]."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(5)
        result = preprocess(tf.constant(image))
        return np.stack([session.run(result) for _ in range(count)])


@pytest.mark.one_mode
@recorded_cases
def test_evaluation_matches_recorded_numbers(case):
    """Evaluation gives the recorded statistics and pixels to 1e-5 of the range."""
    image = formula_image(case["input"], case.get("input_dtype", "uint8"), case.get("constant"))
    options = dict(case["options"])
    grey = options.pop("use_grayscale", False)
    function = get_preprocessing(case["family"], use_grayscale=grey)
    size = case["output_size"][:: -1 if case["family"] in _SWAPPED else 1]
    assert_recorded(run(lambda: function(tf.constant(image), *size, **options)), case)


@pytest.mark.one_mode
@pytest.mark.parametrize("name", sorted(RECORDED["networks"]))
def test_every_name_of_slim(name):
    """Each network's function makes an image of the size that is asked for, with known shape."""
    function = get_preprocessing(name, is_training=False)
    result = function(tf.placeholder(tf.uint8, [None, None, 3]), 24, 24)
    assert result.shape.as_list() == [24, 24, 3]
    assert result.dtype == tf.float32


@pytest.mark.one_mode
@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("name", ["cifarnet", "inception", "lenet", "vgg"])
def test_images_of_unknown_shape_and_sizes_of_old_shapes(name, is_training):
    """An image may come from a decoder that knows no shape; a size may be an entry of a shape."""
    image = tf.placeholder_with_default(formula_image([32, 30, 3]), None)
    size = tf.zeros([20, 20]).shape[0]  # an `int`, or TensorFlow 1's `Dimension`
    options = {} if name == "lenet" else {"use_grayscale": False}
    function = get_preprocessing(name, is_training=is_training, **options)
    if name == "inception" and not is_training:
        image = tf.ensure_shape(image, [None, None, 3])
    with tf.Session() as session:
        result = session.run(function(image, size, size))
    assert result.shape == (20, 20, 3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("cifarnet", {}, id="cifarnet"),
        pytest.param("inception", {}, id="inception"),
        pytest.param("inception", {"fast_mode": False}, id="inception_full"),
        pytest.param("vgg", {"resize_side_min": 24, "resize_side_max": 40}, id="vgg"),
    ],
)
def test_training_is_random_and_follows_the_seed(name, options):
    """Each run prepares the image in another way; the graph's seed says in which."""
    preprocess = functools.partial(
        get_preprocessing(name, is_training=True), output_height=24, output_width=24, **options
    )
    first, again = (_many(preprocess, formula_image([32, 36, 3]), 6) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len({each.tobytes() for each in first}) == 6


@pytest.mark.one_mode
def test_training_of_a_part_that_is_all():
    """Where nothing is left to chance but the mirror, training is evaluation, mirrored or not."""
    image = formula_image([24, 24, 3])
    options = {"resize_side_min": 24, "resize_side_max": 24}
    plain = run(lambda: vgg_preprocessing.preprocess_for_eval(tf.constant(image), 24, 24, 24))
    found = _many(
        lambda each: vgg_preprocessing.preprocess_for_train(each, 24, 24, **options), image, 8
    )
    both = plain.tobytes(), plain[:, ::-1].tobytes()
    assert {each.tobytes() for each in found} == set(both)


@pytest.mark.one_mode
def test_cifarnet_without_padding_changes_only_colours():
    """Standardized, other brightness and contrast leave the image or its mirror image."""
    grey = formula_image([16, 16, 1])
    preprocess = functools.partial(
        cifarnet_preprocessing.preprocess_for_train,
        output_height=16,
        output_width=16,
        padding=0,
        add_image_summaries=False,
    )
    plain = run(lambda: get_preprocessing("cifarnet")(tf.constant(grey), 16, 16))
    for each in _many(preprocess, grey, 8):
        mirrored = not np.allclose(each, plain, atol=1e-4)
        np.testing.assert_allclose(each[:, ::-1] if mirrored else each, plain, atol=1e-4)


@pytest.mark.one_mode
def test_inception_cuts_around_the_boxes():
    """The part has at least a tenth of the box, 5 to 100% of the image, and is what is returned."""
    image = np.stack(np.meshgrid(np.arange(60), np.arange(80), indexing="ij"), axis=-1)
    box = np.array([[[0.5, 0.5, 1.0, 1.0]]], np.float32)
    part, found = inception_preprocessing.distorted_bounding_box_crop(
        tf.constant(image.astype(np.uint8)), tf.constant(box)
    )
    with tf.Session() as session:
        for _ in range(30):
            cut, [[[top, left, bottom, right]]] = session.run([part, found])
            rows, columns = round(top * 60), round(left * 80)
            np.testing.assert_array_equal(
                cut, image[rows : rows + cut.shape[0], columns : columns + cut.shape[1]]
            )
            covered = max(0, bottom - max(top, 0.5)) * max(0, right - max(left, 0.5)) / 0.25
            assert covered > 0.1 - 0.05  # sizes are whole pixels
            assert 0.04 < cut.shape[0] * cut.shape[1] / (60 * 80) <= 1


def test_random_selector_takes_every_case():
    """Each case gets its turn, about as often as the others."""
    result = inception_preprocessing.apply_with_random_selector(
        tf.constant(10), lambda x, case: x + case, 4
    )
    with tf.Session() as session:
        found = [int(session.run(result)) for _ in range(200)]
    counts = np.bincount(found)[10:]
    # Five standard deviations of a binomial distribution.
    assert np.abs(counts - 50).max() < 5 * np.sqrt(200 * 0.25 * 0.75)
    assert len(counts) == 4


@pytest.mark.parametrize(
    ("ordering", "fast_mode"), [(0, True), (1, True), (2, False), (3, False), (0, False)]
)
def test_distort_color_stays_in_its_range(ordering, fast_mode):
    """Each order gives colours from 0 to 1, other ones than before."""
    image = (formula_image([12, 10, 3]) / 255).astype(np.float32)
    found = _many(
        lambda each: inception_preprocessing.distort_color(each, ordering, fast_mode), image, 4
    )
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.abs(found - image).max(axis=(1, 2, 3)).min() > 0.01


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "is_training", "options", "tags"),
    [
        ("cifarnet", True, {}, "distorted_image image"),
        ("cifarnet", False, {}, "image resized_image"),
        (
            "inception",
            True,
            {},
            "cropped_resized_image final_distorted_image image_with_bounding_boxes "
            "images_with_distorted_bounding_box",
        ),
        (
            "inception",
            True,
            {"crop_image": False},
            "final_distorted_image image_with_bounding_boxes resized_image",
        ),
        ("inception", False, {}, ""),
        ("vgg", True, {}, ""),
    ],
)
def test_image_summaries(name, is_training, options, tags):
    """The steps of training are in the summaries unless they are switched off."""
    function = get_preprocessing(name, is_training=is_training)
    image = tf.constant(formula_image([30, 30, 3]))
    function(image, 24, 24, **options)
    names = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert sorted(each.split("/")[-1] for each in names) == tags.split()
    with tf.Session() as session:
        for text in session.run(tf.get_collection(tf.GraphKeys.SUMMARIES)):
            assert tf.Summary.FromString(text).value[0].image.height > 0
    if name != "vgg":
        function(image, 24, 24, add_image_summaries=False, **options)
        assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == len(names)


def test_inception_evaluation_may_keep_the_size():
    """Without a size the centre stays as it is: 7/8 of each side, from -1 to 1."""
    image = formula_image([32, 48, 3])
    result = run(
        lambda: inception_preprocessing.preprocess_for_eval(tf.constant(image), None, None)
    )
    np.testing.assert_allclose(result, image[2:30, 3:45] / 127.5 - 1, atol=1e-6)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_preprocessing("other"), "must be one of .*vgg_19.*, got 'other'"),
        (
            lambda: inception_preprocessing.distort_color(tf.zeros([2, 2, 3]), 4, fast_mode=False),
            "color_ordering must be from 0 to 3, got 4",
        ),
        (
            lambda: inception_preprocessing.preprocess_for_eval(tf.zeros([2, 2, 3]), 1, 1, 1.5),
            "central_fraction must be above 0 and at most 1, got 1.5",
        ),
        (
            lambda: arguments.as_image(np.zeros([1, 2, 2, 3])),
            r"image must be \[height, width, channels\], got shape \[1, 2, 2, 3\]",
        ),
        (
            lambda: vgg_preprocessing.preprocess_image(tf.zeros([9, 9, 3]), 4, 4, False, 3),
            "at most resize_side_min=3, got 4 x 4",
        ),
    ],
)
def test_preprocessing_rejects(call, message):
    """A mistake in a name, a number or a shape is an error that says what it was."""
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("own_registries")
def test_preprocessing_that_a_program_registers_is_none_of_slims():
    """What `register_preprocessing` added has another signature and is not given out here."""
    inputs.register_preprocessing("mine", lambda *_: None)(lambda *_: None)
    with pytest.raises(ValueError, match="must be one that TF-Slim had, got 'mine'"):
        get_preprocessing("mine")

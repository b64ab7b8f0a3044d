"""JPEGs that are reduced while they are decoded: about the same pixels, fewer of them."""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.preprocessing import inception
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("number", range(3))
def test_part_is_reduced_to_no_less_than_asked(number):
    """The same part, reduced by a power of two, is as large as asked and looks alike."""
    jpeg = files.encode(files.smooth(600, 800), "jpeg")

    def build():
        seed = tf.constant([3, number], tf.int64)
        whole = inception.crop_encoded(jpeg, seed, 3)
        reduced = inception.crop_encoded(jpeg, seed, 3, smallest=(64, 48))
        height, width = tf.unstack(tf.shape(reduced)[:2])
        mean = tf.image.resize(whole, [height, width], method="area")
        return whole, reduced, mean

    whole, reduced, mean = sessions.run(build)
    ratio = min(whole.shape[0] // 64, whole.shape[1] // 48)
    expected = max([each for each in (1, 2, 4, 8) if each <= ratio], default=1)
    assert reduced.shape[:2] == (whole.shape[0] // expected, whole.shape[1] // expected)
    # Its edge is moved by less than a reduced pixel; on average, neighbours differ by less than 2.
    assert np.abs(reduced - mean).mean() < 2 * expected


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_part_is_that_of_the_reduced_image(ratio):
    """The pixels are those of JPEG's own reduction of the whole image, in the same place."""
    jpeg = files.encode(files.smooth(600, 800), "jpeg")
    side = 400 // ratio

    def build():
        window = tf.constant([104, 56, 400, 408])
        part = inception.decode_reduced(jpeg, window, 3, (side, side))
        return part, tf.io.decode_jpeg(jpeg, 3, ratio=ratio)

    part, image = sessions.run(build)
    top, left, height, width = (each // ratio for each in (104, 56, 400, 408))
    expected = image[top : top + height, left : left + width]
    assert part.shape == expected.shape
    # At the edges of a part, colours lack neighbours to be interpolated with.
    np.testing.assert_array_equal(part[1:-1, 1:-1], expected[1:-1, 1:-1])


@pytest.mark.slow
def test_batches_look_alike(tmp_path):
    """With `fast_decode` a batch has the same examples, and pixels that differ little."""
    (tmp_path / "a").mkdir()
    for number in range(4):
        content = files.encode(files.smooth(500 + number, 700), "jpeg")
        (tmp_path / "a" / f"{number}.jpg").write_bytes(content)
    dataset = inputs.get_dataset("folder", "train", tmp_path, test_percent=0)
    options = {"batch_size": 4, "image_size": 64, "preprocessing": "inception", "num_epochs": 1}
    ((slow,),), ((fast,),) = (
        sessions.train_values(dataset, fast_decode=each, **options) for each in (False, True)
    )
    assert slow["index"].tolist() == fast["index"].tolist()
    assert 0 < np.abs(slow["image"] - fast["image"]).mean() < 0.1


def test_fast_decode_needs_a_family_that_cuts():
    """It is an error with a preprocessing that decodes whole images."""
    dataset = inputs.get_dataset("digits", "train")
    with pytest.raises(ValueError, match=r"fast_decode must come with .*, got True with 'lenet'"):
        inputs.train_batches(dataset, preprocessing="lenet", fast_decode=True)

"""Images made smaller by a conversion: their pixels, their order, what is kept as it is."""

import io
import math
import os

import numpy as np
import PIL.Image
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.reading import decoding
from tests.inputs import files

pytestmark = pytest.mark.one_mode


def folder_of(path, contents):
    """The dataset `folder` of some encoded images, in their order."""
    (path / "only").mkdir(parents=True)
    for number, each in enumerate(contents):
        kind = "png" if each.startswith(b"\x89PNG") else "jpg"
        (path / "only" / f"{number:03d}.{kind}").write_bytes(each)
    return inputs.get_dataset("folder", "train", path, test_percent=0)


def features_of(paths):
    """The features of all records of some files, as dicts of lists."""
    records = (each for path in paths for each in tf.compat.v1.io.tf_record_iterator(path))
    features = (tf.train.Example.FromString(each).features.feature for each in records)
    return [
        {name: list(each.bytes_list.value or each.int64_list.value) for name, each in its.items()}
        for its in features
    ]


def converted(dataset, path, **options):
    """The features of the records that a conversion writes."""
    return features_of(inputs.convert_dataset(dataset, path, progress=False, **options))


def pixels(features):
    """The image of a record that is not raw."""
    return decoding.Decoder(0)(features["image/encoded"][0])


def area_means(image, times):
    """Means of squares of pixels, float64."""
    height, width, channels = image.shape
    squares = image.reshape([height // times, times, width // times, times, channels])
    return squares.astype(float).mean(axis=(1, 3))


@pytest.mark.parametrize(
    ("height", "width", "channels", "kind"), [(160, 240, 1, "png"), (240, 160, 3, "jpeg")]
)
def test_max_side_takes_means_of_areas(height, width, channels, kind, tmp_path):
    """Reduced by 4, each pixel is the mean of 16, as JPEG has it; records say the new size."""
    content = files.encode(files.smooth(height, width, channels), kind)
    dataset = folder_of(tmp_path / "in", [content])
    (found,) = converted(dataset, tmp_path / "out", max_side=60)
    assert found["image/format"] == [b"jpeg"]
    assert found["image/height"] == [height // 4]
    assert found["image/width"] == [width // 4]
    assert found["image/class/label"] == [0]
    expected = area_means(decoding.Decoder(0)(content), 4)
    # Quality 95 is what TensorFlow writes by default, too.
    assert found["image/encoded"] == [files.encode(np.round(expected).astype(np.uint8), "jpeg")]
    assert np.abs(pixels(found) - expected).mean() < 2


def test_proportions_are_kept(tmp_path):
    """The longer side becomes `max_side`, the other its share of it, of at least one pixel."""
    sizes = {(500, 375): (256, 192), (333, 500): (170, 256), (2, 1000): (1, 256)}
    sizes |= {(257, 257): (256, 256)}
    dataset = folder_of(tmp_path / "in", [files.encode(files.smooth(*size)) for size in sizes])
    found = converted(dataset, tmp_path / "out", max_side=256)
    assert [pixels(each).shape[:2] for each in found] == [*sizes.values()]


def test_small_images_keep_their_bytes(tmp_path):
    """Images within `max_side` are not encoded again, whatever they are."""
    contents = [files.encode(files.noise([16, 9, 3], 1), kind) for kind in ("png", "jpeg")]
    contents.append(files.encode(files.noise([3, 16, 1], 2)))
    dataset = folder_of(tmp_path / "in", contents)
    found = converted(dataset, tmp_path / "out", max_side=16)
    assert [each["image/encoded"] for each in found] == [[each] for each in contents]
    assert [each["image/format"][0] for each in found] == [b"png", b"jpeg", b"png"]


def test_quality_is_that_of_the_jpeg(tmp_path):
    """A lower quality takes fewer bytes; without one it is 95."""
    noisy = np.clip(files.smooth(200, 200).astype(int) + files.noise([200, 200, 3]) // 4, 0, 255)
    dataset = folder_of(tmp_path / "in", [files.encode(noisy.astype(np.uint8))])
    default, good, poor = (
        converted(dataset, tmp_path / str(each), max_side=100, quality=each)[0]["image/encoded"][0]
        for each in (None, 95, 40)
    )
    assert default == good
    assert len(poor) < len(good) / 2


@pytest.mark.parametrize(
    ("side", "kind", "shape"), [(8, b"png", (8, 8, 3)), (4, b"jpeg", (4, 4, 3))]
)
def test_images_in_memory_are_reduced(side, kind, shape, tmp_path):
    """A dataset of arrays gives JPEGs where they are too large, and PNGs where they are not."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=3, image_size=8)
    found = converted(dataset, tmp_path, max_side=side)
    assert [(each["image/format"], pixels(each).shape) for each in found] == [
        ([kind], (side, side, 3))
    ] * 3
    labels = [each["image/class/label"][0] for each in found]
    assert labels == dataset.source.arrays[1].tolist()


def saved(image, mode, kind):
    """An image as Pillow writes it in a mode that TensorFlow does not write."""
    file = io.BytesIO()
    PIL.Image.fromarray(image).convert(mode).save(file, kind, **({} if kind == "png" else QUALITY))
    return file.getvalue()


QUALITY = {"quality": 95, "subsampling": 0}


@pytest.mark.parametrize(
    ("mode", "kind", "channels"),
    [
        pytest.param("CMYK", "jpeg", 3, id="cmyk"),
        pytest.param("L", "jpeg", 1, id="grey jpeg"),
        pytest.param("LA", "png", 1, id="grey with alpha"),
        pytest.param("RGBA", "png", 3, id="alpha"),
        pytest.param("P", "png", 3, id="palette"),
    ],
)
def test_kinds_of_images(mode, kind, channels, tmp_path):
    """Images of all kinds are reduced to means of what the decoder makes of them."""
    content = saved(files.smooth(96, 128), mode, kind)
    dataset = folder_of(tmp_path / "in", [content])
    (found,) = converted(dataset, tmp_path / "jpeg", max_side=32)
    own = decoding.Decoder(channels)(content)
    assert pixels(found).shape == (24, 32, channels)
    assert np.abs(pixels(found) - area_means(own, 4)).mean() < 4
    (found,) = converted(dataset, tmp_path / "raw", raw=True, image_size=(24, 32))
    values = np.frombuffer(found["image/encoded"][0], np.uint8).reshape([24, 32, 3])
    assert np.abs(values - area_means(decoding.Decoder(3)(content), 4)).max() <= 0.51


@pytest.mark.parametrize(
    ("shape", "size", "part"),
    [
        pytest.param((12, 10), (12, 10), np.s_[:, :], id="same"),
        pytest.param((24, 20), (12, 10), np.s_[:, :], id="half"),
        pytest.param((24, 30), (12, 10), np.s_[:, 5:25], id="wide"),
        pytest.param((31, 20), (12, 10), np.s_[3:27, :], id="high"),
        pytest.param((40, 60), (10, 10), np.s_[:, 10:50], id="square"),
    ],
)
def test_raw_is_the_centre_in_means_of_areas(shape, size, part, tmp_path):
    """Raw images are the middle in the proportions asked for, each pixel a rounded mean. Where an
    image is too small it is interpolated: one colour stays that colour.
    """
    image, small = files.noise([*shape, 3]), np.full([5, 7, 3], [10, 20, 30], np.uint8)
    dataset = folder_of(tmp_path / "in", [files.encode(each) for each in (image, small)])
    found, grown = converted(dataset, tmp_path / "out", raw=True, image_size=size)
    assert grown["image/encoded"][0] == bytes([10, 20, 30] * math.prod(size))
    assert found["image/format"] == [b"raw"]
    sizes = [found[f"image/{name}"][0] for name in ("height", "width", "channels")]
    assert sizes == [*size, 3]
    values = np.frombuffer(found["image/encoded"][0], np.uint8).reshape(sizes)
    expected = area_means(image[part], image[part].shape[0] // size[0])
    assert np.abs(values - expected).max() <= 0.5 + 1e-4
    if shape == size:
        np.testing.assert_array_equal(values, image)


@pytest.mark.parametrize(
    "options", [{}, {"max_side": 4, "quality": 60}, {"raw": True, "image_size": 4}]
)
def test_prepared_conversion_goes_on(options, tmp_path):
    """Missing shards are written as they were, the others left alone."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=9, image_size=6)
    paths = inputs.convert_dataset(dataset, tmp_path, num_shards=3, progress=False, **options)
    before = features_of(paths)
    times = [os.stat(path).st_mtime_ns for path in paths]
    os.remove(paths[1])
    assert before == converted(dataset, tmp_path, num_shards=3, **options)
    assert [os.stat(path).st_mtime_ns for path in paths[::2]] == times[::2]


def test_records_are_in_order_and_a_corrupt_one_is_named(tmp_path):
    """Threads keep the order of a hundred images; the first that is none ends the conversion."""
    contents = [files.encode(np.full([2, 2, 3], number, np.uint8)) for number in range(100)]
    dataset = folder_of(tmp_path / "in", contents)
    found = converted(dataset, tmp_path / "out", raw=True, image_size=2)
    assert [each["image/encoded"][0] for each in found] == [bytes([n] * 12) for n in range(100)]
    (tmp_path / "in" / "only" / "070.png").write_bytes(b"no image")
    with pytest.raises(inputs.CorruptRecordError, match=r"070\.png: .*does not decode"):
        converted(dataset, tmp_path / "again", raw=True, image_size=2)
    assert not list((tmp_path / "again").glob("*.tfrecord"))

"""Raw images in TFRecords: read without decoding, like others in all else."""

import re

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs, slim
from model_deploy.inputs.files import raw_images, records, tfrecords
from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.reading import decoding
from tests.inputs import files, sessions
from tests.inputs.files import get
from tests.inputs.sessions import assert_same
from tests.tf1.test_datasets import read_all

pytestmark = pytest.mark.one_mode

tf1 = tf.compat.v1
SHAPE = (8, 8, 3)


def example(image, label, contents=None, leave_out=(), **sizes):
    """A serialized raw image, or something like it."""
    height, width, channels = image.shape
    numbers = {"height": height, "width": width, "channels": channels, "class/label": label}
    numbers |= sizes
    features = {
        f"image/{name}": tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        for name, value in numbers.items()
        if name not in leave_out
    }
    texts = {"encoded": image.tobytes() if contents is None else contents, "format": b"raw"}
    for name, value in texts.items():
        if name not in leave_out:
            bytes_list = tf.train.BytesList(value=[value])
            features[f"image/{name}"] = tf.train.Feature(bytes_list=bytes_list)
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(folder, examples):
    """A dataset of 3 classes in one file."""
    folder.mkdir(exist_ok=True)
    (folder / "labels.txt").write_text("0:cat\n1:dog\n2:owl\n")
    return files.write_records(folder / "x_train.tfrecord", examples)


def both(folder, shape=(12, 10, 3), shards=(5, 6)):
    """The same images as PNG, and as raw ones converted from those."""
    files.write_examples(folder / "png", shards, shape)
    encoded = get(folder / "png")
    if shape[-1] == 1:
        encoded = get(folder / "png", channels=1)
    options = {"raw": True, "image_size": shape[:2], "num_shards": 2, "progress": False}
    inputs.convert_dataset(encoded, folder / "raw", name="mine", **options)
    return encoded, get(folder / "raw")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("cifarnet", {"shuffle_block": 2}),
        # Images that are hardly larger than wanted are not reduced: nothing to decode, no harm.
        ("inception", {"fast_decode": True}),
    ],
)
def test_batches_are_those_of_encoded_images(family, options, tmp_path):
    """Training sees the same examples, labels and pixels, augmented alike, and evaluation sees each
    of them once, in order.
    """
    encoded, raws = both(tmp_path)
    work = {"batch_size": 2, "num_clones": 2, "preprocessing": family, "num_epochs": 2}
    found, expected = (
        sessions.train_values(each, image_size=8, **work, **options) for each in (raws, encoded)
    )
    assert len(found) == 4
    assert_same(found, expected)
    expected = sessions.eval_values(encoded, image_size=(12, 10), preprocessing=family)
    found = sessions.eval_values(raws, preprocessing=family)  # which know their size
    assert np.concatenate([each["index"] for each in found]).tolist() == list(range(11))
    assert_same(found, expected)


def test_images_of_a_size_that_is_given_are_kept_in_memory(tmp_path):
    """As with encoded ones, `image_size` keeps small datasets in memory, and is checked."""
    images = [files.noise(SHAPE, seed) for seed in range(4)]
    write(tmp_path, [example(image, label % 3) for label, image in enumerate(images)])
    dataset = get(tmp_path, image_size=8)
    np.testing.assert_array_equal(dataset.source.arrays[0], images)
    assert dataset.source.arrays[1].tolist() == [0, 1, 2, 0]
    with pytest.raises(inputs.CorruptRecordError, match=r"must be \[9, 9, 3\], got \[8, 8, 3\]"):
        get(tmp_path, image_size=9)


@pytest.mark.parametrize(("stored", "channels"), [(1, 3), (3, 1)])
def test_channels_are_those_asked_for(stored, channels, tmp_path):
    """Grey images are read as colours, and the other way round, as encoded ones are."""
    image = np.full([8, 8, stored], 77, np.uint8)
    write(tmp_path, [example(image, 0)])
    dataset = get(tmp_path, channels=channels)
    assert dataset.image_shape == (8, 8, channels)
    (batch,) = sessions.eval_values(dataset)
    np.testing.assert_array_equal(batch["image"], np.full([1, 8, 8, channels], (77 - 128) / 128))


def test_kept_and_written_again(tmp_path):
    """A conversion of raw images, to other shards, keeps their bytes."""
    _, raws = both(tmp_path)
    inputs.convert_dataset(raws, tmp_path / "again", num_shards=4, progress=False)
    again = get(tmp_path / "again")
    assert again.image_shape == raws.image_shape
    numbers = range(raws.num_examples)
    assert [again.source.read(each) for each in numbers] == [
        raws.source.read(each) for each in numbers
    ]


IMAGE = files.noise(SHAPE)
NO_VALUE = "of a raw image must have 1 value, got 0"
BAD = {
    "short": (
        example(IMAGE, 1, IMAGE.tobytes()[:-1]),
        r"a raw image of 8 x 8 x 3 must have 192 bytes, got 191",
    ),
    "long": (example(IMAGE, 1, bytes(193)), "must have 192 bytes, got 193"),
    "empty": (example(IMAGE, 1, b""), "must have 192 bytes, got 0"),
    "no height": (example(IMAGE, 1, leave_out=["height"]), f"image/height {NO_VALUE}"),
    "no channels": (example(IMAGE, 1, leave_out=["channels"]), f"image/channels {NO_VALUE}"),
    "sizes": (example(IMAGE, 1, height=-8, width=-8), r"at least 1 and 1 or 3 channels, got \[-8"),
    "channels": (example(IMAGE, 1, height=48, width=2, channels=2), "or 3 channels, got .*2, 2"),
    "other size": (
        example(IMAGE.reshape([16, 4, 3]), 1),
        r"must be a raw image of \[8, 8, 3\], as the first good record, got .* \[16, 4, 3\]",
    ),
    "png": (
        files.example(files.encode(IMAGE), 1),
        r"must be a raw image of \[8, 8, 3\], as the first good record, got an encoded image",
    ),
    "label": (example(IMAGE, 3), "label must be from 0 to 2, got 3"),
}
SOME = f"({'|'.join(message for _, message in BAD.values())})"
RAW_IN_PNG = "must be an encoded image, as the first good record, got a raw image of"


@pytest.mark.slow
def test_corrupt_records(tmp_path):
    """The error of the step names file, record and what is wrong with it. Tolerated, the next
    example takes its place in training; evaluations go without.
    """
    good = example(IMAGE, 1)
    path = write(tmp_path, [good, *(each for bad, _ in BAD.values() for each in (bad, good))])
    for read in (sessions.eval_values, sessions.train_values):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"{path.name}: record \d+ \(from 0\): .*{SOME}"
        ):
            read(get(tmp_path), batch_size=2)
    dataset = get(tmp_path, skip_corrupt_records=len(BAD))
    steps = sessions.train_indices(dataset, batch_size=2, num_epochs=1, shuffle=False)
    assert steps == [[first, first + 2] for first in range(0, 20, 2)]
    batches = sessions.eval_values(dataset, batch_size=2)
    assert [*np.concatenate([batch["index"] for batch in batches])] == [*range(0, 22, 2)]
    said = sorted(dataset.source.tolerance.skipped, key=lambda line: int(line.split()[2]))
    for number, (line, (_, message)) in enumerate(zip(said, BAD.values(), strict=True)):
        assert re.match(rf"{path}: record {2 * number + 1} \(from 0\): .*{message}", line)


@pytest.mark.slow
def test_first_records_may_be_corrupt(tmp_path):
    """The size is that of the first good record, if those before it are tolerated."""
    bad = [BAD[kind] for kind in ("short", "no height", "sizes")]
    path = write(tmp_path, [*(record for record, _ in bad), *[example(IMAGE, 1)] * 3])
    dataset = get(tmp_path, skip_corrupt_records=3)
    assert dataset.image_shape == SHAPE
    steps = sessions.train_indices(dataset, batch_size=2, num_epochs=1, shuffle=False)
    assert steps == [[3, 3], [3, 3], [4, 5]]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=rf"{path.name}: record 0 \(from 0\): .*{bad[0][1]}"
    ):
        sessions.eval_values(get(tmp_path), batch_size=1, image_size=8)


def test_raw_among_encoded_images_is_corrupt(tmp_path):
    """A raw image in a dataset of encoded ones is named as that."""
    png = files.example(files.encode(IMAGE), 1)
    path = write(tmp_path, [png, example(IMAGE, 1)])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"{path.name}: record 1 .*{RAW_IN_PNG}"
    ):
        sessions.eval_values(get(tmp_path), image_size=8)


def test_find_shape_reads_no_more_than_it_may(tmp_path):
    """Without a good record among the first ones, the shape is not known."""
    bad = [BAD[kind][0] for kind in ("short", "no height")]
    path = write(tmp_path, [*bad, example(IMAGE, 0)])
    indexed = [tfrecords.index_file(str(path), Tolerance())]
    assert isinstance(indexed[0], records.RecordFile)
    assert [raw_images.find_shape(indexed, tries) for tries in (1, 2, 3)] == [None, None, SHAPE]


def test_slim_reads_raw_images(tmp_path):
    """`slim.dataset_data_provider` with TF-Slim's own decoder gives the images and labels."""
    encoded, _ = both(tmp_path)
    kinds = {
        "image/encoded": tf1.FixedLenFeature([], tf.string, default_value=""),
        "image/format": tf1.FixedLenFeature([], tf.string, default_value="jpeg"),
        "image/class/label": tf1.FixedLenFeature([], tf.int64),
    }
    handlers = {
        "image": slim.tfexample_decoder.Image(shape=[12, 10, 3]),
        "label": slim.tfexample_decoder.Tensor("image/class/label"),
    }
    dataset = slim.dataset.Dataset(
        data_sources=str(tmp_path / "raw" / "mine_train*"),
        reader=tf1.TFRecordReader,
        decoder=slim.tfexample_decoder.TFExampleDecoder(kinds, handlers),
        num_samples=11,
        items_to_descriptions={},
    )
    found = read_all(dataset, num_readers=1)
    decode = decoding.Decoder(3)
    expected = [encoded.source.read(index) for index in range(11)]
    assert {(image.tobytes(), int(label)) for image, label in found} == {
        (decode(contents).tobytes(), label) for contents, label in expected
    }
    assert len(found) == 11

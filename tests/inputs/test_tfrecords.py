"""TFRecord datasets: what is read, and what is said about what cannot be read."""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.files import checksums
from model_deploy.inputs.reading import sources
from tests.inputs import files, sessions
from tests.inputs.files import get

pytestmark = pytest.mark.one_mode


def test_checksums_are_those_of_tensorflow(tmp_path):
    """Records written by TensorFlow have the checksums that are computed here. CRC-32C of
    "123456789" is the check value of its catalogue entry, e3069283.
    """
    sizes = (0, 1, 3, 4, 8, 63, 64, 65, 1000, 1024, 1025, 5000)
    records = [files.noise([size]).tobytes() for size in sizes]
    with tf.io.TFRecordWriter(str(tmp_path / "file")) as writer:
        for data in records:
            writer.write(data)
    assert (tmp_path / "file").read_bytes() == b"".join(map(files.record_bytes, records))
    assert checksums.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("image_size", [None, 8])
def test_reads_all_shards_in_order(image_size, tmp_path):
    """Images and labels are those that were written, decoded at once or one by one."""
    images, labels = files.write_examples(tmp_path, [3, 1, 4])
    dataset = get(tmp_path, image_size=image_size)
    assert (dataset.num_examples, dataset.num_classes) == (8, 3)
    assert dataset.class_names == ("cat", "dog", "owl")
    assert isinstance(dataset.source, sources.ArraySource) == (image_size is not None)
    batches = sessions.eval_values(dataset, batch_size=3, image_size=8)
    assert [len(batch["label"]) for batch in batches] == [3, 3, 2]
    np.testing.assert_array_equal(np.concatenate([each["label"] for each in batches]), labels)
    read = np.concatenate([each["image"] for each in batches])
    np.testing.assert_array_equal(read * 128 + 128, images)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["cifarnet", "inception"])
def test_memory_and_files_give_the_same_batches(family, tmp_path):
    """Whether images are kept decoded or read one by one changes nothing in training."""
    files.write_examples(tmp_path, [5, 6])
    options = {"batch_size": 2, "num_clones": 2, "preprocessing": family, "num_epochs": 2}
    kept = sessions.train_values(get(tmp_path, image_size=8), image_size=8, **options)
    read = sessions.train_values(get(tmp_path), image_size=8, **options)
    assert len(kept) == len(read) == 4
    for first, second in zip(kept, read, strict=True):
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one["index"], other["index"])
            np.testing.assert_array_equal(one["label"], other["label"])
            np.testing.assert_allclose(one["image"], other["image"], atol=1e-5)


def test_other_names_and_labels(tmp_path):
    """Files may also be called `<split>-00000-of-00001`, and prefixes tell datasets apart. Without
    labels.txt, the number of classes is an option; labels may start above 0.
    """
    files.write_examples(tmp_path, [2], name="one")
    files.write_examples(tmp_path, [3], name="two")
    png = files.encode(files.noise([4, 4, 3]))
    records = [files.example(png, 1)] * 5
    files.write_records(tmp_path / "validation-00000-of-00001", records)
    assert get(tmp_path, file_prefix="one").num_examples == 2
    assert get(tmp_path).num_examples == 5
    (tmp_path / "labels.txt").unlink()
    dataset = get(tmp_path, "validation", num_classes=1, label_offset=1, image_size=4)
    assert dataset.class_names == ("class_0",)
    assert dataset.source.arrays[1].tolist() == [0] * 5


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (None, {}, r"must have files .*_train\*.tfrecord or .*none"),
        ("a_train.tfrecord", {"num_classes": 2}, "must hold records, got none"),
        (
            "train-00001-of-00003",
            {"num_classes": 2},
            "must have all 3 files of split 'train', got none with number 0",
        ),
        (
            "a_train.tfrecord",
            {},
            "^'.*labels.txt' must name the classes, or num_classes must be given",
        ),
        (
            "a_train.tfrecord/",
            {"num_classes": 2},
            "file of a dataset must be readable, got .*a_train.tfrecord",
        ),
        (None, {"num_classes": 0}, "num_classes .* at least 1, got 0"),
        (None, {"image_size": -1}, "image_size .* at least 1, got -1"),
        (None, {"skip_corrupt_records": -1}, "skip_corrupt_records must be at least 0, got -1"),
    ],
)
def test_tfrecord_rejects(name, options, message, tmp_path):
    """Missing, empty and unreadable files are errors that name them."""
    if name:
        path = tmp_path / name
        (path.mkdir if name.endswith("/") else path.touch)()
    with pytest.raises(ValueError, match=message):
        get(tmp_path, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"cat\n", "line 1 must be 'label:name', got 'cat'"),
        (b"0:cat\n\nx:dog\n", "line 2 must be 'label:name', got 'x:dog'"),
        (b"0:cat\n2:dog\n", r"labels must be 0, 1, 2, ..., got \[0, 2\]"),
        (b"0:cat\n0:dog\n", r"labels must be 0, 1, 2, ..., got \[0\]"),
        (b"", r"labels must be 0, 1, 2, ..., got \[\]"),
        (b"0:\xff\n", "must be readable text, got"),
    ],
)
def test_labels_file_rejects(text, message, tmp_path):
    """A labels.txt that does not name each class once is an error."""
    files.write_examples(tmp_path, [1])
    (tmp_path / "labels.txt").write_bytes(text)
    with pytest.raises(ValueError, match=f"labels.txt.*{message}"):
        get(tmp_path)


@pytest.mark.parametrize("name", ["tfrecord", "cifar10", "mnist", "folder", "flowers", "imagenet"])
def test_datasets_with_files_need_a_folder(name):
    """A dataset of files says so if it gets no folder."""
    with pytest.raises(ValueError, match=r"data_dir must name the folder of .*, got None"):
        inputs.get_dataset(name, "train", None)
    with pytest.raises(ValueError, match="must be a folder, got 'nowhere'"):
        inputs.get_dataset(name, "train", "nowhere")


def test_varying_images_need_a_size(tmp_path):
    """Images that vary in size cannot be batched without an image size."""
    files.write_examples(tmp_path, [2])
    with pytest.raises(ValueError, match=r"image_size must be given for dataset .*, got None"):
        inputs.train_batches(get(tmp_path), batch_size=1, preprocessing="inception")


def test_flowers_and_imagenet_read_records(tmp_path):
    """The two photograph datasets find TFRecords with their names and classes."""
    files.write_examples(tmp_path, [4], name="flowers", split="validation")
    flowers = inputs.get_dataset("flowers", "validation", tmp_path)
    assert (flowers.num_examples, flowers.class_names[3]) == (4, "sunflowers")
    files.write_records(tmp_path / "train-00000-of-00001", [files.example(b"", 1000)])
    (tmp_path / "labels.txt").unlink()
    imagenet = inputs.get_dataset("imagenet", "train", tmp_path)
    assert (imagenet.num_examples, imagenet.num_classes) == (1, 1001)
    assert imagenet.source.read(0) == (b"", 1000)

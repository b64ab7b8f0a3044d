"""Datasets that other packages have written: `tfds/NAME` and `hf`, read in our order."""

import functools
import importlib.util
import json
from typing import ClassVar

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import inputs
from tests.inputs.files import encode

pytestmark = [pytest.mark.one_mode, pytest.mark.filterwarnings("ignore")]  # of the packages

NAMES = ("black", "grey", "white")
NUM, SIZE = 24, 8
IMAGES = np.random.RandomState(5).randint(0, 256, [NUM, SIZE, SIZE, 3]).astype(np.uint8)
LABELS = np.arange(NUM) % len(NAMES)


@functools.cache
def _dots():
    """A builder of the package's own API."""
    tfds = pytest.importorskip(
        "tensorflow_datasets", reason="needs pip install 'model_deploy[tfds]'"
    )

    class Dots(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")
        SUPPORTED_VERSIONS: ClassVar = [tfds.core.Version("1.2.0")]

        def _info(self):
            image = tfds.features.Image(shape=(None, None, 3))
            features = {"image": image, "label": tfds.features.ClassLabel(names=NAMES)}
            return self.dataset_info_from_configs(
                features=tfds.features.FeaturesDict(features), supervised_keys=("image", "label")
            )

        def _split_generators(self, dl_manager):
            return {"train": self._rows(slice(18)), "test": self._rows(slice(18, None))}

        def _generate_examples(self):
            raise NotImplementedError

        def _rows(self, part):
            for number in range(NUM)[part]:
                yield number, {"image": IMAGES[number], "label": int(LABELS[number])}

    return Dots


def write_tfds(folder):
    """Prepares the images in two versions."""
    for version in ("1.0.0", "1.2.0"):
        _dots()(data_dir=str(folder), version=version).download_and_prepare()
    return {"name": "tfds/dots", "data_dir": str(folder)}


def write_hf(folder):
    """Saves the images by the package's own API."""
    datasets = pytest.importorskip("datasets", reason="needs pip install 'model_deploy[hf]'")
    features = {"img": datasets.Image(), "fine": datasets.ClassLabel(names=list(NAMES))}
    parts = {}
    for split, part in (("train", slice(18)), ("test", slice(18, None))):
        columns = {
            "img": [{"bytes": encode(each), "path": None} for each in IMAGES[part]],
            "fine": LABELS[part].tolist(),
        }
        parts[split] = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    datasets.DatasetDict(parts).save_to_disk(str(folder), num_shards={"train": 2, "test": 1})
    parts["test"].save_to_disk(str(folder / "of_one_split"))
    return {"name": "hf", "data_dir": str(folder)}


WRITE = {"tfds": write_tfds, "hf": write_hf}


def _of_arrays(images, labels):
    """The same examples, in memory."""
    source = inputs.ArraySource(lambda: (images, labels))
    shape = images.shape[1:]
    return inputs.Dataset("arrays", "train", len(images), 3, NAMES, shape, ("train",), source)


def _batches(dataset, count, first=0, **options):
    """Images and labels of some batches of training, from the first one that is wanted on."""
    with tf.Graph().as_default(), tf.Session() as session:
        options["position"] = tf.constant(first, tf.int64)
        pipeline = inputs.train_batches(
            dataset, batch_size=3, preprocessing="cifarnet", image_size=SIZE, seed=7, **options
        )
        batch = next(pipeline)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS))
        found = [session.run((batch["image"], batch["label"])) for _ in range(count)]
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def _all(dataset):
    """All images, as they are, and labels, in the order of the files."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = next(inputs.eval_batches(dataset, preprocessing="lenet", image_size=SIZE))
        session.run(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS))
        images, labels = session.run((batch["image"], batch["label"]))
    return np.round(images * 128 + 128).astype(np.uint8), labels


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITE)
def test_batches(kind, tmp_path):
    """Examples are those that were written; batches are those of the same examples in memory."""
    where = WRITE[kind](tmp_path / "data")
    train = inputs.get_dataset(split="train", **where)
    assert (train.num_examples, train.class_names) == (18, NAMES)
    assert sorted(train.splits) == ["test", "train"]
    images, labels = _all(train)
    found = {(image.tobytes(), label) for image, label in zip(images, labels, strict=True)}
    assert found == {(IMAGES[i].tobytes(), LABELS[i]) for i in range(18)}
    same = _of_arrays(images, labels)
    for options in ({}, {"num_shards": 2, "shard_index": 1}):
        expected = _batches(same, 8, **options)
        for one, other in zip(_batches(train, 8, **options), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(_batches(train, 3, first=5), _batches(same, 8), strict=True):
        np.testing.assert_array_equal(one, other[5 * 3 :])
    assert inputs.get_dataset(split="test", **where).num_examples == 6


@pytest.mark.slow
def test_versions_of_tfds(tmp_path):
    """The newest version is taken; another one is named, and what is not there is one line."""
    where = write_tfds(tmp_path)
    for name in ("tfds/dots:1.0.0", "tfds/dots:1.2.0"):
        assert inputs.get_dataset(name, "train", where["data_dir"]).name == name
    for name, message in {
        "tfds/dots:3.0.0": "one of the versions in .*dots, 1.0.0, 1.2.0, got 3.0.0",
        "tfds/lines": "must be prepared in a folder with a version in .*lines, got none",
    }.items():
        with pytest.raises(ValueError, match=message):
            inputs.get_dataset(name, "train", where["data_dir"])
    with pytest.raises(ValueError, match="must be one of train, test, got 'validation'"):
        inputs.get_dataset("tfds/dots", "validation", where["data_dir"])
    info = tmp_path / "dots" / "1.2.0" / "dataset_info.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "fileFormat": "of tomorrow"}))
    with pytest.raises(ValueError, match=r"1.2.0 must be a folder that tensorflow_datasets [\d.]+"):
        inputs.get_dataset("tfds/dots", "train", where["data_dir"])


@pytest.mark.slow
def test_folders_of_hf(tmp_path):
    """A dataset without splits is `train`; what cannot be read is one line."""
    where = write_hf(tmp_path)
    alone = inputs.get_dataset("hf", "train", str(tmp_path / "of_one_split"))
    assert (alone.num_examples, alone.splits) == (6, ("train",))
    (tmp_path / "of_one_split" / "state.json").write_text("{}")
    for folder in (tmp_path / "of_one_split", tmp_path / "train" / "none"):
        folder.mkdir(exist_ok=True)
        with pytest.raises(ValueError, match=r"must be a folder that datasets [\d.]+ can read"):
            inputs.get_dataset("hf", "train", str(folder))
    import datasets  # noqa: PLC0415

    datasets.Dataset.from_dict({"text": ["a"]}).save_to_disk(str(tmp_path / "texts"))
    with pytest.raises(ValueError, match="one image and one class label, got text: Value"):
        inputs.get_dataset("hf", "train", str(tmp_path / "texts"))
    assert where["name"] == "hf"


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("tfds/mnist", "tensorflow_datasets", "tfds"), ("hf", "datasets", "hf")],
)
def test_missing_packages(tmp_path, name, package, extra):
    """One whose package is missing says which command installs it."""
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    message = rf"must have the package {package}, got none: pip install 'model_deploy\[{extra}\]'"
    with pytest.raises(ValueError, match=message):
        inputs.get_dataset(name, "train", str(tmp_path))


@pytest.mark.parametrize("name", ["tfds/NAME", "tfds/", "tfds", "hf/there"])
def test_names(name):
    """A family is named by a member; the error lists all names."""
    with pytest.raises(ValueError, match=f"must be one of .*hf, .*tfds/NAME, .*, got '{name}'"):
        inputs.get_dataset(name, "train")

"""Mixup and cutmix: shares that are right, and pairs that do not depend on clones and replicas."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from model_deploy import inputs
from model_deploy.inputs.augmentation import Mixing, mixing
from tests.inputs import files, sessions
from tests.inputs.sessions import assert_same, run, seeds_of

pytestmark = pytest.mark.one_mode

ALL = inputs.Augmentation(
    randaugment_layers=1, random_erasing=0.5, mixup=0.4, cutmix=1.0, randaugment_magnitude=10
)
SHORT = inputs.Augmentation(random_erasing=0.5, mixup=0.4, cutmix=1.0)  # to build


@functools.cache
def mixed(mixup, cutmix, count=2000, shape=(12, 20, 2)):
    """A mixed batch: image number i is all i + 1, of class i % 3."""
    values = np.arange(1, count + 1, dtype=np.float32)
    images = np.broadcast_to(values.reshape([-1, 1, 1, 1]), [count, *shape])
    labels = np.arange(count) % 3

    def build():
        examples = {"image": images, "label": labels, "seed": seeds_of(count, 5)}
        constants = {name: tf.constant(value) for name, value in examples.items()}
        return Mixing(mixup, cutmix, num_classes=3, count=count).mix(constants)

    return run(build)


def own_shares(batch):
    """How much of each example is its own, by its label; both classes differ."""
    count = len(batch["label"])
    return batch["label"][np.arange(count), np.arange(count) % 3]


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.4, 0), (0, 1), (0.9, 1)])
def test_labels_are_the_shares_of_the_pixels(mixup, cutmix):
    """Own share and partner's are 1 in sum, and what the pixels have of both."""
    batch = mixed(mixup, cutmix)
    labels, images = batch["label"].astype(float), batch["image"].astype(float)
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-7)
    number = np.arange(len(labels))
    own, partner = number + 1, np.roll(number + 1, -1)
    shares = own_shares(batch).astype(float)
    means = shares * own + (1 - shares) * partner
    np.testing.assert_allclose(images.mean(axis=(1, 2, 3)), means, rtol=2e-6)
    partners_share = labels[number, np.roll(number % 3, -1)]
    # The last one and the first one, its partner, are of the classes 1 and 0.
    np.testing.assert_allclose(shares + partners_share, 1, atol=1e-7)


def test_cutmix_pastes_one_box_of_the_partner():
    """Each value is the example's or its partner's; the label is the exact share of pixels."""
    batch = mixed(0, 1)
    count = len(batch["label"])
    own = np.arange(1, count + 1).reshape([-1, 1, 1, 1])
    pasted = batch["image"] == np.roll(own, -1, axis=0)
    assert ((batch["image"] == own) | pasted).all()
    np.testing.assert_array_equal(pasted[..., 0], pasted[..., 1])
    boxes = pasted[..., 0]
    areas = boxes.any(axis=2).sum(axis=1) * boxes.any(axis=1).sum(axis=1)
    np.testing.assert_array_equal(boxes.sum(axis=(1, 2)), areas)
    shares = 1 - areas / (12 * 20)
    np.testing.assert_array_equal(own_shares(batch), shares.astype(np.float32))


def test_with_both_each_example_has_one_of_them():
    """About half of the examples are blended in all values, the others have a box or nothing."""
    images = mixed(0.9, 1)["image"]
    own = np.arange(1, 2001).reshape([-1, 1, 1, 1])
    is_pasted = ((images == own) | (images == np.roll(own, -1, axis=0))).all(axis=(1, 2, 3))
    blended = images[~is_pasted]
    np.testing.assert_array_equal(blended, np.broadcast_to(blended[:, :1, :1, :1], blended.shape))
    # Blends that round to one of both examples are few.
    assert abs(is_pasted.mean() - 0.5) < 5 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize("alpha", [1e-3, 0.4, 1.0, 100.0])
def test_shares_have_the_distribution_of_beta(alpha):
    """Mean 1/2, variance 1 / (4 (2 alpha + 1)), and quantiles that SciPy's function gives."""
    draws = ((np.arange(4096) + 0.5) / 4096).astype(np.float32)
    shares = run(lambda: mixing.beta(tf.constant(draws), tf.fill([4096], alpha))).astype(float)
    assert shares.mean() == pytest.approx(0.5, abs=1e-6)
    assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=5e-3)
    assert (np.diff(shares) >= 0).all()
    # A float32 stands for all numbers up to the next one.
    expected = special.betaincinv(alpha, alpha, draws.astype(float) + 2**-25)
    np.testing.assert_allclose(shares, expected, atol=1e-6)


def test_share_is_drawn_for_each_example():
    """Over seeds, mixup's shares have the mean of their distribution, 1/2, and its variance."""
    shares = own_shares(mixed(0.4, 0))
    assert len(np.unique(shares)) > 1500
    deviation = math.sqrt(1 / (4 * 1.8))
    assert abs(shares.mean() - 0.5) < 5 * deviation / math.sqrt(len(shares))
    assert shares.std() == pytest.approx(deviation, rel=0.05)


def steps_of(dataset, num_clones=1, num_shards=1, shards=None, **options):
    """The steps of all clones and replicas, or some: lists of dicts of global batches of 8."""
    parts = [
        sessions.train_values(
            dataset,
            num_clones=num_clones,
            num_shards=num_shards,
            shard_index=shard,
            batch_size=8 // (num_clones * num_shards),
            **options,
        )
        for shard in shards or range(num_shards)
    ]
    return [
        {
            key: np.concatenate([batch[key] for part in step for batch in part])
            for key in ("image", "label", "index")
        }
        for step in zip(*parts, strict=True)
    ]


def dataset_of(kind, folder):
    """Images in memory, or in files."""
    if kind == "memory":
        return inputs.get_dataset("synthetic", "train", num_examples=27, image_size=12)
    if kind == "photos":
        files.write_folder(folder / "photos", count=14, shape=(40, 50, 3))
        for number in range(2):
            content = files.encode(files.noise([60, 50, 3], number), "jpeg")
            (folder / "photos" / "cat" / f"photo_{number}.jpg").write_bytes(content)
        return inputs.get_dataset("folder", "train", folder / "photos", test_percent=0)
    files.write_examples(folder, [14, 13], image_shape=(12, 12, 3))
    return inputs.get_dataset("tfrecord", "train", folder, image_size=12, keep_in_memory=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "augmentation", "options"),
    [
        ("memory", ALL, {"preprocessing": "cifarnet"}),
        ("small", SHORT, {"preprocessing": "cifarnet", "shuffle_block": 2}),
        (
            "photos",
            ALL,
            {"preprocessing": "inception", "fast_decode": True, "shuffle_block": 2},
        ),
    ],
)
def test_clones_replicas_and_resume_change_no_bit(kind, augmentation, options, tmp_path):
    """However a global batch is cut, and wherever a run starts, images and labels are the same. A
    replica may have one example; the last one has the partner of the first one's.
    """
    dataset = dataset_of(kind, tmp_path)
    options = {"image_size": 12, "augmentation": augmentation, "seed": 3, "num_epochs": 2} | options
    whole = steps_of(dataset, **options)
    assert len(whole) == 2 * (dataset.num_examples // 8)
    cut = steps_of(dataset, 2, 2, [1], position=2, **options)
    assert_same(cut, [{key: value[4:] for key, value in step.items()} for step in whole[2:]])
    if kind == "memory":
        single = steps_of(dataset, 1, 8, [6], **options)
        assert_same(single, [{key: value[6:7] for key, value in step.items()} for step in whole])


@pytest.mark.slow
def test_partner_is_the_next_example():
    """What is trained on is each example, as it is without mixing, and the next one. Without mixing
    labels stay numbers: RandAugment and erasing change images alone.
    """
    dataset = inputs.get_dataset("synthetic", "train", num_examples=20, image_size=8)
    options = {"preprocessing": "cifarnet", "num_epochs": 1}
    settings = ({"mixup": 1}, {"randaugment_layers": 1, "random_erasing": 1})
    plain, blended, erased = (
        steps_of(dataset, augmentation=each, **options)
        for each in (None, *(inputs.Augmentation(**each) for each in settings))
    )
    for before, after in zip(plain, erased, strict=True):
        assert after["label"].dtype == np.int64
        np.testing.assert_array_equal(after["label"], before["label"])
        assert (after["image"] == 0).all(axis=-1).any(axis=(1, 2)).all()  # each has a box
    for before, after in zip(plain, blended, strict=True):
        labels = np.eye(dataset.num_classes)[before["label"]]
        pairs = np.stack([labels, np.roll(labels, -1, axis=0)])
        partners = np.roll(before["image"], -1, axis=0)
        np.testing.assert_array_equal(after["index"], before["index"])
        assert (after["label"] <= pairs.max(axis=0) + 1e-6).all()
        # The least squares share of each example's own image is that of its label.
        difference = (before["image"] - partners).reshape([8, -1]).astype(float)
        rest = (after["image"] - partners).reshape([8, -1]).astype(float)
        shares = (difference * rest).sum(axis=1) / (difference**2).sum(axis=1)
        np.testing.assert_allclose(rest, shares[:, np.newaxis] * difference, atol=1e-5)
        expected = shares[:, np.newaxis] * pairs[0] + (1 - shares[:, np.newaxis]) * pairs[1]
        np.testing.assert_allclose(after["label"], expected, atol=1e-5)


def test_pieces_for_gpus_are_those_of_one_pipeline():
    """With a pipeline for each clone's GPU, each reads one example more, that of its last pair."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=20, image_size=8)
    with tf.Graph().as_default() as graph:
        batches = inputs.train_batches(
            dataset,
            batch_size=4,
            num_clones=2,
            clone_devices=["/device:GPU:0", "/device:GPU:1"],
            preprocessing="lenet",
            augmentation=inputs.Augmentation(cutmix=1),
        )
        first = next(batches)
        assert first["image"].shape.as_list() == [4, 8, 8, 3]
        assert first["label"].shape.as_list() == [4, dataset.num_classes]
        takers = [op for op in graph.get_operations() if op.type == "IteratorGetNext"]
    assert [op.device for op in takers] == ["/device:GPU:0", "/device:GPU:1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"batch_size": 1, "augmentation": inputs.Augmentation(mixup=1)},
            "global batch must be at least 2 examples for mixup and cutmix, got 1",
        ),
        (
            {
                "augmentation": inputs.Augmentation(randaugment_layers=2),
                "preprocessing": inputs.Preprocessing("mine", lambda *_: None, lambda *_: None),
            },
            "randaugment_layers must be 0 for a preprocessing without takes_extra_augment, "
            "got 2 with 'mine'",
        ),
        (
            {"augmentation": inputs.Augmentation(crop_padding=2)},
            "crop_padding must be None for a preprocessing without takes_padding, "
            "got 2 with 'lenet'",
        ),
    ],
)
def test_train_batches_rejects(options, message):
    """Augmentation that cannot be had is an error when the pipeline is built."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=8, image_size=4)
    options = {"batch_size": 4, "preprocessing": "lenet"} | options
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        inputs.train_batches(dataset, **options)

"""What a classifier makes of labels, and of images and their mirror images."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import inputs, training
from model_deploy.clones import METRICS
from nets import nets_factory

pytestmark = pytest.mark.one_mode


def classifier(offset):
    """A classifier of the ten digits, without the first `offset` of them."""
    return training.Classifier.of(
        training.ClassifierOptions(labels_offset=offset),
        inputs.get_dataset("digits", "train"),
        nets_factory.get_network_fn,
    )


@pytest.mark.parametrize("offset", [0, 2])
def test_labels_leave_out_the_classes_below_the_offset(offset):
    """Numbers and the shares that stand for them lose as many classes in front. A class that is
    left out may have no share in a label.
    """
    numbers = np.array([2, 9, 5])
    shares = np.eye(10, dtype=np.float32)[numbers]
    with tf.Session() as session:
        found, found_shares = session.run(
            [classifier(offset).labels({"label": tf.constant(each)}) for each in (numbers, shares)]
        )
    np.testing.assert_array_equal(found, numbers - offset)
    np.testing.assert_array_equal(found_shares, shares[:, offset:])
    shares = tf.constant([[0.1, 0, 0.9, *[0] * 7]], tf.float32)
    labels = classifier(1).labels({"label": shares})
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="at least labels_offset=1"),
    ):
        session.run(labels)


def test_mirrored_evaluation_is_the_mean_of_an_image_and_its_mirror_image():
    """Logits and losses are those of the mean of both images' logits; in training, of one."""
    generator = np.random.RandomState(5)
    weights, auxiliary = generator.normal(size=[2, 4 * 6 * 3, 10]).astype(np.float32)
    images = generator.normal(size=[5, 4, 6, 3]).astype(np.float32)
    labels = np.array([1, 0, 3, 9, 4])

    def get_network_fn(*_):
        def network(batch):
            flat = tf.reshape(batch, [-1, 4 * 6 * 3])
            return tf.matmul(flat, weights), {"AuxLogits": tf.matmul(flat, auxiliary)}

        return network

    def mean_of_both(weights):
        both = [each.reshape(5, -1) @ weights for each in (images, images[:, :, ::-1])]
        return np.mean(both, axis=0)

    def cross_entropy(logits):
        return np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(5), labels])

    dataset = inputs.get_dataset("digits", "train")
    options = training.ClassifierOptions(eval_mirrored=True)
    mirrored = training.Classifier.of(options, dataset, get_network_fn)
    batch = {"image": tf.constant(images), "label": tf.constant(labels)}
    logits, _ = mirrored.predict(batch)
    evaluated = tf.losses.get_losses()
    mirrored.add_losses(iter([batch]))
    trained = tf.losses.get_losses()[len(evaluated) :]
    with tf.Session() as session:
        found, evaluated, trained = session.run([logits, evaluated, trained])
    np.testing.assert_allclose(found, mean_of_both(weights), rtol=1e-4, atol=1e-4)
    expected = [0.4 * cross_entropy(mean_of_both(auxiliary)), cross_entropy(mean_of_both(weights))]
    np.testing.assert_allclose(evaluated, expected, rtol=1e-4)
    alone = [each @ weights for each in images.reshape(5, -1)]
    np.testing.assert_allclose(trained[1], cross_entropy(np.stack(alone)), rtol=1e-4)


@pytest.mark.parametrize("are_mixed", [False, True], ids=["numbers", "shares"])
def test_accuracy_of_training_images(are_mixed):
    """It is the share of images whose label, or class with the largest share, has the highest
    logit: three of four here.
    """
    highest, labels = np.array([3, 1, 1, 7]), np.array([3, 1, 2, 7])
    classes = np.eye(10, dtype=np.float32)
    batch = {"image": tf.constant(classes[highest].reshape(4, 1, 10, 1))}
    batch["label"] = tf.constant(
        0.6 * classes[labels] + 0.4 * classes[labels - 1] if are_mixed else labels
    )
    trained = training.Classifier.of(
        training.ClassifierOptions(),
        inputs.get_dataset("digits", "train"),
        lambda *_: lambda images: (tf.reshape(images, [-1, 10]), {}),
    )
    trained.add_losses(iter([batch]), shows_accuracy=True)
    [noted] = tf.get_collection(METRICS)
    with tf.Session() as session:
        totals = session.run(noted.statistics)
    assert noted.metric.name == "accuracy"
    assert noted.metric.value(totals) == 0.75

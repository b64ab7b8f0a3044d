"""Labels of a classifier: numbers, and the shares of classes."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import inputs, training
from nets import nets_factory


def classifier(offset):
    """A classifier of the ten digits, without the first `offset` of them."""
    return training.Classifier.of(
        training.ClassifierOptions(labels_offset=offset),
        inputs.get_dataset("digits", "train"),
        nets_factory.get_network_fn,
    )


@pytest.mark.parametrize("offset", [0, 2])
def test_labels_leave_out_the_classes_below_the_offset(offset):
    """Numbers and the shares that stand for them lose as many classes in front."""
    numbers = np.array([2, 9, 5])
    shares = np.eye(10, dtype=np.float32)[numbers]
    with tf.Session() as session:
        found, found_shares = session.run(
            [classifier(offset).labels({"label": tf.constant(each)}) for each in (numbers, shares)]
        )
    np.testing.assert_array_equal(found, numbers - offset)
    np.testing.assert_array_equal(found_shares, shares[:, offset:])


def test_a_share_of_a_class_below_the_offset_stops_the_run():
    """A class that is left out may have no share in a label."""
    shares = tf.constant([[0.1, 0, 0.9, *[0] * 7]], tf.float32)
    labels = classifier(1).labels({"label": shares})
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="at least labels_offset=1"),
    ):
        session.run(labels)

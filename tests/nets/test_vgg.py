"""What only VGG has: the padding of its first dense layer."""

import pytest
import tensorflow.compat.v1 as tf

from nets import vgg
from tests.nets import graphs


def test_padding_of_the_first_dense_layer():
    """With `fc_conv_padding='SAME'` there are logits for every 32 x 32 pixels, which the poolings
    need still; another padding is named.
    """
    logits, _ = graphs.build(
        "vgg_a", tf.zeros([1, 64, 96, 3]), fc_conv_padding="SAME", spatial_squeeze=False
    )
    assert logits.shape.as_list() == [1, 2, 3, 10]
    message = r"^inputs must be at least 32 pixels high and wide, got shape \(1, 31, 32, 3\)"
    with pytest.raises(ValueError, match=message):
        vgg.vgg_16(tf.zeros([1, 31, 32, 3]), fc_conv_padding="SAME")
    with pytest.raises(ValueError, match=r"^fc_conv_padding must be one of VALID, SAME, got 'X'"):
        vgg.vgg_16(tf.zeros([1, 224, 224, 3]), fc_conv_padding="X")


def test_names_of_the_paper():
    """Configurations D and E are VGG 16 and 19."""
    assert vgg.vgg_d is vgg.vgg_16
    assert vgg.vgg_e is vgg.vgg_19

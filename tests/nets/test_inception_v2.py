"""The variations of Inception v2's feature extractor."""

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from model_deploy import slim
from nets.inception_v2 import inception_v2_arg_scope, inception_v2_base
from tests.nets import graphs, reference
from tests.nets.values import images, variable_names

# An eighth as wide, the network is quick to build and to run.
THIN = {"depth_multiplier": 1 / 8, "min_depth": 4}
FIRST = "Conv2d_1a_7x7"


def base(inputs, **keywords):
    """Builds the feature extractor, thin, under its arg scope, in inference mode."""
    with (
        slim.arg_scope(inception_v2_arg_scope()),
        slim.arg_scope([slim.batch_norm], is_training=False),
    ):
        return inception_v2_base(inputs, **{**THIN, **keywords})


def test_first_layer_like_the_others():
    """Without the separable convolution the first layer is one with a normalization."""
    net, _ = base(images(1, 32, 32, 3), final_endpoint=FIRST, use_separable_conv=False)
    assert variable_names() == [
        f"InceptionV2/{FIRST}/{name}"
        for name in (
            "weights",
            *(f"BatchNorm/{part}" for part in ("beta", "moving_mean", "moving_variance")),
        )
    ]
    assert tf.global_variables()[0].shape.as_list() == [7, 7, 3, 8]
    assert net.shape.as_list() == [1, 16, 16, 8]


def test_separable_convolution_of_few_channels():
    """Even the narrowest network has one kernel for each colour."""
    inception_v2_base(images(1, 32, 32, 3), FIRST, min_depth=1, depth_multiplier=1 / 64)
    assert tf.global_variables()[0].shape.as_list() == [7, 7, 3, 1]


@pytest.mark.slow
@pytest.mark.parametrize("use_batch_norm", [True, False])
def test_channels_first(use_batch_norm):
    """With `NCHW` variables and values are those of `NHWC`, with the channels in front."""
    inputs = images(2, 64, 64, 3)
    both = []
    with slim.arg_scope(inception_v2_arg_scope(use_batch_norm=use_batch_norm)):
        for data_format in ("NHWC", "NCHW"):
            net = inputs if data_format == "NHWC" else tf.transpose(inputs, [0, 3, 1, 2])
            with (
                tf.variable_scope("", reuse=tf.AUTO_REUSE),
                slim.arg_scope([slim.batch_norm], is_training=False),
            ):
                _, end_points = inception_v2_base(
                    net,
                    "Mixed_4b",
                    use_separable_conv=False,
                    data_format=data_format,
                    scope="Net",
                    **THIN,
                )
            both.append((variable_names(), end_points))
    (names, last), (names_of_both, first) = both
    assert names == names_of_both
    first = {name: tf.transpose(value, [0, 2, 3, 1]) for name, value in first.items()}
    assert graphs.static_shapes(first) == graphs.static_shapes(last)
    config = tf.ConfigProto()
    # There are no convolutions for channels first on CPUs; the graph is rewritten to last.
    config.graph_options.rewrite_options.cpu_layout_conversion = RewriterConfig.NCHW_TO_NHWC
    with tf.Session(config=config) as sess:
        graphs.load_weights(sess)
        last, first = sess.run([last, first])
    for name, value in last.items():
        assert reference.relative_difference(first[name], value) < 1e-5


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"data_format": "NCWH"}, "data_format must be one of NHWC, NCHW, got 'NCWH'"),
        ({"data_format": "NCHW"}, "data_format must be NHWC with use_separable_conv, got 'NCHW'"),
        (
            {"include_root_block": False, "final_endpoint": FIRST},
            f"final_endpoint must be one of Mixed_3b, .*, got '{FIRST}'",
        ),
    ],
)
def test_rejects(keywords, message):
    """What does not go together is named, before anything is built."""
    with pytest.raises(ValueError, match=f"^{message}"):
        base(tf.zeros([1, 32, 32, 3]), **keywords)
    assert tf.global_variables() == []

"""The keywords of I3D and S3D-G."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from model_deploy import slim
from nets.i3d import i3d, i3d_arg_scope, i3d_base
from nets.parts.inception_v1_layers import END_POINTS
from nets.s3dg import s3dg, s3dg_arg_scope, s3dg_base
from tests.nets import graphs, reference
from tests.nets.values import evaluate, evaluate_initial, images, variable_names

# A network a sixteenth as wide, up to its third block, is quick to build.
THIN = {"depth_multiplier": 1 / 16, "min_depth": 4}
SMALL = {**THIN, "num_classes": 10, "is_training": False, "final_endpoint": "Mixed_4b"}


def build_s3dg(inputs, **keywords):
    """Builds S3D-G under its arg scope."""
    with slim.arg_scope(s3dg_arg_scope()):
        return s3dg(inputs, **{**SMALL, **keywords})


@pytest.mark.slow
@pytest.mark.parametrize("network", [i3d, s3dg])
def test_features_and_logits(network):
    """Without classes a network returns the pooled features per frame, and no logits; logits are
    those of the features of each frame, averaged.
    """
    inputs = images(1, 24, 64, 64, 3)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        features, end_points = network(inputs, 0, is_training=False)
        assert features.shape.as_list() == [1, 2, 1, 1, 1024]
        assert list(end_points) == list(END_POINTS)
        assert not [name for name in variable_names() if "Logits" in name]
        logits, end_points = network(inputs, 10, is_training=False, spatial_squeeze=False)
    assert logits.shape.as_list() == [1, 1, 1, 10]
    assert end_points["Predictions"].shape.as_list() == [1, 1, 1, 10]
    weights, biases = tf.global_variables()[-2:]
    features, logits, weights, biases = evaluate([features, logits, weights, biases])
    wanted = (features @ weights[0, 0, 0] + biases).mean(axis=1)
    assert reference.relative_difference(logits, wanted) < 1e-5


@pytest.mark.slow
def test_sizes():
    """Frames of 256 pixels have 8 x 8 features: more than the 7 x 7 that are pooled. A single frame
    of one pixel goes through all poolings; and optical flow has two channels.
    """
    inputs = tf.zeros([1, 8, 256, 256, 3])
    logits, _ = i3d(inputs, 10, is_training=False, spatial_squeeze=False)
    assert logits.shape.as_list() == [1, 2, 2, 10]
    with tf.Graph().as_default():
        logits, _ = i3d(images(2, 1, 1, 1, 2), 10, is_training=False)
        assert logits.shape.as_list() == [2, 10]
        assert tf.global_variables()[0].shape.as_list()[3] == 2


@pytest.mark.parametrize("base", [i3d_base, s3dg_base])
def test_final_endpoint(base):
    """The base ends at the end point asked for."""
    net, end_points = base(images(1, 8, 32, 32, 3), final_endpoint="MaxPool_3a_3x3")
    assert list(end_points) == list(END_POINTS[:5])
    assert net is end_points["MaxPool_3a_3x3"]


@pytest.mark.parametrize("separable", [True, False])
def test_separable_i3d(separable):
    """With `separable_conv3d` every kernel over space and time is split in two."""
    with slim.arg_scope(i3d_arg_scope(separable_conv3d=separable)):
        i3d_base(images(1, 8, 32, 32, 3), final_endpoint="Mixed_3b")
    shapes = {v.op.name: v.shape.as_list() for v in tf.global_variables()}
    kernels = [shape[:3] for name, shape in shapes.items() if name.endswith("weights")]
    assert all(kernel[0] == 1 or kernel[1:] == [1, 1] for kernel in kernels) is separable
    temporal = [name for name in shapes if name.endswith("temporal/weights")]
    assert len(temporal) == (4 if separable else 0)


def test_batch_renormalization():
    """With `use_renorm` each normalization keeps the statistics of renormalization, too."""
    with slim.arg_scope(i3d_arg_scope(use_renorm=True)):
        net, _ = i3d_base(images(2, 8, 32, 32, 3), final_endpoint="Conv2d_1a_7x7")
    kinds = {name.rpartition("/")[2] for name in variable_names()}
    assert {"renorm_mean", "renorm_stddev"} <= kinds
    assert np.isfinite(evaluate_initial(net)).all()


def layers_with(part):
    """Returns the layers of the current graph that have a variable with `part` in its name."""
    layers = [name.split("/")[1] for name in variable_names() if f"/{part}/" in name]
    return list(dict.fromkeys(layers))


STARTS = {
    "Conv2d_2c_3x3": ["Conv2d_2c_3x3", "Mixed_3b", "Mixed_3c", "Mixed_4b"],
    "Mixed_3c": ["Mixed_3c", "Mixed_4b"],
    None: [],
}


@pytest.mark.slow
@pytest.mark.parametrize(("time", "gating"), [*zip(STARTS, [*STARTS][::-1], strict=True)])
def test_where_time_and_gating_start(time, gating):
    """Layers look along time, and have self gating, from the ones asked for on."""
    build_s3dg(images(1, 8, 32, 32, 3), temporal_conv_startat=time, gating_startat=gating)
    assert layers_with("temporal") == STARTS[time]
    assert layers_with("self_gating") == STARTS[gating]


@pytest.mark.parametrize("frames", [1, 5])
def test_first_temporal_kernel_size(frames):
    """The first convolution looks at as many frames as asked for, and is never split."""
    s3dg_base(
        images(1, 8, 32, 32, 3), first_temporal_kernel_size=frames, final_endpoint="Conv2d_1a_7x7"
    )
    assert tf.global_variables()[0].shape.as_list() == [frames, 7, 7, 3, 64]
    assert layers_with("temporal") == []


@pytest.mark.parametrize(
    ("keywords", "widths"),
    [
        pytest.param({"depth_multiplier": 0.5}, [32, 96], id="half"),
        pytest.param({"depth_multiplier": 0.125}, [16, 24], id="at-least-16"),
        pytest.param({"depth_multiplier": 0.125, "min_depth": 4}, [8, 24], id="at-least-4"),
    ],
)
def test_depth(keywords, widths):
    """Layers are as wide as the keywords say."""
    _, end_points = s3dg_base(images(1, 8, 32, 32, 3), final_endpoint="Conv2d_2c_3x3", **keywords)
    assert [end_points[name].shape[4] for name in ("Conv2d_1a_7x7", "Conv2d_2c_3x3")] == widths


@pytest.mark.slow
def test_channels_first():
    """With `NCDHW` logits and variables are those of `NDHWC`, and shapes have channels in front.

    Without a prediction function there are no predictions.
    """
    inputs, found = images(1, 8, 32, 32, 3), {}
    for data_format in ("NDHWC", "NCDHW"):
        net = inputs if data_format == "NDHWC" else tf.transpose(inputs, [0, 4, 1, 2, 3])
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            predict = {"prediction_fn": None} if data_format == "NCDHW" else {}
            logits, end_points = build_s3dg(
                net, data_format=data_format, spatial_squeeze=False, **predict
            )
        axes = [data_format.index(letter) for letter in "NDHWC"]
        assert logits.shape.as_list() == ([1, 1, 1, 10] if axes[-1] == 4 else [1, 10, 1, 1])
        assert list(end_points)[-1] == ("Logits" if predict else "Predictions")
        del end_points["Logits"]
        end_points.pop("Predictions", None)
        sizes = {key: [value.shape[axis] for axis in axes] for key, value in end_points.items()}
        found[data_format] = logits, variable_names(), sizes
    (last, *others), (first, *same) = found.values()
    assert same == others
    config = tf.ConfigProto()
    # There are no 3-D convolutions for channels first on CPUs; the graph is rewritten to last.
    config.graph_options.rewrite_options.cpu_layout_conversion = RewriterConfig.NCHW_TO_NHWC
    with tf.Session(config=config) as sess:
        graphs.load_weights(sess)
        last, first = sess.run([last, first])
    assert reference.relative_difference(first.ravel(), last.ravel()) < 1e-5


def test_channels_first_is_checked_like_channels_last():
    """The channel count is looked for where `data_format` says."""
    shapes = {"NDHWC": [1, 8, 32, 32, None], "NCDHW": [1, None, 8, 32, 32]}
    for data_format, shape in shapes.items():
        video = tf.placeholder(tf.float32, shape)
        with pytest.raises(ValueError, match=r"^inputs must have a known number of channels"):
            s3dg(video, data_format=data_format)
    with pytest.raises(ValueError, match=r"^inputs must have rank 5, got shape \(8, 3, 32, 32\)"):
        s3dg(images(8, 3, 32, 32), data_format="NCDHW")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"depth_multiplier": 0}, "depth_multiplier must .*, got 0"),
        ({"min_depth": 0}, "min_depth must .*, got 0"),
        ({"data_format": "NHWC"}, "data_format .*, got 'NHWC'"),
        ({"first_temporal_kernel_size": 2}, "first_temporal.*, got 2"),
        ({"gating_startat": "Mixed_2a"}, "gating_startat.*, got 'Mixed_2a'"),
        (
            {"temporal_conv_startat": "MaxPool_4a_3x3"},
            "temporal_conv_startat.*, got 'MaxPool_4a_3x3'",
        ),
    ],
)
def test_bad_arguments(keywords, message):
    """A bad argument is named with the value received, and nothing is built."""
    inputs = images(1, 8, 32, 32, 3)
    with pytest.raises(ValueError, match=f"^{message}"):
        build_s3dg(inputs, **keywords)
    assert len(tf.get_default_graph().get_operations()) == 1

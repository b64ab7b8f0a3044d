"""Deployments with `data_format="NCHW"` train as without, whatever the model is."""

import json

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import train_image_classifier as script
from model_deploy import DeploymentConfig, deploy, describe, slim, split_batch, training
from nets import nets_factory
from tests import devices, harness
from tests.goldens import LogicalDevices, classify, cpu_config, formula
from tests.nets import graphs, reference

IMAGES = np.cos(np.arange(8 * 8 * 8 * 3)).reshape(8, 8, 8, 3).astype(np.float32)
LABELS = np.arange(8) % 3


def _residual(images, labels):
    with slim.arg_scope([slim.conv2d, slim.separable_conv2d], weights_initializer=formula):
        net = slim.conv2d(images, 16, 3, normalizer_fn=slim.batch_norm, scope="conv")
        branch = slim.separable_conv2d(net, 16, 3, 1, stride=1, scope="separable")
        net = tf.concat([net + branch, slim.max_pool2d(net, 3, 1, padding="SAME")], 3)
        gate = tf.reduce_mean(net, [1, 2], keepdims=True)
        net *= slim.conv2d(gate, 32, 1, activation_fn=tf.nn.sigmoid, scope="gate")
    slim.summaries.add_histogram_summary(net, "net")
    classify(slim.dropout(slim.avg_pool2d(net, 2), 0.8, seed=5), labels)


def _train(model_fn, **settings):
    """Losses of three steps and the values after them; and what is said of the model.

    In 16 bits it is one step, for in the next ones these differ by what has been rounded.
    """
    num_steps = 1 if "precision" in settings else 3
    config = LogicalDevices(clone_on_cpu=not devices.on_gpus(), **settings)
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        batch = tf.constant(IMAGES), tf.constant(LABELS)
        parts = iter(split_batch(batch, config.batches_per_step))
        optimizer = harness.momentum()
        model = deploy(config, lambda it: model_fn(*next(it)), args=[parts], optimizer=optimizer)
        report = str(describe(model))
        proto = training.session_config(config, base=cpu_config(config.num_clones))
        with tf.Session(config=proto) as session:
            harness.start(session)
            losses = [session.run(model.train_op) for _ in range(num_steps)]
            session.run(model.summary_op)
            values = session.run({v.op.name: v for v in tf.global_variables()})
    return losses, values, report


ONE_MODE = pytest.mark.one_mode
SETTINGS = [
    pytest.param({"num_clones": 2, "copy_clones": True}, id="copies"),
    pytest.param(
        {"num_clones": 2, "sync_batch_norm": True}, id="batch norms of all clones", marks=ONE_MODE
    ),
    pytest.param({"accumulate_steps": 2}, id="accumulated", marks=ONE_MODE),
    pytest.param({"num_clones": 2, "all_reduce": True}, id="all-reduce"),
    pytest.param({"precision": "bfloat16"}, id="bfloat16", marks=ONE_MODE),
    pytest.param(
        {"precision": "float16", "num_clones": 2, "copy_clones": True}, id="float16", marks=ONE_MODE
    ),
]


@pytest.mark.gpu
@pytest.mark.parametrize("settings", SETTINGS)
def test_clones_train_alike(settings):
    """Losses and all variables are those of channels last, with every setting beside it."""
    reference = dict(settings)
    if settings.get("precision") == "float16" and not devices.on_gpus():
        # Few CPUs have channels first in float16; such convolutions stay in float32.
        reference |= {"precision": "float32", "loss_scale": "dynamic"}
    losses, values, report = _train(_residual, **reference)
    of_first, values_of_first, report_of_first = _train(_residual, data_format="NCHW", **settings)
    tolerance = 2e-2 if "precision" in settings else 1e-5
    np.testing.assert_allclose(of_first, losses, rtol=tolerance)
    assert values_of_first.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_allclose(
            values_of_first[name], value, atol=tolerance, rtol=0, err_msg=name
        )
    assert "data_format" not in report
    (line,) = [each for each in report_of_first.splitlines() if each.startswith("data_format")]
    found, _, of = line.partition("NCHW: ")[2].partition(" of ")
    assert found == of.split()[0]
    assert int(found) >= 10


# Networks, the sizes of their images, and the transpositions that remain: of the images, and of
# what is flattened, normalized over channels or cut, there and back.
NETWORKS = [
    pytest.param("lenet", 28, 2, id="lenet", marks=ONE_MODE),
    pytest.param("cifarnet", 32, 6, id="cifarnet", marks=ONE_MODE),
    pytest.param("resnet_9_small", 32, 1, id="resnet_9_small"),
    *(
        pytest.param(name, size, count, id=name, marks=[pytest.mark.slow, ONE_MODE])
        for name, size, count in (("mobilenet_v3_small", 64, 1), ("inception_v1", 193, 1))
    ),
]


def _gradients(name, size, data_format):
    values = np.cos(np.arange(2 * size * size * 3)).reshape(2, size, size, 3).astype(np.float32)
    config = DeploymentConfig(clone_on_cpu=True, data_format=data_format)

    def model_fn():
        network = nets_factory.get_network_fn(name, 10, is_training=False)
        # It is about where channels are, not how many.
        logits, _ = network(tf.constant(values), **graphs.narrow(name))
        tf.losses.sparse_softmax_cross_entropy([1, 7], logits)

    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        model = deploy(config, model_fn)
        gradients = tf.gradients(model.total_loss, tf.trainable_variables())
        known = [each for each in gradients if each is not None]
        needed = tf.graph_util.extract_sub_graph(graph.as_graph_def(), [model.total_loss.op.name])
        proto = training.session_config(config)
        # The CPU has no kernels for channels first: TensorFlow rewrites those, and nothing else.
        needs_rewriting = data_format == "NCHW" and not devices.on_gpus()
        proto.graph_options.rewrite_options.disable_meta_optimizer = not needs_rewriting
        with tf.Session(config=proto) as session:
            graphs.initialize_alike(session)
            found = session.run([model.total_loss, *known])
    return found, [node.name for node in needed.node if node.op == "Transpose"]


@pytest.mark.parametrize(("name", "size", "count"), NETWORKS)
def test_networks_compute_alike(name, size, count):
    """Loss and gradients of a network are those of channels last; little is transposed."""
    expected, _ = _gradients(name, size, "NHWC")
    found, transposed = _gradients(name, size, "NCHW")
    assert len(transposed) == count
    for mine, other in zip(found, expected, strict=True):
        assert reference.relative_difference(mine, other) < 1e-4


@pytest.mark.slow
@ONE_MODE
def test_the_command_trains_alike(tmp_path):
    """`--data_format=NCHW` writes the metrics and a checkpoint that go on with the other one."""
    flags = ["--clone_on_cpu", "--num_clones=2", "--model_name=lenet", "--log_every_n_steps=2"]
    flags += ["--dataset_name=digits", "--batch_size=4", "--seed=1"]

    def train(folder, data_format, steps):
        script.main(
            [
                *flags,
                f"--train_dir={tmp_path / folder}",
                f"--data_format={data_format}",
                f"--max_number_of_steps={steps}",
            ]
        )
        lines = (tmp_path / folder / "metrics.jsonl").read_text().splitlines()
        return [each["loss"] for each in map(json.loads, lines) if "loss" in each]

    expected = train("last", "NHWC", 8)
    train("first", "NCHW", 4)
    found = train("first", "NHWC", 8)
    assert len(expected) == 4
    np.testing.assert_allclose(found, expected, rtol=1e-4)

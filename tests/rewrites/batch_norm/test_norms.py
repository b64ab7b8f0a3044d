"""Synchronized batch norms by hand, of every type and format; what they leave alone or refuse."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy import (
    create_clones,
    deploy,
    describe,
    graph_walk,
    optimize_clones,
    slim,
    training,
)
from model_deploy.rewrites import computing_in
from tests import harness
from tests.copies import batches_of
from tests.goldens import GOLDENS, NUM_EXAMPLES, LogicalDevices, cpu_config, feed_clones, formula
from tests.rewrites.batch_norm.norms import MODELS, WIDE
from tests.staged import MODELS as STAGED

SGD = harness.sgd(1.0)


def _config(num_clones=2, **options):
    return LogicalDevices(num_clones=num_clones, sync_batch_norm=True, **options)


def _run(fetches):
    with tf.Session(config=cpu_config(4, rewritten=False)) as session:
        harness.start(session)
        return session.run(fetches)


@pytest.mark.parametrize("fused", [True, False])
def test_by_hand(fused):
    """Moments, loss and gradients are those that pen and paper give for the whole batch.

    Two clones have x = 0, 2 and 4, 6, times a weight of 1: the mean is 3, the variance 5, and
    with an epsilon of 4 the root is 3, so that x = 0 becomes -1.  That is the loss: for a weight w
    it is -3 w / sqrt(5 w^2 + 4), with the gradient -3 / 3 + 3 * 5 / 27 = -4 / 9.
    """
    parts = iter([[0.0, 2.0], [4.0, 6.0]])

    def model_fn():
        x = tf.constant(next(parts))[:, tf.newaxis]
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        y = slim.batch_norm(
            x * weight, decay=0.5, epsilon=4.0, scale=True, fused=fused, scope="norm"
        )
        is_first = tf.cast(tf.equal(x, 0.0), tf.float32)
        tf.losses.add_loss(2 * tf.reduce_sum(is_first * y))  # half of it, as there are two clones
        return y

    model = deploy(_config(), model_fn, optimizer=SGD)
    outputs = tf.concat([clone.outputs[:, 0] for clone in model.clones], axis=0)
    np.testing.assert_allclose(_run(outputs), [-1, -1 / 3, 1 / 3, 1], rtol=1e-6)
    names = {v.op.name: v for v in tf.global_variables()}
    [loss], values = harness.run_steps(model, names)
    assert loss == pytest.approx(-1, rel=1e-6)
    found = {name: values[name] for name in names if name != "global_step"}
    unbiased = 20 / 3 if fused else 5  # TensorFlow's kernel divides by the count - 1
    expected = {
        "weight": 1 + 4 / 9,
        "norm/gamma": 1 - -1,
        "norm/beta": 0 - 1,
        "norm/moving_mean": 3 / 2,
        "norm/moving_variance": (1 + unbiased) / 2,
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.reshape(value, np.shape(found[name])), rtol=1e-6)


@functools.cache
def _normalized(num_clones, data_format, dtype, sizes):
    """Values, moments and gradients of clones that get parts of the given sizes."""
    random = np.random.default_rng(0)
    place = len(data_format) - 1 if data_format.endswith("C") else 1
    shape = [5 if i == place else 3 for i in range(1, len(data_format))]
    x, targets = random.normal(2, 3, (8, *shape)), random.normal(size=(8, *shape))
    ends = np.cumsum(sizes)[:-1]
    parts = iter(zip(np.split(x, ends), np.split(targets, ends), strict=True))

    def model_fn():
        values, factors = (tf.constant(each, tf.float32) for each in next(parts))
        weights = tf.get_variable("weights", shape, initializer=formula)
        scale = tf.get_variable("scale", [5], initializer=formula)
        offset = tf.get_variable("offset", [5], initializer=formula)
        y, mean, variance = tf.nn.fused_batch_norm(
            tf.cast(values * weights, dtype), scale, offset, data_format=data_format
        )
        tf.losses.add_loss(num_clones * tf.reduce_sum(tf.cast(y, tf.float32) * factors))
        return tf.cast(y, tf.float32), mean, variance

    with tf.Graph().as_default():
        clones = create_clones(_config(num_clones), model_fn)
        loss, pairs = optimize_clones(clones, SGD)
        values = tf.concat([clone.outputs[0] for clone in clones], axis=0)
        return _run([loss, values, *clones[-1].outputs[1:], *(g for g, _ in pairs)])


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.float16], ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("data_format", "sizes"),
    [
        ("NHWC", (4, 4)),
        ("NHWC", (3, 5)),
        ("NHWC", (8, 0)),  # of an empty batch of rank 5 TensorFlow's own kernels lose an axis
        ("NCHW", (3, 5)),
        ("NCHW", (8, 0)),
        ("NDHWC", (3, 5)),
        ("NCDHW", (3, 5)),
    ],
    ids=str,
)
def test_every_type_and_format(data_format, sizes, dtype):
    """Values, moments and gradients do not depend on how a batch is divided, evenly or not."""
    expected = _normalized(1, data_format, dtype, (8,))
    found = _normalized(2, data_format, dtype, sizes)
    # What leaves a batch norm, and comes into it, has 8 or 11 binary digits in 16 bits.
    tolerance = {"float32": 2e-6, "bfloat16": 2**-7, "float16": 2**-10}[dtype.name]
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=0, atol=tolerance * np.max(np.abs(other)))


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("copy_clones", [False, True])
def test_models_that_compute_in_16_bits(copy_clones):
    """There batch norms stay in 16 bits forward and backward, and so does what lies behind them."""

    def losses(num_clones):
        def model_fn(batches):
            with computing_in("bfloat16"):
                WIDE.model_fn(*next(batches))

        config = _config(num_clones, copy_clones=copy_clones)
        with tf.Graph().as_default() as graph:
            model = deploy(config, model_fn, [batches_of(WIDE, num_clones)], optimizer=SGD)
            types = {op.get_attr("T") for op in graph.get_operations() if op.type in wanted}
            return harness.run_steps(model, steps=3)[0], types

    wanted = ("FusedBatchNormV3", "FusedBatchNormGradV3", "Relu", "ReluGrad")
    found, types = losses(2)
    assert types == {tf.bfloat16}
    np.testing.assert_allclose(found, losses(1)[0], rtol=2**-7)


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("sizes", [(18, 6), (23, 1)], ids=str)
def test_single_ops_of_unequal_parts(sizes):
    """Batch norms of single ops weigh the clones by what they have, too."""
    features = GOLDENS["batch_norm"].features

    def run(sizes):
        parts = iter(np.split(features, np.cumsum(sizes)[:-1]))

        def model_fn():
            x = tf.constant(next(parts))
            weights = tf.get_variable("weights", [3], initializer=formula)
            y = slim.batch_norm(x * weights, fused=False, scale=True, scope="norm")
            tf.losses.add_loss(len(sizes) * tf.reduce_sum(tf.sin(y)))
            return y

        with tf.Graph().as_default():
            model = deploy(_config(len(sizes)), model_fn, optimizer=SGD)
            losses, values = harness.run_steps(model, tf.global_variables())
            return [*losses, *values]

    for value, other in zip(run(sizes), run((NUM_EXAMPLES,)), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-5)


def _tf_keras_layer_norm(x):
    return tf_keras.layers.LayerNormalization()(x)  # made of the fused op of batch norm


def _keras_layer_norm(x):
    return keras.layers.LayerNormalization()(x)


LEFT_ALONE = {
    "tf-slim layer norm": lambda x: slim.layer_norm(x, scope="norm"),
    "tf-slim instance norm": lambda x: slim.instance_norm(x, scope="norm"),
    "tf-slim group norm": lambda x: slim.group_norm(x, groups=2, scope="norm"),
    "tf-keras layer norm": _tf_keras_layer_norm,
    "Keras layer norm": _keras_layer_norm,
    "moving averages": lambda x: slim.batch_norm(x, is_training=False, scope="norm"),
    "moving averages, single ops": lambda x: slim.batch_norm(
        x, is_training=False, fused=False, scope="norm"
    ),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    """Layers that normalize each example, or by moving averages, are as they were."""

    def ops_of(config):
        with tf.Graph().as_default() as graph:
            x = tf.ones([4, 3, 3, 2])
            with tf.variable_scope("", reuse=tf.AUTO_REUSE):
                create_clones(config, lambda: LEFT_ALONE[name](x))
            return [op.type for op in graph.get_operations()]

    assert ops_of(_config()) == ops_of(LogicalDevices(num_clones=2))


def test_outside_of_clones_layers_are_as_they_were():
    """What is built before, between and after deployments has nothing to do with them."""
    before = (
        keras.layers.BatchNormalization._moments,
        tf_keras.layers.BatchNormalization._moments,
        tf_keras.layers.LayerNormalization.call,
    )
    features = tf.constant(GOLDENS["batch_norm"].features)
    slim.batch_norm(features, scope="before")
    deploy(_config(), feed_clones(GOLDENS["batch_norm"], 2))
    with graph_walk.new_ops() as ops:
        slim.batch_norm(features, scope="after")
        slim.batch_norm(features, fused=False, scope="single")
    assert not [op for op in ops if op.type == "PreventGradient"]
    assert before == (
        keras.layers.BatchNormalization._moments,
        tf_keras.layers.BatchNormalization._moments,
        tf_keras.layers.LayerNormalization.call,
    )


def test_one_clone_is_as_without():
    """One clone of one replica has nobody to share with: its graph is the same."""

    def nodes(sync):
        with tf.Graph().as_default() as graph:
            config = LogicalDevices(sync_batch_norm=sync)
            deploy(config, feed_clones(GOLDENS["batch_norm"], 1), optimizer=SGD)
            return [(op.name, op.type) for op in graph.get_operations()]

    assert nodes(True) == nodes(False)


@pytest.mark.slow
@pytest.mark.one_mode
def test_deployments_of_one_graph_do_not_mix():
    """Two deployments with other batches, and an evaluation, give what each alone gives."""
    golden = MODELS["branches"]

    def losses(numbers, scope):
        found = []
        for number in numbers:
            with tf.variable_scope(f"{scope}_{number}"):
                model_fn = feed_clones(golden, number)
                found.append(deploy(_config(number), model_fn, optimizer=SGD).train_op)
        with tf.Session(config=cpu_config()) as session:
            session.run(tf.global_variables_initializer())
            return [session.run(each) for each in found]

    expected = []
    for number in (2, 4):
        with tf.Graph().as_default():
            expected += losses([number], "alone")
    np.testing.assert_allclose(losses([2, 4], "both"), expected, rtol=1e-6)


def test_evaluation_beside_training():
    """An evaluation of moving averages in the training's graph needs no other clone."""
    features = tf.constant(GOLDENS["batch_norm"].features)
    deploy(_config(), feed_clones(GOLDENS["batch_norm"], 2), optimizer=SGD)

    def predict():
        return slim.batch_norm(features, is_training=False, scale=True, scope="norm")

    with tf.variable_scope("", reuse=True):
        clones = create_clones(_config(), predict)
    needed = graph_walk.ancestors([clones[1].outputs.op], control_inputs=True)
    assert not [op.name for op in needed if op.name.startswith("clone_0/")]


@pytest.mark.parametrize("way", ["create_clones", "deploy"])
def test_clones_without_gradients(way):
    """Moments are joined by `create_clones`, and by `deploy` without an optimizer."""
    features = GOLDENS["batch_norm"].features
    parts = iter(np.split(features, 2))

    def model_fn():
        return _with_loss(tf.constant(next(parts)))

    build = {"create_clones": create_clones, "deploy": lambda *args: deploy(*args).clones}[way]
    values = tf.concat([clone.outputs for clone in build(_config(), model_fn)], axis=0)
    normalized = (features - features.mean(axis=0)) / np.sqrt(features.var(axis=0) + 1e-3)
    np.testing.assert_allclose(_run(values), normalized, rtol=1e-4, atol=1e-5)


def _with_loss(x):
    y = slim.batch_norm(x, scope="norm")
    tf.losses.add_loss(tf.reduce_sum(y))
    return y


@pytest.mark.parametrize("copy_clones", [False, True])
def test_stages(copy_clones):
    """Each sum over clones is on the stage of its batch norm: the first one of two."""
    fields = {"devices_per_clone": 2, "clone_on_cpu": True, "copy_clones": copy_clones}
    ops = harness.Replica(_config(**fields), STAGED["loop"]).graph.get_operations()
    sums = [op for op in ops if op.type == "PreventGradient" and "gradients" not in op.name]
    assert {op.device[-5:] for op in sums} == {"CPU:0", "CPU:2"}


def _x():
    return tf.constant(GOLDENS["batch_norm"].features)


def _in_a_loop():
    def body(i, x):
        return i + 1, slim.batch_norm(x, scope="norm")

    return tf.while_loop(lambda i, _: i < 2, body, (0, _x()))


def _by_tensor():
    is_training = tf.placeholder_with_default(True, [])
    return slim.batch_norm(_x(), is_training=is_training, scope="norm")


def _by_tensor_in_version_1():
    was_new = tf.control_flow_v2_enabled()
    tf.disable_control_flow_v2()
    try:
        return _by_tensor()
    finally:
        (tf.enable_control_flow_v2 if was_new else tf.disable_control_flow_v2)()


def _with_a_mask():
    layer = keras.layers.BatchNormalization()
    return layer(tf.ones([4, 3, 2]), mask=tf.ones([4, 3], tf.bool), training=True)


REFUSED = {
    "loop": (_in_a_loop, "outside of loops, conditions and functions .* got .*norm.* inside"),
    "tensor": (_by_tensor, "is_training must be True or False, no tensor"),
    "tensor, version 1": (_by_tensor_in_version_1, "is_training must be True or False, no tensor"),
    "weights": (
        lambda: slim.batch_norm(_x(), batch_weights=tf.ones([NUM_EXAMPLES]), scope="norm"),
        "without batch_weights, got .*",
    ),
    "mask": (_with_a_mask, "without mask, got .* in batch_normalization"),
    "parts": (
        lambda: tf_keras.layers.BatchNormalization(virtual_batch_size=4)(_x(), training=True),
        "without virtual_batch_size, got 4",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_synchronized_is_refused(name):
    """A batch norm that would be of each clone alone is an error that names it."""
    build, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        create_clones(_config(), build)


def test_moments_that_are_of_no_known_layer_are_named(caplog):
    """Batch norms that a model makes of `tf.nn.moments` stay as they are; one line names them."""

    def model_fn():
        with tf.name_scope("mine"):
            tf.nn.moments(_x(), [0])
            tf.nn.moments(_x(), [1])
        with tf.name_scope("yours"):
            tf.nn.moments(_x(), [0])

    create_clones(_config(), model_fn)
    [line] = [r.getMessage() for r in caplog.records if "sync_batch_norm" in r.getMessage()]
    assert line.endswith(": clone_0/mine/moments, clone_0/yours/moments")


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        ([[3], [2]], "clone_0/norm_0 of 3 channels, clone_1/norm_0 of 2 channels"),
        ([[3], [3, 2]], "none of None channels, clone_1/norm_1 of 2 channels"),
    ],
)
def test_clones_must_be_alike(channels, message):
    """Clones with other batch norms are refused, and the names are told."""
    of_clones = iter(channels)

    def model_fn():
        for i, n in enumerate(next(of_clones)):
            tf.nn.fused_batch_norm(
                tf.ones([4, 1, 1, n]), tf.ones([n]), tf.ones([n]), name=f"norm_{i}"
            )

    with pytest.raises(ValueError, match=f"the same batch norms in each clone, got {message}"):
        create_clones(_config(), model_fn)


def test_gradients_by_hand_are_refused():
    """A gradient that nobody would join is an error; so is that of a gradient."""
    clones = create_clones(_config(), lambda: _with_loss(_x() * tf.get_variable("w", [])))
    with pytest.raises(ValueError, match="deploy or optimize_clones must take the gradients"):
        tf.gradients(clones[0].outputs, tf.trainable_variables())


@pytest.mark.parametrize("fused", [True, False])
def test_gradients_of_gradients_are_refused(fused):
    """There is no second derivative; TensorFlow says so."""

    class Twice(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, loss, *args, **kwargs):
            [first] = tf.gradients(loss, tf.trainable_variables("w"))
            return super().compute_gradients(tf.reduce_sum(first**2), *args, **kwargs)

    def model_fn():
        x = _x() * tf.get_variable("w", [])
        tf.losses.add_loss(tf.reduce_sum(slim.batch_norm(x, fused=fused, scope="norm") ** 3))

    with pytest.raises(LookupError, match="no gradient of its gradient"):
        deploy(_config(), model_fn, optimizer=Twice(0.1))


def test_losses_that_count_once_of_one_clone_are_refused():
    """The moments of all clones would need gradients of a loss that one of them has."""

    def model_fn():
        x = _x() * tf.get_variable("w", [])
        y = slim.batch_norm(x, scope="norm")
        tf.losses.add_loss(tf.reduce_sum(y**3))
        return y

    clones = create_clones(_config(), model_fn)
    tf.losses.add_loss(tf.reduce_sum(clones[0].outputs ** 2))
    with pytest.raises(ValueError, match="in each clone or in none, got one that does not for"):
        optimize_clones(clones, SGD)


@pytest.mark.slow
@pytest.mark.parametrize("copy_clones", [False, True])
def test_losses_of_all_clones_count_once(copy_clones):
    """A loss made of what all clones return has the gradient that one clone's has."""

    def run(num_clones):
        parts = iter(np.split(GOLDENS["batch_norm"].features, num_clones))

        def model_fn(batches):
            weights = tf.get_variable("weights", [3], initializer=formula)
            y = slim.batch_norm(tf.sin(next(batches)) * weights, scope="norm")
            tf.losses.add_loss(tf.reduce_mean(y**3))
            return y

        with tf.Graph().as_default():
            config = _config(num_clones, copy_clones=copy_clones)
            clones = create_clones(config, model_fn, [(tf.constant(part) for part in parts)])
            values = tf.concat([clone.outputs for clone in clones], axis=0)
            tf.losses.add_loss(tf.reduce_mean(tf.cos(values)))
            loss, pairs = optimize_clones(clones, SGD)
            return _run([loss, *(gradient for gradient, _ in pairs)])

    for value, other in zip(run(3), run(1), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"all_reduce": True}], ids=str)
def test_a_run_of_one_clone(options):
    """It gives the clone's outputs as a run of all, and does not wait for the others."""
    run = harness.Replica(_config(**options), GOLDENS["batch_norm"])
    with run.open() as session:
        run.start()
        alone = [session.run(clone.outputs) for clone in run.model.clones]
        together = session.run([clone.outputs for clone in run.model.clones])
    np.testing.assert_allclose(alone, together, rtol=1e-6)


def test_asynchronous_clones_are_refused():
    """Clones that go each at its own pace have no common batch; one clone alone has its own."""
    message = "asynchronous must be False with sync_batch_norm=True and several clones, got True"
    with pytest.raises(ValueError, match=f"{message} with num_clones=2"):
        deploy(_config(), lambda: None, optimizer=SGD, asynchronous=True)
    options = training.DeploymentOptions(sync_batch_norm=True, asynchronous=True, num_clones=2)
    with pytest.raises(ValueError, match="asynchronous and several clones, got num_clones=2"):
        training.deployment_config(options, num_gpus=2)
    one = training.deployment_config(dataclasses.replace(options, num_clones=1), num_gpus=1)
    model_fn = feed_clones(GOLDENS["batch_norm"], 1)
    assert len(deploy(one, model_fn, optimizer=SGD, asynchronous=True).clone_updates) == 1


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "over"),
    [
        ({}, "2 clones"),
        ({"copy_clones": True}, "2 clones"),
        ({"accumulate_steps": 3}, "2 clones"),
        ({"all_reduce": True}, "2 clones"),
        ({"all_reduce": True, "num_replicas": 3}, "6 clones of 3 replicas"),
        ({"num_replicas": 3, "num_ps_tasks": 1}, "2 clones"),
        ({"sync_batch_norm": False}, None),
    ],
    ids=str,
)
def test_the_report_says_over_how_many_clones(options, over):
    """`describe` counts the batch norms of a clone, and the clones that share them."""
    config = LogicalDevices(**{"num_clones": 2, "sync_batch_norm": True, **options})

    def model_fn():
        x = slim.batch_norm(_x(), scale=True, scope="norm_1")
        tf.losses.add_loss(tf.reduce_sum(slim.batch_norm(x, fused=False, scope="norm_2")))

    report = describe(deploy(config, model_fn, optimizer=SGD))
    line = f"sync_batch_norm: mean and variance of 2 batch norms are over {over}"
    assert report.batch_norm == (line if over else "")
    assert (line in str(report).splitlines()) == bool(over)


def test_the_flag():
    """`--sync_batch_norm` is the setting of the deployment."""
    options = training.DeploymentOptions(num_clones=2, sync_batch_norm=True)
    assert training.deployment_config(options, num_gpus=2).sync_batch_norm

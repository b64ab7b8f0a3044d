"""Variables, updates, losses and seeds of Keras layers in `model_fn`."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    create_clones,
    current_clone,
    deploy,
    placement,
    random_by_step,
)
from tests import harness
from tests.goldens import GOLDENS, NUM_CLASSES, LogicalDevices, cpu_config, feed_clones, formula
from tests.keras_layers.models import KERASES, MODELS, averages_activity, mlp, subclassed

BOTH = pytest.mark.parametrize("library", KERASES.values(), ids=KERASES)
SGD = tf.train.GradientDescentOptimizer


class _Parts(LogicalDevices):
    """Cuts variables as two parameter servers would have them, but keeps them."""

    def partitioner(self, min_bytes=1 << 20):
        """As of two parameter servers."""
        return LogicalDevices(num_ps_tasks=2).partitioner(min_bytes)


def _features(num_clones=2, shape=(4, 6)):
    """A function that gives each clone other features."""
    batches = iter(np.cos(np.arange(num_clones * np.prod(shape))).reshape(num_clones, *shape))
    return lambda: tf.constant(next(batches), tf.float32)


def _names(key):
    return [item.op.name if hasattr(item, "op") else item.name for item in tf.get_collection(key)]


def _run(model, fetches, steps=1):
    return harness.run_steps(model, fetches, steps)[1]


@BOTH
def test_variables_are_made_once_under_the_layers_names(library):
    """Each clone makes its model, whose variables are the first one's, without a clone's name."""
    made = []

    def model_fn():
        made.append(mlp(library))
        return made[-1](next_features(), training=True)

    next_features = _features(3)
    create_clones(LogicalDevices(num_clones=3), model_fn)
    names = [v.op.name for v in tf.global_variables()]
    assert len(names) == 4
    assert not any(name.startswith("clone") for name in names)
    assert len(made) == 3
    for before, after in zip(made[0].weights, made[2].weights, strict=True):
        assert getattr(before, "_value", before) is getattr(after, "_value", after)


@BOTH
def test_another_model_in_a_later_clone_is_an_error(library):
    """A clone that asks for a variable of another shape gets an error with its name."""
    units = iter([3, 4])

    def model_fn():
        return library.layers.Dense(next(units), name="odd")(next_features())

    next_features = _features()
    with pytest.raises(ValueError, match=r"share variable odd/kernel.*\(6, 4\).*\(6, 3\)"):
        create_clones(LogicalDevices(num_clones=2), model_fn)


@BOTH
@pytest.mark.parametrize("made", ["inside", "before", "before, without a device"])
@pytest.mark.parametrize("strategy", ["round_robin", "balanced"])
def test_variables_are_on_parameter_servers(library, made, strategy, monkeypatch):
    """Variables go to the ps tasks in turn, or by bytes, those of a model made before as well."""
    monkeypatch.setattr(placement, "SMALL_BYTES", 0)  # these are all small
    config = LogicalDevices(num_clones=2, num_ps_tasks=2, ps_strategy=strategy)
    model = None
    if made != "inside":
        with tf.device(config.variables_device() if made == "before" else None):
            model = mlp(library)
    features = _features()
    create_clones(config, lambda: (model or mlp(library))(features(), training=True))
    tasks = [tf.DeviceSpec.from_string(v.device).task for v in tf.trainable_variables()]
    assert all("/job:ps" in v.device for v in tf.global_variables())
    # 6 x 5 weights, 5, 5 x 3 and 3; a ps task that holds none yet is the lowest one.
    assert tasks == ([0, 1, 0, 1] if strategy == "round_robin" else [0, 1, 1, 1])


@BOTH
def test_a_partitioner_cuts_variables(library):
    """Weights are cut into parts, one per ps task, with the values of the whole."""
    config = LogicalDevices(num_clones=2, num_ps_tasks=2)
    golden = GOLDENS["slim_mlp"]

    def build(config, min_bytes):
        def model_fn(features, labels):
            with tf.variable_scope("", partitioner=config.partitioner(min_bytes)):
                logits = mlp(library)(features, training=True)
            tf.losses.sparse_softmax_cross_entropy(labels, logits)

        parts = iter(zip(np.split(golden.features, 2), np.split(golden.labels, 2), strict=True))
        return deploy(config, lambda: model_fn(*map(tf.constant, next(parts))), optimizer=SGD(0.1))

    build(config, 60)
    parts = [v for v in tf.trainable_variables() if "kernel" in v.op.name]
    assert [v.op.name.split("/")[-1] for v in parts] == ["part_0", "part_1"] * 2
    assert {v.device for v in parts} == {f"/job:ps/task:{task}/device:CPU:0" for task in range(2)}
    found = []
    for config, min_bytes in ((LogicalDevices(num_clones=2), 1 << 20), (_Parts(num_clones=2), 60)):
        with tf.Graph().as_default():
            model = build(config, min_bytes)
            kernels = [v for v in tf.trainable_variables() if "kernel" in v.op.name]
            values = _run(model, kernels, steps=3)
            assert len(values) == (4 if min_bytes == 60 else 2)
            found.append(np.sort(np.concatenate([v.ravel() for v in values])))
    np.testing.assert_allclose(*found, rtol=1e-6)


@BOTH
def test_losses_count_as_what_they_are(library):
    """Weights' regularizers count once, activations' per clone, as in arithmetic by hand."""
    features = _features()

    def model_fn():
        model = library.Sequential(
            [
                library.layers.Dense(
                    2,
                    kernel_initializer="ones",
                    kernel_regularizer=library.regularizers.L2(0.5),
                    activity_regularizer=library.regularizers.L1(0.25),
                )
            ]
        )
        tf.losses.add_loss(tf.reduce_sum(model(features(), training=True)) * 0.0 + 1.0)

    model = deploy(LogicalDevices(num_clones=2), model_fn)
    # 6 x 2 ones: 0.5 * 12. Each output is the sum of 6 features, twice; the mean over 4 rows, or
    # in Keras 3 before 3.14 the sum.
    values = np.cos(np.arange(48)).reshape(2, 4, 6).sum(axis=2)
    rows_in_mean = 4 if averages_activity(library) else 1
    activity = [0.25 * 2 * np.abs(rows).sum() / rows_in_mean for rows in values]
    expected = 1.0 + np.mean(activity) + 0.5 * 12
    assert len(tf.get_collection(tf.GraphKeys.LOSSES)) == 4
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1
    with tf.Session(config=cpu_config(2)) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(model.total_loss) == pytest.approx(expected, rel=1e-6)


@BOTH
@pytest.mark.parametrize("by_hand", ["sum", "collection"])
def test_losses_that_model_fn_adds_itself_count_once(library, by_hand):
    """`model.losses` in a loss of `model_fn`, or in a collection, are not counted again."""

    def total(adds):
        with tf.Graph().as_default():
            features = _features()

            def model_fn():
                model = subclassed(library)
                loss = tf.reduce_sum(model(features(), training=True))
                if adds and by_hand == "sum":
                    loss += tf.add_n(model.losses)
                elif adds:
                    for each in model.losses:
                        tf.losses.add_loss(each)
                tf.losses.add_loss(loss)

            model = deploy(LogicalDevices(num_clones=2), model_fn)
            with tf.Session(config=cpu_config(2)) as session:
                session.run(tf.global_variables_initializer())
                return session.run(model.total_loss)

    assert total(adds=True) == pytest.approx(total(adds=False), rel=1e-6)


@BOTH
def test_inference_updates_nothing(library):
    """A model that is called with training=False has no update ops."""
    features = _features()
    create_clones(
        LogicalDevices(num_clones=2), lambda: subclassed(library)(features(), training=False)
    )
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []


@BOTH
@pytest.mark.parametrize("copy", [False, True])
def test_running_statistics_are_the_first_clones(library, copy):
    """A layer's own running mean moves by the first clone's batch, once a step."""
    golden = GOLDENS["slim_mlp"]
    model = MODELS[f"subclassed {'keras' if library is KERASES['keras'] else 'tf_keras'} inside"]
    config = LogicalDevices(num_clones=2, copy_clones=copy)
    run = harness.Replica(config, model, lambda: SGD(0.0))()
    [count] = [value for name, value in run.values.items() if name.endswith("/count")]
    [center] = [value for name, value in run.values.items() if name.endswith("/center")]
    assert count == 3  # steps
    kernel = 0.5 * np.sin(np.arange(1, 31)).reshape(6, 5)
    mean = np.tanh(golden.features[:12] @ kernel).mean(axis=0)
    expected = np.zeros(5)
    for step in range(1, 4):
        expected += (mean - expected) / (step + 1)
    np.testing.assert_allclose(center, expected, rtol=1e-5)


@BOTH
def test_a_frozen_layer_stays_as_it_is(library):
    """What a Keras model does not train is not trained; constraints hold after each step."""
    features = _features()

    def model_fn():
        layers = library.layers
        frozen = layers.Dense(3, kernel_initializer=formula, name="frozen")
        free = layers.Dense(
            2,
            kernel_initializer=formula,
            kernel_constraint=library.constraints.UnitNorm(),
            name="free",
        )
        model = library.Sequential([frozen, free])
        frozen.trainable = False
        tf.losses.add_loss(tf.reduce_mean(tf.square(model(features(), training=True) - 1.0)))

    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=SGD(0.1))
    kernels = {v.op.name.split("/")[-2]: v for v in tf.global_variables() if "kernel" in v.op.name}
    values = _run(model, kernels, steps=2)
    np.testing.assert_array_equal(
        values["frozen"], (0.5 * np.sin(np.arange(1, 19))).reshape(6, 3).astype(np.float32)
    )
    np.testing.assert_allclose(np.linalg.norm(values["free"], axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("by_step", [False, True])
def test_clones_drop_other_units(by_step):
    """The same batch in each clone meets another mask; each step has its own."""
    keras = KERASES["keras"]
    outputs = []

    def model_fn():
        layer = keras.layers.Dropout(0.5, seed=1)
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        outputs.append(layer(weight * tf.ones([8, 8]), training=True))
        tf.losses.add_loss(tf.reduce_mean(outputs[-1]))

    config = LogicalDevices(num_clones=2)
    function = random_by_step(model_fn) if by_step else model_fn
    model = deploy(config, function, optimizer=SGD(0.0))
    with tf.Session(config=cpu_config(2)) as session:
        session.run(tf.global_variables_initializer())
        masks = [session.run([model.train_op, *outputs])[1:] for _ in range(3)]
    flat = [mask.tobytes() for step in masks for mask in step]
    assert len(set(flat)) == 6


@BOTH
def test_a_layer_used_twice_updates_its_averages_twice(library):
    """The second call sees the averages of the first, as it would in eager mode."""
    features = np.cos(np.arange(24)).reshape(4, 6).astype(np.float32)
    layer = library.layers.BatchNormalization(momentum=0.5, name="norm")

    def model_fn():
        first = layer(tf.constant(features), training=True)
        tf.losses.add_loss(tf.reduce_mean(layer(10.0 + first, training=True)))

    model = deploy(LogicalDevices(), model_fn, optimizer=SGD(0.0))
    [mean] = [v for v in tf.global_variables() if v.op.name.endswith("moving_mean")]
    np.testing.assert_allclose(
        _run(model, mean), 0.5 * (0.5 * features.mean(axis=0)) + 0.5 * 10.0, rtol=1e-4
    )


@BOTH
def test_asynchronous_clones_update_with_each_step_of_theirs(library):
    """Each clone's step moves the averages, by that clone's batch."""
    batches = np.cos(np.arange(48)).reshape(2, 4, 6).astype(np.float32)
    parts = iter(batches)

    def model_fn():
        layer = library.layers.BatchNormalization(momentum=0.5, name="norm")
        tf.losses.add_loss(tf.reduce_mean(layer(tf.constant(next(parts)), training=True)))

    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=SGD(0.0), asynchronous=True)
    [mean] = [v for v in tf.global_variables() if v.op.name.endswith("moving_mean")]
    with tf.Session(config=cpu_config(2)) as session:
        session.run(tf.global_variables_initializer())
        expected = np.zeros(6)
        for i in (1, 0, 1):
            session.run(model.clone_updates[i].train_op)
            expected = 0.5 * expected + 0.5 * batches[i].mean(axis=0)
            np.testing.assert_allclose(session.run(mean), expected, rtol=1e-5, atol=1e-7)


@BOTH
@pytest.mark.parametrize("copy", [False, True])
def test_stages(library, copy):
    """Layers that model_fn places run there, and their updates change the same variables."""
    config = DeploymentConfig(
        num_clones=2, clone_on_cpu=True, devices_per_clone=2, copy_clones=copy
    )
    features = iter([tf.constant(each) for each in np.ones([2, 4, 6], np.float32)])

    def model_fn(batches):
        x = next(batches)
        with tf.device(config.stage_device(current_clone(), 0)):
            x = library.layers.Dense(5, kernel_initializer=formula, name="first")(x)
        with tf.device(config.stage_device(current_clone(), 1)):
            norm = library.layers.BatchNormalization(momentum=0.5, name="second")
            x = norm(x, training=True)
        tf.losses.add_loss(tf.reduce_mean(x))

    model = deploy(config, model_fn, [features], optimizer=SGD(0.1))
    graph = tf.get_default_graph()
    for clone in range(2):
        stages = {
            op.device
            for op in graph.get_operations()
            if op.name.startswith(f"clone_{clone}/") and "second" in op.name and op.type == "Mul"
        }
        assert config.stage_device(clone, 1) in stages
    means = [v for v in tf.global_variables() if v.op.name.endswith("moving_mean")]
    kernel = 0.5 * np.sin(np.arange(1, 31)).reshape(6, 5)
    [mean] = _run(model, means)
    np.testing.assert_allclose(mean, 0.5 * kernel.sum(axis=0), rtol=1e-4, atol=1e-6)


def test_a_second_deployment_shares_by_reuse():
    """An evaluation in the training's graph sees the trained variables if the scope reuses."""
    library = KERASES["keras"]
    golden = GOLDENS["slim_mlp"]

    def model_fn_of(training):
        def model_fn(features, labels):
            logits = mlp(library)(features, training=training)
            tf.losses.sparse_softmax_cross_entropy(labels, logits)

        return model_fn

    def feed(training, num_clones):
        one = type(golden)("any", golden.features, golden.labels, model_fn_of(training))
        return feed_clones(one, num_clones)

    deploy(LogicalDevices(num_clones=2), feed(True, 2), optimizer=harness.adam())
    number = len(tf.trainable_variables())
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        deploy(LogicalDevices(), feed(False, 1))
    assert len(tf.trainable_variables()) == number == 4
    assert NUM_CLASSES == 3

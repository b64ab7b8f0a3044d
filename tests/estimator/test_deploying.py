"""A `model_fn` of Estimator trains as a deployment, without a change of it."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, estimator, slim, training
from tests.estimator import models

_CLONES = {"num_clones": 2, "clone_on_cpu": True}


def train(model_fn, folder, batch_size=8, steps=6, *, config=None, **params):
    """The values after some steps, of the same examples whatever the size of a batch."""
    made = model_fn if config is None else estimator.deployed(model_fn, config)
    params = {"rate": 0.1, **params}
    trained = estimator.Estimator(made, str(folder), models.run_config(), params)
    trained.train(models.input_fn(batch_size), steps=steps)
    return models.values_of(trained)


def check_equal(found, expected):
    """Checks that two checkpoints hold the same variables, equal to 1e-6."""
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def check_clones(make, input_fn, folder, steps, settings=None):
    """Checks that two clones end where an estimator by itself ends on batches twice as large.

    `make` takes the folder and the configuration of an estimator, `input_fn` the size of a batch.
    """
    found = []
    clones = DeploymentConfig(**_CLONES, **(settings or {}))
    for name, batch_size, config in (("one", 8, None), ("two", 4, clones)):
        run_config = models.run_config(train_distribute=config)
        trained = make(model_dir=str(folder / name), config=run_config)
        trained.train(input_fn(batch_size), steps=steps)
        found.append(models.values_of(trained))
    check_equal(found[1], found[0])


@pytest.mark.parametrize("style", models.STYLES)
def test_clones_train_as_estimator_does(style, tmp_path):
    """Two clones on halves of a batch end where Estimator by itself ends on whole ones."""
    model_fn = models.model_fn_of(models.STYLES[style])
    expected = train(model_fn, tmp_path / "plain")
    found = train(model_fn, tmp_path / "two", 4, config=DeploymentConfig(**_CLONES))
    check_equal(found, expected)
    assert found["global_step"] == 6


@pytest.mark.one_mode
def test_an_estimator_within_another_one(tmp_path):
    """An estimator that is made with the `config` of another one has its deployment, too."""
    model_fn = models.model_fn_of(models.STYLES["minimize"])
    settings = models.run_config(train_distribute=DeploymentConfig(**_CLONES))
    outer = estimator.Estimator(model_fn, str(tmp_path / "two"), settings)
    for skip, config in ((0, outer.config), (3 * 8, outer.config.replace(save_summary_steps=2))):
        inner = estimator.Estimator(model_fn, config=config, params={"rate": 0.1})
        inner.train(models.input_fn(4, skip=skip), steps=3)
    check_equal(models.values_of(inner), train(model_fn, tmp_path / "plain"))


_EACH_WAY = pytest.mark.parametrize(
    ("batch_size", "settings"),
    [
        pytest.param(8, {"num_clones": 1}, id="one clone"),
        pytest.param(4, {"copy_clones": True}, id="copies"),
        pytest.param(4, {"all_reduce": True}, id="all-reduce"),
        pytest.param(2, {"accumulate_steps": 2}, id="accumulated"),
    ],
)


@pytest.mark.one_mode
@pytest.mark.parametrize("style", ["clipped", "scaled", "of two losses"])
@_EACH_WAY
def test_all_ways_train_as_estimator_does(batch_size, settings, style, tmp_path):
    """Each way ends where Estimator ends, gradients clipped by their norm, some of them rows; a
    loss scale of TensorFlow's changes once in a step; each optimizer has the loss that it got.
    """
    model_fn = models.model_fn_of(models.STYLES[style])
    expected = train(model_fn, tmp_path / "plain")
    config = DeploymentConfig(**{**_CLONES, **settings})
    check_equal(train(model_fn, tmp_path / "found", batch_size, config=config), expected)


@_EACH_WAY
@pytest.mark.parametrize("regularized", ["by its variable", "by hand"])
def test_regularization_counts_once(regularized, batch_size, settings, tmp_path):
    """`tf.losses.get_total_loss` has it once in each call of `model_fn`, on the variables there."""
    model_fn = models.model_fn_of(models.STYLES["minimize"])
    expected = train(model_fn, tmp_path / "plain", regularized=regularized)
    config = DeploymentConfig(**{**_CLONES, **settings})
    found = train(model_fn, tmp_path / "found", batch_size, config=config, regularized=regularized)
    check_equal(found, expected)


@_EACH_WAY
def test_estimators_of_tpus(batch_size, settings, tmp_path):
    """Without a TPU they are estimators, and their batches have a known size in the graph.

    Gradients of the embedding are rows; with clones there are more than those of one batch.
    """
    tpu, plain = estimator.tpu, models.model_fn_of(models.STYLES["clipped"])

    def model_fn(features, labels, mode, params):
        features["x"].shape.assert_is_compatible_with([params["batch_size"], 3])
        return plain(features, labels, mode, params)

    def input_fn(params):
        return models.input_fn(params["batch_size"], is_size_known=True)()

    def values(name, batch_size, config=None):
        trained = tpu.TPUEstimator(
            model_fn,
            str(tmp_path / name),
            models.run_config(tpu.RunConfig, train_distribute=config),
            {"rate": 0.1},
            use_tpu=False,
            train_batch_size=batch_size,
        )
        trained.train(input_fn, steps=6)
        return models.values_of(trained)

    expected = train(plain, tmp_path / "plain")
    check_equal(values("one", 8), expected)
    config = DeploymentConfig(**{**_CLONES, **settings})
    check_equal(values("found", batch_size, config), expected)


@pytest.mark.one_mode
def test_averages_by_all_reduce(tmp_path):
    """Averages that `model_fn` makes are those of one clone where each has its own variables."""
    model_fn = models.model_fn_of(models.STYLES["averaged"])
    config = DeploymentConfig(**_CLONES, all_reduce=True)
    found = train(model_fn, tmp_path / "found", 4, config=config)
    check_equal(found, train(model_fn, tmp_path / "plain"))
    assert "rows/ExponentialMovingAverage" in found


@pytest.mark.one_mode
@pytest.mark.parametrize("settings", [{}, {"all_reduce": True}], ids=str)
@pytest.mark.parametrize("style", ["minimize", "clipped"])
def test_norms_in_common(style, settings, tmp_path):
    """With `sync_batch_norm` a step is that of one clone that normalizes the whole batch."""

    def model_fn(features, labels, mode):
        x = slim.batch_norm(features["x"], decay=0.9, is_training=mode == "train", scope="norm")
        y = tf.squeeze(slim.fully_connected(x, 1, None, weights_initializer=start), 1)
        loss = tf.losses.mean_squared_error(labels, y)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = models.STYLES[style](tf.train.MomentumOptimizer(0.1, 0.9), loss)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def values(name, batch_size, config=None):
        made = model_fn if config is None else estimator.deployed(model_fn, config)
        trained = estimator.Estimator(made, str(tmp_path / name), models.run_config())
        trained.train(models.input_fn(batch_size), steps=4)
        return models.values_of(trained)

    start = tf.constant_initializer(0.1)
    config = DeploymentConfig(**_CLONES, sync_batch_norm=True, **settings)
    check_equal(values("found", 4, config), values("plain", 8))


@pytest.mark.one_mode
def test_a_run_goes_on_exactly(tmp_path):
    """Three steps and three more from their checkpoint end where six end, bit for bit."""
    model_fn = models.model_fn_of(models.STYLES["minimize"])
    config = models.run_config(train_distribute=DeploymentConfig(**_CLONES))
    parts, whole = (
        estimator.Estimator(model_fn, str(tmp_path / name), config, params={"rate": 0.1})
        for name in ("parts", "whole")
    )
    whole.train(models.input_fn(4), steps=6)
    parts.train(models.input_fn(4), steps=3)
    parts.train(models.input_fn(4, skip=3 * 8), steps=3)
    found, expected = models.values_of(parts), models.values_of(whole)
    assert sorted(found) == sorted(expected)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.mark.one_mode
def test_queues_scaffold_hooks_and_16_bits(tmp_path):
    """Clones take batches of a queue in turn; hooks and scaffold of the first clone's spec work."""
    seen, started = [], []

    def queue_fn():
        numbers = tf.train.range_input_producer(24, shuffle=False).dequeue()
        numbers = tf.train.batch([numbers], 4)
        return {"x": tf.gather(models.INPUTS, numbers)}, tf.gather(models.TARGETS, numbers) * 2.0

    def model_fn(features, labels, mode, params):
        spec = models.model_fn_of(models.STYLES["minimize"])(features, labels, mode, params)
        scaffold = tf.train.Scaffold(init_fn=lambda *_: started.append("init"))
        hook = tf.train.FeedFnHook(lambda: seen.append(0))
        hook = tf.train.FinalOpsHook(labels)
        seen.append(hook)
        return spec._replace(training_hooks=[hook], scaffold=scaffold)

    config = DeploymentConfig(**_CLONES, precision="bfloat16")
    trained = estimator.Estimator(
        estimator.deployed(model_fn, config),
        str(tmp_path),
        models.run_config(),
        params={"rate": 0.01},
    )
    trained.train(queue_fn, steps=2)
    assert started == ["init"]
    # The first clone's third batch is the fifth of the queue.
    np.testing.assert_allclose(seen[0].final_ops_values, models.TARGETS[16:20] * 2)


@pytest.mark.one_mode
def test_shapes_that_input_fn_sets(tmp_path):
    """Each clone has the shapes that `input_fn` has set, and TensorFlow does not infer."""

    def input_fn(batch_size):
        def read():
            features, labels = tf.data.make_one_shot_iterator(
                models.input_fn(batch_size)()
            ).get_next()
            x = tf.numpy_function(np.negative, [features["x"]], tf.float32)
            x.set_shape([None, 3])
            return {"x": x}, labels

        return read

    def model_fn(features, labels, mode, params):
        assert features["x"].shape.as_list() == [None, 3]
        return models.model_fn_of(models.STYLES["minimize"])(features, labels, mode, params)

    def make(**settings):
        return estimator.Estimator(model_fn, params={"rate": 0.1}, **settings)

    check_clones(make, input_fn, tmp_path, 4)


def _by_hand(_, loss):
    variables = tf.trainable_variables()
    gradients = tf.gradients(loss, variables)
    pairs = zip(map(tf.convert_to_tensor, gradients), variables, strict=True)
    steps = [variable.assign_sub(0.1 * gradient) for gradient, variable in pairs]
    return tf.group(*steps, tf.assign_add(tf.train.get_global_step(), 1))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("train_op_of", "reason"),
    [
        pytest.param(
            lambda optimizer, loss: (
                optimizer.minimize(loss),
                tf.assign_add(tf.train.get_global_step(), 1),
            )[1],
            "its train_op does not need the call of an optimizer",
            id="not needed",
        ),
        pytest.param(
            lambda optimizer, loss: optimizer.minimize(loss),
            "its train_op does not count the global step",
            id="not counted",
        ),
        pytest.param(
            lambda optimizer, loss: models.STYLES["minimize"](
                tf.train.SyncReplicasOptimizer(optimizer, 1), loss
            ),
            "SyncReplicasOptimizer is TensorFlow's own way",
            id="synchronous",
        ),
    ],
)
def test_why_a_train_op_is_not_taken_apart(train_op_of, reason):
    """A `train_op` that cannot be taken apart is refused in one line that says why."""
    made = estimator.deployed(models.model_fn_of(train_op_of), DeploymentConfig(**_CLONES))
    tf.train.create_global_step()
    features, labels = tf.data.make_one_shot_iterator(models.input_fn(4)()).get_next()
    with pytest.raises(estimator.NotDeployableError, match=reason):
        made(features=features, labels=labels, mode="train", params={"rate": 0.1})


@pytest.mark.one_mode
def test_two_losses_in_float16():
    """Gradients of two losses are computed before a loss is scaled, which float16 asks for."""
    config = DeploymentConfig(**_CLONES, precision="float16")
    made = estimator.deployed(models.model_fn_of(models.STYLES["of two losses"]), config)
    tf.train.create_global_step()
    features, labels = tf.data.make_one_shot_iterator(models.input_fn(4)()).get_next()
    with pytest.raises(
        estimator.NotDeployableError, match="without a loss scale; bfloat16 needs none"
    ):
        made(features=features, labels=labels, mode="train", params={"rate": 0.1})


@pytest.mark.one_mode
def test_what_is_not_taken_apart_trains_by_estimator(tmp_path, monkeypatch):
    """Where no optimizer is called Estimator trains by itself, and a line says so."""
    said = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *values: said.append(text % values))
    model_fn = models.model_fn_of(_by_hand)
    config = DeploymentConfig(**_CLONES)
    found = train(model_fn, tmp_path / "found", 4, 2, config=config)
    check_equal(found, train(model_fn, tmp_path / "plain", 4, 2))
    assert "model_fn is trained by Estimator alone: it calls no optimizer of tf.train" in said


@pytest.mark.parametrize(
    ("model_fn", "config", "message"),
    [
        (lambda features, mode: None, 2, "config must be a DeploymentConfig, got 2"),
        (lambda features: None, DeploymentConfig(), "must have an argument mode"),
    ],
    ids=["config", "mode"],
)
@pytest.mark.one_mode
def test_deployed_rejects(model_fn, config, message):
    """What is no deployment, or no `model_fn` of one, is refused at once."""
    with pytest.raises(ValueError, match=message):
        estimator.deployed(model_fn, config)


@pytest.mark.one_mode
def test_replicas_are_those_of_the_cluster():
    """A deployment that names other replicas than `RunConfig` has is refused."""
    config = DeploymentConfig(num_replicas=2, num_ps_tasks=1)
    with pytest.raises(ValueError, match="num_replicas must be 1, as TF_CONFIG says, got 2"):
        estimator.Estimator(
            lambda features, mode: None, config=models.run_config(train_distribute=config)
        )


def _table_model_fn(make_optimizer):
    def model_fn(features, labels, mode, config):
        del config
        table = tf.get_variable("table", [9, 2], initializer=tf.ones_initializer())
        # Other rows in each step.
        rows = (tf.cast(tf.abs(labels), tf.int64) + tf.train.get_global_step()) % 9
        loss = tf.reduce_mean(tf.square(tf.gather(table, rows) - features["x"][:, :2]))
        train_op = make_optimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


@pytest.mark.one_mode
def test_tables_by_rows(tmp_path):
    """A table that is trained by rows is in Estimator's checkpoints as Adam has it, and as many are
    kept as `RunConfig` says.
    """
    found = []
    for name, make in (("adam", tf.train.AdamOptimizer), ("rows", training.RowAdamOptimizer)):
        made = estimator.deployed(_table_model_fn(make), DeploymentConfig(clone_on_cpu=True))
        config = models.run_config(keep_checkpoint_max=1, save_checkpoints_steps=2)
        trained = estimator.Estimator(made, str(tmp_path / name), config)
        trained.train(models.input_fn(2), steps=6)
        found.append(models.values_of(trained))
        assert len(list((tmp_path / name).glob("model.ckpt-*.index"))) == 1
    own = ("/last", "/history", "/steps")
    rows = {name: value for name, value in found[1].items() if not name.endswith(own)}
    assert len(rows) == len(found[1]) - 3
    check_equal(rows, found[0])

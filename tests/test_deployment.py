"""`deploy` and `optimize_clones`: names, losses, updates, errors."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeployedModel,
    DeploymentConfig,
    create_clones,
    deploy,
    optimize_clones,
    slim,
)
from tests import harness
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, feed_clones

SGD = tf.train.GradientDescentOptimizer


def _weight(value=1.0):
    return tf.get_variable("weight", [], initializer=tf.constant_initializer(value))


def _square():
    """The loss w^2 / 2, whose gradient is w."""
    tf.losses.add_loss(tf.square(_weight()) / 2)


def _run(model, steps=1, fetches=()):
    return harness.run_steps(model, list(fetches), steps)


def _values(fetches):
    """What is fetched before there was a step."""
    with tf.Session(config=cpu_config()) as session:
        harness.start(session)
        return session.run(fetches)


@pytest.mark.parametrize("num_clones", [1, 2])
def test_names(num_clones):
    """Ops have the names that old code fetches them by."""
    model = deploy(LogicalDevices(num_clones=num_clones), _square, optimizer=SGD(0.1))
    assert isinstance(model, DeployedModel)
    assert model._fields == ("train_op", "summary_op", "total_loss", "clones")
    assert model.train_op.name == "train_op:0"
    assert model.total_loss.name == "total_loss:0"
    assert model.summary_op.name == "summary_op/summary_op:0"
    assert len(model.clones) == num_clones


def test_a_step_returns_the_loss_before_it(variable_kind):
    """With loss w^2 / 2, w = 1 and rate 1/2 the losses are 1/2, 1/8, 1/32."""
    losses, _ = _run(deploy(LogicalDevices(num_clones=2), _square, optimizer=SGD(0.5)), steps=3)
    assert losses == [1 / 2, 1 / 8, 1 / 32]


def test_the_global_step_counts_steps():
    """Each run of the train op adds one to the global step."""
    model = deploy(LogicalDevices(num_clones=3), _square, optimizer=SGD(0.1))
    assert _run(model, 4, [tf.train.get_global_step()])[1] == [4]
    assert tf.train.get_global_step().device == "/device:CPU:0"


def test_a_model_may_read_the_global_step():
    """A model that uses the step gets the one that is counted, by its usual name."""

    def model_fn():
        with tf.variable_scope("inside"):
            step = tf.train.get_or_create_global_step()
        tf.losses.add_loss(_weight() * tf.cast(step, tf.float32))

    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=SGD(0.5))
    assert [v.op.name for v in tf.global_variables()] == ["global_step", "weight"]
    # w is 1, 1 - 0 / 2, 1 - 1 / 2: the losses are 1 * 0, 1 * 1, 1/2 * 2.
    assert _run(model, 3)[0] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("num_clones", [1, 4])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_loss_outside_counts_once(num_clones, when):
    """A loss 3 w made outside `model_fn` adds 3 w, with one clone as with four.

    `optimize_clones` sees it when it is made between clones and optimizer, too.
    """

    def outside():
        tf.losses.add_loss(3 * _weight())

    config = LogicalDevices(num_clones=num_clones)
    if when == "before":
        outside()
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            model = deploy(config, _square, optimizer=SGD(0.5))
        total, grads = model.total_loss, None
    else:
        clones = create_clones(config, _square)
        with tf.variable_scope("", reuse=True):
            outside()
        total, grads = optimize_clones(clones, SGD(0.5))
    assert _values(total) == 1 / 2 + 3
    if grads is not None:
        assert _values(grads[0][0]) == 1 + 3
    else:
        assert _run(model, 1, tf.trainable_variables())[1] == [1 - (1 + 3) / 2]


@pytest.mark.parametrize(
    ("model_fn", "message"),
    [
        pytest.param(
            _weight, r"at least one loss to tf.GraphKeys.LOSSES .* got none", id="no loss"
        ),
        pytest.param(
            lambda: tf.losses.add_loss(tf.ones([3], name="per_example")),
            r"a scalar, got .*per_example:0 of shape \(3,\)",
            id="a loss per example",
        ),
    ],
)
@pytest.mark.parametrize("optimizer", [None, SGD(0.1)], ids=["evaluation", "training"])
@pytest.mark.parametrize("num_clones", [1, 2])
def test_wrong_losses(model_fn, message, optimizer, num_clones):
    """A model gets the same answer with and without an optimizer."""
    with pytest.raises(ValueError, match=message):
        deploy(LogicalDevices(num_clones=num_clones), model_fn, optimizer=optimizer)


def test_nothing_to_optimize():
    """Without clones, or with a constant loss, there is nothing to optimize."""
    with pytest.raises(ValueError, match="clones must hold at least one clone, got none"):
        optimize_clones([], SGD(0.1))

    def constant():
        _weight()
        tf.losses.add_loss(tf.constant(1.0))

    with pytest.raises(ValueError, match="depend on at least one variable to train, got none"):
        deploy(LogicalDevices(), constant, optimizer=SGD(0.1))


def test_variables_to_train():
    """Only the variables listed are trained."""

    def model_fn():
        a, b = _weight(), tf.get_variable("other", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(a + b)

    create_clones(LogicalDevices(), model_fn)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        model = deploy(
            LogicalDevices(num_clones=2),
            model_fn,
            optimizer=SGD(0.5),
            variables_to_train=tf.trainable_variables()[:1],
        )
    # Both deployments have the loss; each counts its own.
    assert _run(model, 1, tf.trainable_variables()) == ([2.0], [0.5, 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"variables_to_train": []},
            "variables_to_train must name at least one variable, got none",
        ),
        ({"clip_norm": 0.0}, "clip_norm must be more than 0, got 0.0"),
        ({"optimizer": "sgd"}, "optimizer must be a tf.compat.v1.train.Optimizer .* builtins.str"),
    ],
)
def test_deploy_rejects(options, message):
    """A bad option names itself, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        deploy(LogicalDevices(), _square, **{"optimizer": SGD(0.1), **options})


def test_a_variable_without_gradient_is_named(caplog):
    """A variable that no loss depends on is reported once, not once per clone."""

    def model_fn():
        _square()
        tf.get_variable("unused", [2])

    deploy(LogicalDevices(num_clones=3), model_fn, optimizer=SGD(0.1))
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["not trained, for no loss depends on them: unused"]


def _counter(name):
    return tf.get_variable(name, [], initializer=tf.zeros_initializer(), trainable=False)


@pytest.mark.parametrize("num_clones", [1, 3])
def test_update_ops(num_clones):
    """The first clone's update ops run, and those made outside; the other clones' do not."""
    outside = _counter("outside")
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, outside.assign_add(1.0))

    def model_fn():
        _square()
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, _counter("inside").assign_add(1.0))

    extra = _counter("extra")
    model = deploy(
        LogicalDevices(num_clones=num_clones),
        model_fn,
        optimizer=SGD(0.1),
        update_ops=[extra.assign_add(1.0)],
    )
    inside = next(v for v in tf.global_variables() if v.op.name == "inside")
    assert _run(model, 2, [inside, outside, extra])[1] == [2.0, 2.0, 2.0]


def test_functions_in_update_ops_see_the_new_weights(variable_kind):
    """An update given as a function reads the variables after the step.

    With rate 1/2 the weight goes 1, 1/2, 1/4; an average with decay 1/2 that starts
    at 1 goes 3/4, 1/2.
    """
    averages = tf.train.ExponentialMovingAverage(0.5)
    model = deploy(
        LogicalDevices(num_clones=2),
        _square,
        optimizer=SGD(0.5),
        update_ops=[lambda: averages.apply(tf.trainable_variables())],
    )
    average = averages.average(tf.trainable_variables()[0])
    assert _run(model, 2, [average])[1] == [0.5]


def test_given_regularization_is_used():
    """`regularization_losses` takes the place of the collection, empty for none."""

    def model_fn():
        tf.get_variable("w", [], regularizer=lambda w: 5 * w, initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.constant(1.0))

    totals = []
    for losses in (None, [], [tf.constant(7.0)]):
        with tf.variable_scope(f"model_{len(totals)}"):
            options = {"regularization_losses": losses}
            totals.append(deploy(LogicalDevices(num_clones=2), model_fn, **options).total_loss)
    assert _values(totals) == [1 + 5, 1, 1 + 7]


@pytest.mark.parametrize(
    "settings",
    [
        {"num_clones": 1},
        {"num_clones": 4},
        {"num_clones": 2, "copy_clones": True},
        {"num_clones": 2, "all_reduce": True},
        {"num_clones": 2, "accumulate_steps": 2},
    ],
    ids=str,
)
def test_regularization_that_each_clone_adds(settings):
    """Of variables it counts once, of activations it is the mean over clones, whatever they are.

    With x of 1 to 4 and w = 1 the mean of w x is 2.5 and that of (w x)^2 7.5.
    """

    def model_fn(parts):
        weight = tf.get_variable(
            "w", [], regularizer=lambda w: 5 * w, initializer=tf.ones_initializer()
        )
        values = weight * next(parts)
        tf.losses.add_loss(tf.reduce_mean(values))
        tf.losses.add_loss(3 * weight, tf.GraphKeys.REGULARIZATION_LOSSES)
        squares = 2 * tf.reduce_mean(tf.square(values))
        tf.losses.add_loss(squares, tf.GraphKeys.REGULARIZATION_LOSSES)

    config = LogicalDevices(**settings)
    parts = iter(tf.split(tf.constant([1.0, 2.0, 3.0, 4.0]), config.batches_per_step))
    model = deploy(config, model_fn, [parts], optimizer=SGD(0.01))
    losses, [weight] = _run(model, 1, tf.trainable_variables()[:1])
    assert losses == [2.5 + 3 + 2 * 7.5 + 5]
    assert weight == pytest.approx(1 - 0.01 * (2.5 + 3 + 4 * 7.5 + 5))


@pytest.mark.parametrize("num_clones", [1, 2])
def test_training_and_evaluation_in_one_graph(num_clones):
    """A second deployment that reuses the variables has the same loss, counted once."""
    golden = GOLDENS["slim_mlp"]
    config = LogicalDevices(num_clones=num_clones)
    training = deploy(config, feed_clones(golden, num_clones), optimizer=SGD(0.1))
    with tf.variable_scope("", reuse=True):
        evaluation = deploy(config, feed_clones(golden, num_clones))
    assert evaluation.train_op is None
    with tf.Session(config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        before = session.run([training.total_loss, evaluation.total_loss])
        session.run(training.train_op)
        after = session.run([training.total_loss, evaluation.total_loss])
        summary = tf.Summary.FromString(session.run(evaluation.summary_op))
    assert before[0] == before[1]
    assert after[0] == after[1] < before[0]
    tags = [value.tag for value in summary.value]
    assert len(tags) == len(set(tags)) == (2 if num_clones == 1 else 4)


def test_regularization_of_another_model_is_left_out():
    """Two models in a graph that share no variable do not regularize each other."""

    def model_fn():
        weight = tf.get_variable(
            "w", [], regularizer=lambda w: 5 * w, initializer=tf.ones_initializer()
        )
        tf.losses.add_loss(2 * weight)

    models = []
    for name in ("first", "second"):
        with tf.variable_scope(name):
            models.append(deploy(LogicalDevices(), model_fn, optimizer=SGD(0.5)))
    assert _values([m.total_loss for m in models]) == [7.0, 7.0]
    assert _run(models[1], 1, tf.trainable_variables())[1] == [1.0, 1 - 7 / 2]


@pytest.mark.parametrize("summarize_gradients", [False, True])
@pytest.mark.parametrize("optimizer", [None, SGD(0.1)], ids=["evaluation", "training"])
@pytest.mark.parametrize("num_ps_tasks", [0, 2])
def test_no_summary_is_on_a_gpu(optimizer, summarize_gradients, num_ps_tasks, graph):
    """No summary op is placed on a GPU, whoever made it."""

    def model_fn():
        _square()
        tf.summary.scalar("mine", 1.0)

    config = DeploymentConfig(num_clones=2, num_ps_tasks=num_ps_tasks)
    deploy(config, model_fn, optimizer=optimizer, summarize_gradients=summarize_gradients)
    summaries = [op for op in graph.get_operations() if "Summary" in op.type]
    assert len(summaries) >= 5
    assert {op.device for op in summaries} == {config.optimizer_device()}


def test_summary_values():
    """The summaries hold the losses, the gradients and what the model and the caller added."""

    def model_fn():
        tf.losses.add_loss(3 * _weight())
        tf.summary.scalar("mine", 5.0)

    extra = tf.summary.scalar("extra", 6.0, collections=[])
    model = deploy(
        LogicalDevices(num_clones=2),
        model_fn,
        optimizer=SGD(0.1),
        summarize_gradients=True,
        summaries=[extra],
    )
    summary = tf.Summary.FromString(_values(model.summary_op))
    values = {v.tag: v.simple_value for v in summary.value if v.HasField("simple_value")}
    assert values == {
        "total_loss_1": 3.0,  # TensorFlow's tag, as the op `total_loss` exists already
        "Losses/clone_0/clone_loss": 1.5,
        "Losses/clone_1/clone_loss": 1.5,
        "weight/gradient_norm": 3.0,
        "clone_0/mine": 5.0,
        "extra": 6.0,
    }
    [histogram] = [v for v in summary.value if v.HasField("histo")]
    assert (histogram.tag, histogram.histo.sum) == ("weight/gradient", 3.0)


def test_model_without_summaries():
    """Losses are always summarized, so `summary_op` exists even for the barest model."""
    model = deploy(LogicalDevices(), lambda: tf.losses.add_loss(tf.constant(2.0)))
    summary = tf.Summary.FromString(_values(model.summary_op))
    assert [(v.tag, v.simple_value) for v in summary.value] == [("total_loss_1", 2.0)]


def test_optimize_clones_passes_arguments_on():
    """Keyword arguments reach `compute_gradients`."""
    clones = create_clones(LogicalDevices(num_clones=2), lambda: (_square(), _counter("c")))
    variables = [v for v in tf.global_variables() if v.op.name == "weight"]
    total_loss, grads = optimize_clones(
        clones, SGD(0.1), var_list=variables, colocate_gradients_with_ops=True
    )
    assert total_loss.shape == []
    assert [variable for _, variable in grads] == variables


# tf-slim closes the events while its summary thread may still be at work.
@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter:UserWarning")
def test_slim_learning_trains_it(tmp_path):
    """TF-Slim's own loop takes the train op and the summary op."""
    model = deploy(LogicalDevices(num_clones=2), _square, optimizer=SGD(0.5))
    loss = slim.learning.train(
        model.train_op,
        str(tmp_path),
        summary_op=model.summary_op,
        number_of_steps=3,
        session_config=cpu_config(),
        save_summaries_secs=0.1,
    )
    assert loss == 1 / 32
    assert (tmp_path / "model.ckpt-3.index").exists()


def test_monitored_session_trains_it(tmp_path):
    """TensorFlow's monitored session takes it, too."""
    model = deploy(LogicalDevices(num_clones=2), _square, optimizer=SGD(0.5))
    config = cpu_config()
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), config=config) as session:
        assert [session.run(model.train_op) for _ in range(3)] == [1 / 2, 1 / 8, 1 / 32]


@pytest.mark.slow
@pytest.mark.one_mode
def test_training_lowers_the_loss_of_each_golden():
    """Every golden model learns something in 40 steps."""
    for golden in GOLDENS.values():
        losses = harness.one_clone(golden, num_clones=2, steps=40).losses
        assert np.isfinite(losses).all()
        assert losses[-1] < losses[0], golden.name

"""Laws that hold for every golden model, optimizer, way, feature and kind of variable."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, slim
from model_deploy.training import OptimizerOptions, build_optimizer
from tests import clusters, harness, laws
from tests.goldens import (
    BATCH_LAW_GOLDENS,
    GOLDENS,
    NUM_EXAMPLES,
    LogicalDevices,
    cpu_config,
    feed_clones,
)

# In a few seconds each; the cells that are quick witness for all.
_QUICK = ("plain", "clipped", "parts")


def _cases(cells, is_quick):
    """Parameters for cells that end with the kind of variables; those that are slow say so."""
    return [
        pytest.param(
            *cell,
            id="-".join(cell),
            marks=[
                *([] if is_quick(*cell) else [pytest.mark.slow]),
                *([pytest.mark.both_modes] if _has_loops_of_both(cell) else []),
            ],
        )
        for cell in cells
    ]


def _has_loops_of_both(cell):
    """Whether a model has one kind of variables, and in each mode loops of another kind."""
    return any("recurrent tf_keras" in each for each in cell)


def _is_quick(way, feature, name, kind):
    del kind
    return name in GOLDENS and feature in _QUICK and "repl" not in way


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("way", "feature", "name", "variable_kind"),
    _cases(laws.CELLS, _is_quick),
    indirect=["variable_kind"],
)
def test_training_ends_where_that_of_one_clone_ends(way, feature, name, variable_kind):
    """Losses, weights, slots and averages are those of one clone."""
    laws.check(way, laws.FEATURES[feature], name, variable_kind)


def test_every_two_meet():
    """The cells have every way, feature, form of a model, Keras and kind with every other that it
    can be had with. That is seen here without the function that chooses them.
    """
    could, meet = (
        {
            pair
            for cell in cells
            for pair in itertools.combinations(enumerate(laws.parts_of(*cell)), 2)
        }
        for cells in (
            [
                cell
                for cell in itertools.product(laws.WAYS, laws.FEATURES, laws.MODELS, laws.KINDS)
                if laws.why_not(*cell) is None
            ],
            laws.CELLS,
        )
    )
    assert meet == could
    assert len(laws.CELLS) == len(set(laws.CELLS))


OPTIMIZERS = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "ftrl",
    "lamb",
    "lars",
    "momentum",
    "nesterov",
    "rmsprop",
    "sgd",
]
# With a small epsilon a first step is the sign of the gradient, and where gradients all but cancel
# that of a rounding error. With that of Adam's options the step is as exact as the gradient.
SETTINGS = {"adamw_epsilon": 1.0, "lamb_epsilon": 1.0}
DIVISIONS = {
    "four clones": {"num_clones": 4},
    "parts": {"num_clones": 2, "accumulate_steps": 2},
    "servers": {"num_clones": 2, "num_ps_tasks": 2},
    "all-reduce": {"num_clones": 2, "all_reduce": True},
    "replicas": {"num_replicas": 2, "num_ps_tasks": 2, "replicas_to_aggregate": 2},
}
# Of an optimizer's gradients: dense, sparse, and sums of both.
_OF_GRADIENTS = ["slim_mlp", "embedding", "tied_embedding"]
_OPTIMIZER_CELLS = laws.covering(
    [OPTIMIZERS, DIVISIONS, _OF_GRADIENTS, laws.KINDS], lambda *cell: True
)


def _make(optimizer):
    return lambda: build_optimizer(0.1, OptimizerOptions(optimizer=optimizer, **SETTINGS))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("optimizer", "division", "name", "variable_kind"),
    _cases(_OPTIMIZER_CELLS, lambda optimizer, division, name, kind: division == "four clones"),
    indirect=["variable_kind"],
)
def test_optimizers_see_the_whole_batch(optimizer, division, name, variable_kind):
    """The optimizer's own state moves once per update, by the clipped mean of all gradients."""
    golden, make = GOLDENS[name], _make(optimizer)
    config = LogicalDevices(**DIVISIONS[division])
    expected = harness.one_clone(golden, make, clip_norm=0.5)
    options = {"make_optimizer": make, "clip_norm": 0.5}
    if division == "replicas":
        for run in harness.train_replicas(config, golden, **options):
            harness.assert_close(run.values, expected.values, slots=1e-5)
        return
    [target] = clusters.workers(1) if config.num_ps_tasks else [""]
    run = harness.Replica(config, golden, **options)(target)
    harness.assert_same(run, expected, slots=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("num_clones", "steps"), [(3, 1), (8, 1), (1, 2), (1, 8), (2, 3), (4, 2)], ids=str
)
def test_any_division_trains_as_one_does(num_clones, steps):
    """n clones with k batches each end where one clone on the whole batch ends."""
    golden = GOLDENS["tied_embedding"]
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=steps)
    harness.assert_same(harness.Replica(config, golden)(), harness.one_clone(golden))


@pytest.mark.parametrize("settings", [{}, {"all_reduce": True, "num_clones": 2}], ids=str)
def test_clipping_changes_what_it_should(settings):
    """The norm of the table clips the gradients of every golden model."""
    config = LogicalDevices(**settings)
    for golden in (GOLDENS[name] for name in BATCH_LAW_GOLDENS):
        clipped = harness.Replica(config, golden, clip_norm=0.005)()
        with pytest.raises(AssertionError):
            harness.assert_same(clipped, harness.one_clone(golden))


@pytest.mark.gpu
def test_linear_model_by_hand(variable_kind):
    """One step of a linear model is exact, in numbers that a float holds exactly.

    The examples are x = 1, 2, 3, 4 with y = 2 x, the start is w = 0, the loss the mean
    of (w x - y)^2.  Its gradient is the mean of -2 x y = -4 x^2, so -4 * 30 / 4 = -30,
    and a step at rate 1/64 gives w = 30 / 64.
    """
    parts = iter([([1.0, 2.0], [2.0, 4.0]), ([3.0, 4.0], [6.0, 8.0])])

    def model_fn():
        x, y = map(tf.constant, next(parts))
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.mean_squared_error(y, weight * x)

    optimizer = harness.sgd(1 / 64)
    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=optimizer)
    with tf.Session(config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(model.train_op) == 4 * 30 / 4  # mean of y^2 = 4 x^2
        assert session.run(tf.trainable_variables()) == [30 / 64]


@pytest.mark.gpu
@pytest.mark.parametrize("num_clones", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", list(GOLDENS))
def test_total_loss_is_mean_of_clones_plus_regularization(name, num_clones):
    """The reported loss is the mean of what clones report, plus regularization once."""
    golden = GOLDENS[name]
    model = deploy(LogicalDevices(num_clones=num_clones), feed_clones(golden, num_clones))
    regularization = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert bool(regularization) == golden.regularized
    with tf.Session(config=cpu_config(num_clones)) as session:
        session.run(tf.global_variables_initializer())
        total, losses, regularization = session.run(
            [model.total_loss, tf.get_collection(tf.GraphKeys.LOSSES), regularization]
        )
        weights = [
            session.run(v) for v in tf.trainable_variables() if v.op.name.endswith("weights")
        ]
    assert len(losses) == num_clones
    assert total == pytest.approx(np.mean(losses) + sum(regularization), rel=1e-6)
    if name == "slim_mlp":  # l2_regularizer(s) is s * sum(w^2) / 2
        by_hand = sum(0.01 / 2 * np.sum(w**2) for w in weights)
        assert sum(regularization) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize(("num_clones", "steps"), [(1, 1), (2, 1), (4, 1), (1, 4), (2, 2)])
def test_batch_norm_statistics_are_the_first_clones(num_clones, steps, variable_kind):
    """Moving statistics move by the first clone's first batch alone, as the documentation says."""
    golden = GOLDENS["batch_norm"]
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=steps)
    values = harness.Replica(config, golden)().values
    first = golden.features[: NUM_EXAMPLES // (num_clones * steps)]
    mean, variance = np.zeros(3), np.ones(3)
    for _ in range(harness.STEPS):  # decay 0.9; the fused kernel gives the unbiased variance
        mean = 0.9 * mean + 0.1 * first.mean(axis=0)
        variance = 0.9 * variance + 0.1 * first.var(axis=0, ddof=1)
    np.testing.assert_allclose(values["norm/moving_mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(values["norm/moving_variance"], variance, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("fields", "updates"),
    [
        ({}, 1),
        ({"num_clones": 4}, 1),
        ({"accumulate_steps": 4}, 1),
        ({"num_clones": 2, "accumulate_steps": 2}, 1),
        ({"num_clones": 2, "asynchronous": True}, 2),
        ({"num_clones": 2, "all_reduce": True}, 2),
    ],
    ids=str,
)
def test_sparse_gradients_reach_the_optimizer_sparse(fields, updates, variable_kind):
    """A gradient that is sparse in each clone, and part, is sparse in the sum."""
    spy = harness.Spy(0.1)
    harness.Replica(LogicalDevices(**fields), GOLDENS["embedding"], lambda: spy)
    sparse = [v.op.name.rpartition("/")[2] for g, v in spy.seen if isinstance(g, tf.IndexedSlices)]
    assert sparse == ["table"] * updates
    assert len(spy.seen) == 3 * updates


def test_goldens_name_their_sparse_variables():
    """The table of goldens says which variables have sparse gradients."""
    for name, golden in GOLDENS.items():
        with tf.Graph().as_default():
            feed_clones(golden, 1)()
            loss = slim.losses.get_total_loss()
            gradients = tf.gradients(loss, tf.trainable_variables())
            sparse = tuple(
                variable.op.name
                for gradient, variable in zip(gradients, tf.trainable_variables(), strict=True)
                if isinstance(gradient, tf.IndexedSlices)
                and name != "tied_embedding"  # a sum of both kinds counts as dense
            )
            assert sparse == golden.sparse, name

"""Gradients and variables cross process borders in 16 bits, and are summed in 32.

That golden models train as well is in `tests/laws.py`.
"""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, describe, graph_walk
from tests import clusters, harness, laws
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula

SGD = tf.train.GradientDescentOptimizer
STEPS = 3
# Largest relative error of a rounding to bfloat16, which has 8 binary digits.
ROUNDING = 2.0**-8
_FIELDS = {
    "asynchronous": {"num_ps_tasks": 2},
    "synchronous": {"num_ps_tasks": 2},
    "all_reduce": {"all_reduce": True},
}
WAYS = tuple(_FIELDS)


def _rounded(values):
    return np.asarray(values, tf.bfloat16.as_numpy_dtype).astype(np.float32)


def _train(way, precision, model_fns, *, steps=STEPS, rate=0.5, **fields):
    """The replicas, one for each model function, after their training."""
    count = len(model_fns)
    fields.update(_FIELDS[way], num_replicas=count, wire_precision=precision)
    if way == "synchronous":
        fields.setdefault("replicas_to_aggregate", count)
    return harness.train_replicas(
        LogicalDevices(**fields),
        model_fns,
        lambda: SGD(rate),
        steps=steps,
        turns=[*range(count)] * steps,
    )


def _towards_targets(row):
    """Variables, big, small, in parts and sparse, that steps bring halfway to integers.

    So all values and gradients have few binary digits.
    """

    def model_fn():
        for name, shape, partitioner in (
            ("big", [200, 100], None),
            ("small", [3], None),
            ("scalar", [], None),
            ("parts", [4, 3], tf.fixed_size_partitioner(2)),
        ):
            variable = tf.get_variable(
                name, shape, initializer=tf.zeros_initializer(), partitioner=partitioner
            )
            value = tf.convert_to_tensor(variable)
            goal = tf.reshape(tf.range(value.shape.num_elements()) % 4, value.shape)
            tf.losses.add_loss(tf.nn.l2_loss(value - tf.cast(goal, tf.float32)))
        table = tf.get_variable("table", [5, 2], initializer=tf.zeros_initializer())
        rows = tf.nn.embedding_lookup(table, tf.constant([0, 0, row], tf.int64))
        tf.losses.add_loss(tf.nn.l2_loss(rows - 1.0))

    return model_fn


CLONES = {
    "one": {},
    "called": {"num_clones": 2},
    "copied": {"num_clones": 2, "copy_clones": True},
    "accumulated": {"accumulate_steps": 2},
}


def _has_copies(way, clones, kind):
    """Neither all-reduce nor asynchronous clones copy."""
    del kind
    kept = ("called",) if way == "all_reduce" else CLONES
    return clones in kept and (clones != "copied" or way in ("asynchronous", "synchronous"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "clones", "variable_kind"),
    laws.covering([WAYS, CLONES, laws.KINDS], _has_copies),
    indirect=["variable_kind"],
)
def test_values_of_few_digits_train_to_the_same_bits(way, clones, variable_kind):
    """What 16 bits can hold is not changed: losses and variables are those of 32 bits."""
    model_fns = [_towards_targets(row) for row in (1, 2)]
    exact, narrow = (
        _train(way, precision, model_fns, **CLONES[clones]) for precision in ("float32", "bfloat16")
    )
    for run, expected in zip(narrow, exact, strict=True):
        harness.assert_equal(run, expected)
        assert run.losses[-1] < run.losses[0]


def test_backups():
    """With one gradient per update a replica alone goes on: 3 steps leave 1/8 of the way."""
    config = LogicalDevices(
        num_replicas=2, num_ps_tasks=2, wire_precision="bfloat16", replicas_to_aggregate=1
    )
    targets = clusters.workers(2)
    values = harness.Replica(config, _towards_targets(1), lambda: SGD(0.5))(targets[0]).values
    np.testing.assert_array_equal(values["small"], np.array([0, 1, 2]) * 7 / 8)
    np.testing.assert_array_equal(values["table"][[1, 2]], [[7 / 8] * 2, [0, 0]])


def _slopes(seed, shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _slopes_model(seed):
    """Gradients are given numbers: of a big variable, a small one and of rows of a table."""

    def model_fn():
        for name, shape in (("big", [200, 100]), ("small", [7]), ("other", [9])):
            variable = tf.get_variable(name, shape, initializer=tf.zeros_initializer())
            tf.losses.add_loss(tf.reduce_sum(variable * _slopes(seed, shape)))
        table = tf.get_variable("table", [5, 300], initializer=tf.zeros_initializer())
        rows = tf.nn.embedding_lookup(table, tf.constant([seed, 4]))
        tf.losses.add_loss(tf.reduce_sum(rows * _slopes(seed, [2, 300])))

    return model_fn


@pytest.mark.parametrize("way", WAYS)
def test_each_gradient_is_rounded_once(way):
    """The update is made of the gradients of two replicas, each rounded to bfloat16.

    By all-reduce their sum is rounded once more.  Nothing else is.
    """
    model_fns = [_slopes_model(0), _slopes_model(1)]
    values = _train(way, "bfloat16", model_fns, steps=1, rate=1.0)[0].values
    share = 1 if way == "asynchronous" else 0.5
    for name, shape in (("big", [200, 100]), ("small", [7]), ("other", [9])):
        slopes = [_slopes(seed, shape) for seed in (0, 1)]
        total = _rounded(slopes[0]) + _rounded(slopes[1])
        if way == "all_reduce":
            total = _rounded(total)
        np.testing.assert_array_equal(values[name], -share * total, err_msg=name)
        largest = ROUNDING * (np.abs(slopes[0]) + np.abs(slopes[1]) + np.abs(total))
        assert np.all(np.abs(total - slopes[0] - slopes[1]) <= largest)
        assert np.any(total != slopes[0] + slopes[1])
    rows = [_rounded(_slopes(seed, [2, 300])) for seed in (0, 1)]
    expected = [rows[0][0], rows[1][0], rows[0][1] + rows[1][1]]
    np.testing.assert_array_equal(values["table"][[0, 1, 4]], -share * np.array(expected))
    assert not values["table"][[2, 3]].any()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["synchronous", "all_reduce"])
def test_sums_are_made_in_32_bits(way):
    """256 + 1 + 1 is 258, of dense and sparse gradients; in bfloat16 it would stay at 256."""

    def with_slope(slope):
        def model_fn():
            big = tf.get_variable("big", [200, 100], initializer=tf.zeros_initializer())
            small = tf.get_variable("small", [2], initializer=tf.zeros_initializer())
            rows = tf.nn.embedding_lookup(small, tf.constant([1]))
            tf.losses.add_loss(slope * (tf.reduce_sum(big) + tf.reduce_sum(rows)))

        return model_fn

    model_fns = [with_slope(slope) for slope in (256, 1, 1)]
    for run in _train(way, "bfloat16", model_fns, steps=1, rate=3.0):
        np.testing.assert_array_equal(run.values["big"], np.full([200, 100], -258.0))
        np.testing.assert_array_equal(run.values["small"], [0.0, -258.0])


def _worker_session():
    """A session of a worker, in which all variables start anew."""
    [target] = clusters.workers(1)
    session = tf.Session(target, config=cpu_config(2))
    session.run(tf.global_variables_initializer())
    return session


def test_what_update_ops_write_back_is_exact(variable_kind):
    """Averages that the worker computes from what it reads keep all their digits.

    The weight and its average start from 1/3; the gradient is 0.  So is what is written back
    to the weight itself, 1/3 times 3/4 and that times 3/4.
    """
    third = np.float32(1 / 3)
    start = tf.constant_initializer(third)
    weight_seen = []

    def model_fn():
        weight = tf.get_variable("weight", [2], initializer=start)
        average = tf.get_variable("average", [2], initializer=start, trainable=False)
        other = tf.get_variable("other", [2], initializer=start)
        with tf.device("/job:worker/device:CPU:0"):
            new_average = 0.5 * average + 0.5 * weight
            less = other * 0.75
        for update in (tf.assign(average, new_average), tf.assign(other, less)):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        weight_seen.append(weight * 1.0)
        tf.losses.add_loss(0.0 * tf.reduce_sum(weight_seen[-1] * other * average))

    config = LogicalDevices(num_clones=2, num_ps_tasks=2, wire_precision="bfloat16")
    model = deploy(config, model_fn, optimizer=SGD(1.0))
    with _worker_session() as session:
        [seen, _] = session.run([weight_seen[0], model.train_op])
        session.run(model.train_op)
        values = session.run({v.op.name: v for v in tf.global_variables()})
    np.testing.assert_array_equal(seen, _rounded([third] * 2))  # what the loss is made of
    np.testing.assert_array_equal(values["weight"], [third] * 2)
    np.testing.assert_array_equal(values["average"], [third] * 2)
    np.testing.assert_array_equal(values["other"], [third * np.float32(0.75**2)] * 2)


# The replica that reads the average, or that takes from it the difference which it has read before.
_ORDERS = {
    "asynchronous": [(0, 0, 1, 1) * STEPS],
    "all_reduce": [(0, 0) * STEPS],
    "synchronous": [
        [event in second for event in range(4 * STEPS)]
        for second in itertools.combinations(range(4 * STEPS), 2 * STEPS)
    ],
}


def _moving_average(order, means):
    """What is left of 0 after all differences in this order: decay 0.9."""
    average, read = np.zeros(3), {}
    for replica in order:
        if replica in read:
            average = average - 0.1 * (read.pop(replica) - means[replica])
        else:
            read[replica] = average
    return average


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_batch_norm_statistics_are_exact(way):
    """They follow the means of both replicas' batches as in 32 bits, in an order that can be."""
    halves = np.split(GOLDENS["batch_norm"].features, 2)
    means = [half.mean(axis=0) for half in halves]
    if way == "all_reduce":
        means = [np.mean(means, axis=0)]
    possible = np.array([_moving_average(order, means) for order in _ORDERS[way]])
    for run in _train(way, "bfloat16", [GOLDENS["batch_norm"]] * 2):
        distances = np.abs(possible - run.values["norm/moving_mean"]).max(axis=1)
        assert distances.min() < 1e-7


def _crossing(model):
    """What a step moves between jobs: tensors, by their names and the devices that get them."""
    ends = [update.train_op.op for update in model.clone_updates] or [model.train_op.op]
    return {
        (tensor.name, op.device): tensor
        for op in graph_walk.ancestors(ends, control_inputs=True)
        for tensor in op.inputs
        if tensor.dtype.base_dtype != tf.resource and _place(tensor.op) != _place(op)
    }


def _place(op):
    """The job of an op, which is that of the resource that it uses."""
    handles = [tensor.op for tensor in op.inputs if tensor.dtype == tf.resource]
    return tf.DeviceSpec.from_string(handles[0].device if handles else op.device).job


def _model_of_all_kinds():
    """Big, small, sparse and used twice; in 64 bits; whole numbers; not trained."""
    _towards_targets(1)()
    weights = tf.get_variable("weights", [200, 100])
    for loss in (tf.matmul(tf.ones([3, 200]), weights), tf.square(weights)):
        tf.losses.add_loss(tf.reduce_mean(loss))
    exact = tf.get_variable("exact", [30, 30], tf.float64)
    count = tf.get_variable("count", [500], tf.int64, trainable=False, initializer=formula)
    state = tf.get_variable("state", [400], trainable=False)
    for value in (exact, count, state):
        tf.losses.add_loss(tf.cast(tf.reduce_sum(value), tf.float32))


_ON_SERVERS = {
    "asynchronous clones": {"asynchronous": True},
    "asynchronous": {},
    "synchronous": {"replicas_to_aggregate": 1},
}


@pytest.mark.parametrize(
    ("way", "clones", "variable_kind"),
    laws.covering([_ON_SERVERS, CLONES, laws.KINDS], _has_copies),
    indirect=["variable_kind"],
)
def test_half_of_the_bytes_cross(way, clones, variable_kind):
    """What is trained in float32 takes half of its bytes, both ways; all else is as it was.

    The report of the placement says so.
    """
    sizes, reports = {}, {}
    for precision in ("float32", "bfloat16"):
        fields = {**CLONES[clones], **_ON_SERVERS[way], "wire_precision": precision}
        config = LogicalDevices(num_ps_tasks=2, num_replicas=2, **fields)
        with tf.Graph().as_default():
            model = deploy(config, _model_of_all_kinds, optimizer=SGD(0.5))
            crossing = _crossing(model).values()
            by_type = {}
            for tensor in crossing:
                size = tensor.shape.num_elements()
                if size is not None and size > 1:
                    by_type[tensor.dtype] = by_type.get(tensor.dtype, 0) + size
            sizes[precision] = by_type
            reports[precision] = describe(model)
    narrow = sizes["bfloat16"].pop(tf.bfloat16)
    assert narrow > 4 * 200 * 100
    kept = sizes["bfloat16"].pop(tf.float32)
    assert kept == 400  # of `state`
    assert sizes["float32"].pop(tf.float32) == narrow + kept
    assert sizes["float32"] == sizes["bfloat16"]
    assert "wire_precision bfloat16: gradients and trained" in str(reports["bfloat16"])
    assert "wire" not in str(reports["float32"])
    saved = [_bytes_between_jobs(reports[precision]) for precision in ("float32", "bfloat16")]
    assert saved[0] - saved[1] == pytest.approx(2 * narrow, abs=50)


def _bytes_between_jobs(report):
    return sum(
        row.known_bytes
        for row in report.transfers
        if ("job:ps" in row.source) != ("job:ps" in row.target)
    )


def test_evaluation_is_exact(variable_kind):
    """A second deployment in the graph, for evaluation, sees all digits of the variables."""
    third = np.float32(1 / 3)
    config = LogicalDevices(num_clones=2, num_ps_tasks=2, wire_precision="bfloat16")

    def model_fn():
        weight = tf.get_variable("weight", [2], initializer=tf.constant_initializer(third))
        tf.losses.add_loss(tf.reduce_sum(weight))

    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        model = deploy(config, model_fn, optimizer=SGD(0.0))
        evaluation = deploy(config, model_fn)
    with _worker_session() as session:
        losses = session.run([model.train_op, evaluation.total_loss])
    assert losses == [2 * _rounded(third), 2 * third]
    assert "wire" not in str(describe(evaluation))


def test_the_loss_of_all_reduce_is_exact():
    """The mean loss keeps its digits, beside gradients that do not."""

    def with_loss(loss):
        def model_fn():
            weight = tf.get_variable("weight", [2], initializer=tf.zeros_initializer())
            tf.losses.add_loss(loss + tf.reduce_sum(weight))

        return model_fn

    losses = np.array([1 / 3, 1 / 7], np.float32)
    for run in _train("all_reduce", "bfloat16", [with_loss(loss) for loss in losses], steps=1):
        assert run.losses == pytest.approx([losses.mean()], rel=1e-6)

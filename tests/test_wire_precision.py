"""Gradients and variables cross process borders in 16 bits, are summed in 32, and train as well."""

import concurrent.futures
import dataclasses
import functools
import itertools
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, describe, graph_walk
from model_deploy.all_reduce import session_config
from model_deploy.hooks import session_hooks
from tests.clusters import start_cluster, start_workers
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, feed_clones, formula

SGD = tf.train.GradientDescentOptimizer
STEPS = 3
# Largest relative error of a rounding to bfloat16, which has 8 binary digits.
ROUNDING = 2.0**-8
WAYS = ("asynchronous", "synchronous", "all_reduce")
# Servers keep variables when a session ends: each cluster run has its own container for them.
_containers = map(str, itertools.count())


def _rounded(values):
    return np.asarray(values, tf.bfloat16.as_numpy_dtype).astype(np.float32)


@functools.cache
def _parameter_servers(num_replicas):
    return start_cluster(num_workers=num_replicas, num_ps=2)


def _all_reduce_workers(num_replicas):
    """New servers: they keep the shapes of all collective ops."""
    config = LogicalDevices(num_clones=2, num_replicas=num_replicas, all_reduce=True)
    return start_workers(num_replicas, session_config(config, cpu_config(2)))


class Replica:
    """A model on one replica, and its session.

    Attributes:
      model: what `deploy` returned.
      losses: of each step.
    """

    def __init__(self, config, model_fn, target, container, **options):
        self._config, self._target = config, target
        self._graph = tf.Graph()
        with self._graph.as_default(), tf.container(container):
            self.model = deploy(config, model_fn, **options)
            self._hooks = session_hooks()
            self._initialize = tf.global_variables_initializer()
            self._initialize_local = tf.local_variables_initializer()
            self._variables = {v.op.name: v for v in tf.global_variables()}
        self.losses = []

    def open(self):
        """Opens the session; the chief's, or each one that owns variables, initializes them."""
        proto = cpu_config(2)
        if self._config.all_reduce:
            proto = session_config(self._config, proto)
            proto.isolate_session_state = True
        self._session = tf.Session(self._target, graph=self._graph, config=proto)
        if self._config.replica_id == 0 or self.model.owns_variables:
            self._session.run(self._initialize)

    def start(self):
        """What `train` does with a new session."""
        self._session.run(self._initialize_local)
        for hook in self._hooks:
            hook.after_create_session(self._session, tf.train.Coordinator())

    def step(self):
        """Makes a step."""
        self.losses.append(self._session.run(self.model.train_op))

    def values(self):
        """All global variables by name."""
        return self._session.run(self._variables)

    def difference(self):
        """The largest difference between copies of variables."""
        return self._session.run(self.model.copies_difference)

    def close(self):
        """Ends the session."""
        self._session.close()


def _train(way, precision, model_fns, *, steps=STEPS, config=None, rate=0.5, **options):
    """Trains a replica for each model function; returns losses and variables of each."""
    num_replicas = len(model_fns)
    config = dataclasses.replace(
        config or LogicalDevices(),
        num_replicas=num_replicas,
        wire_precision=precision,
        all_reduce=way == "all_reduce",
        num_ps_tasks=0 if way == "all_reduce" else 2,
    )
    start = _all_reduce_workers if way == "all_reduce" else _parameter_servers
    targets, container = start(num_replicas), next(_containers)
    if way == "synchronous":
        for target in targets:
            tf.Session.reset(target)  # accumulators are in no container
        options.setdefault("replicas_to_aggregate", num_replicas)
    replicas = [
        Replica(
            dataclasses.replace(config, replica_id=i),
            model_fn,
            target,
            container,
            optimizer=SGD(rate),
            **options,
        )
        for i, (model_fn, target) in enumerate(zip(model_fns, targets, strict=True))
    ]
    for replica in replicas:
        replica.open()
    all_done = threading.Barrier(num_replicas, timeout=60)

    def run(replica):
        replica.start()
        for _ in range(steps):
            replica.step()
        all_done.wait()
        values = replica.values()
        all_done.wait()
        if way == "all_reduce":
            assert replica.difference() == 0
        return replica.losses, values

    try:
        if way == "asynchronous":  # one after the other, so that two runs do the same
            for replica in replicas:
                replica.start()
            for _ in range(steps):
                for replica in replicas:
                    replica.step()
            return [(replica.losses, replica.values()) for replica in replicas]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return list(pool.map(run, replicas))
    finally:
        for replica in replicas:
            replica.close()


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
    "one": LogicalDevices(),
    "called": LogicalDevices(num_clones=2),
    "copied": LogicalDevices(num_clones=2, copy_clones=True),
    "accumulated": LogicalDevices(accumulate_steps=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("clones", CLONES)
@pytest.mark.parametrize("way", WAYS)
def test_values_of_few_digits_train_to_the_same_bits(way, clones, variable_kind):
    """What 16 bits can hold is not changed: losses and variables are those of 32 bits."""
    config = CLONES[clones]
    if way == "all_reduce" and config.copy_clones:
        pytest.skip("all-reduce does not copy clones")
    model_fns = [_towards_targets(row) for row in (1, 2)]
    exact, narrow = (
        _train(way, precision, model_fns, config=config) for precision in ("float32", "bfloat16")
    )
    for (losses, values), (expected_losses, expected) in zip(narrow, exact, strict=True):
        assert losses == expected_losses
        assert losses[-1] < losses[0]
        assert values.keys() == expected.keys()
        for name, value in expected.items():
            assert values[name].dtype == value.dtype
            np.testing.assert_array_equal(values[name], value, err_msg=name)


def test_backups():
    """With one gradient per update a replica alone goes on: 3 steps leave 1/8 of the way."""
    target = _parameter_servers(2)[0]
    tf.Session.reset(target)
    config = LogicalDevices(num_replicas=2, num_ps_tasks=2, wire_precision="bfloat16")
    options = {"optimizer": SGD(0.5), "replicas_to_aggregate": 1}
    replica = Replica(config, _towards_targets(1), target, next(_containers), **options)
    replica.open()
    replica.start()
    for _ in range(STEPS):
        replica.step()
    values = replica.values()
    replica.close()
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
    [(_, values), _] = _train(
        way, "bfloat16", [_slopes_model(0), _slopes_model(1)], steps=1, rate=1.0
    )
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
    replicas = _train(way, "bfloat16", model_fns, steps=1, rate=3.0)
    for _, values in replicas:
        np.testing.assert_array_equal(values["big"], np.full([200, 100], -258.0))
        np.testing.assert_array_equal(values["small"], [0.0, -258.0])


def _worker_session():
    [target] = _parameter_servers(1)
    return tf.Session(target, config=cpu_config(2))


@pytest.fixture
def own_variables(graph):
    """Variables of the test's graph are no other graph's."""
    with tf.container(next(_containers)):
        yield


def test_what_update_ops_write_back_is_exact(own_variables, variable_kind):
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
        session.run(tf.global_variables_initializer())
        [seen, _] = session.run([weight_seen[0], model.train_op])
        session.run(model.train_op)
        values = session.run({v.op.name: v for v in tf.global_variables()})
    np.testing.assert_array_equal(seen, _rounded([third] * 2))  # what the loss is made of
    np.testing.assert_array_equal(values["weight"], [third] * 2)
    np.testing.assert_array_equal(values["average"], [third] * 2)
    np.testing.assert_array_equal(values["other"], [third * np.float32(0.75**2)] * 2)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_batch_norm_statistics_are_exact(way):
    """They follow the means of both replicas' batches as in 32 bits: decay 0.9."""
    halves = np.split(GOLDENS["batch_norm"].features, 2)
    mean = np.zeros(3)
    for _ in range(STEPS):
        if way == "all_reduce":
            mean = 0.9 * mean + 0.1 * np.mean([half.mean(axis=0) for half in halves], axis=0)
        else:
            for half in halves:
                mean = 0.9 * mean + 0.1 * half.mean(axis=0)
    for _, values in _train(way, "bfloat16", _parts("batch_norm", 2)):
        # Synchronous replicas update them in any order.
        tolerance = 1e-6 if way != "synchronous" else 0.1 * np.abs(mean).max()
        np.testing.assert_allclose(values["norm/moving_mean"], mean, rtol=0, atol=tolerance)


def _parts(name, num_replicas, batches_per_step=1):
    """For each replica a model function that gets its part of a golden's examples."""

    def part(replica_id):
        feed = []

        def model_fn():
            if not feed:
                feed.append(feed_clones(GOLDENS[name], num_replicas * batches_per_step))
                for _ in range(replica_id * batches_per_step):
                    with tf.Graph().as_default():
                        feed[0]()
            return feed[0]()

        return model_fn

    return [part(i) for i in range(num_replicas)]


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDENS)
@pytest.mark.parametrize("way", WAYS)
def test_goldens_train_as_in_32_bits(way, name):
    """Losses go down, and are those of 32 bits but for roundings."""
    exact, narrow = (
        _train(way, precision, _parts(name, 2, 2), config=LogicalDevices(num_clones=2), rate=0.1)
        for precision in ("float32", "bfloat16")
    )
    for (losses, values), (expected_losses, expected) in zip(narrow, exact, strict=True):
        np.testing.assert_allclose(losses, expected_losses, rtol=8 * ROUNDING)
        assert values.keys() == expected.keys()
        for variable, value in expected.items():
            limit = 8 * ROUNDING * max(np.max(np.abs(value)), 0.1)
            np.testing.assert_allclose(values[variable], value, atol=limit, err_msg=variable)


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


@pytest.mark.parametrize("clones", CLONES)
@pytest.mark.parametrize("way", ["asynchronous clones", "asynchronous", "synchronous"])
def test_half_of_the_bytes_cross(way, clones, variable_kind):
    """What is trained in float32 takes half of its bytes, both ways; all else is as it was.

    The report of the placement says so.
    """
    options = {}
    if way == "synchronous":
        options = {"replicas_to_aggregate": 1}
    if way == "asynchronous clones":
        options = {"asynchronous": True}
    if clones == "copied" and options.get("asynchronous"):
        pytest.skip("asynchronous clones are not copied")
    sizes, reports = {}, {}
    for precision in ("float32", "bfloat16"):
        config = dataclasses.replace(
            CLONES[clones], num_ps_tasks=2, num_replicas=2, wire_precision=precision
        )
        with tf.Graph().as_default():
            model = deploy(config, _model_of_all_kinds, optimizer=SGD(0.5), **options)
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


def test_evaluation_is_exact(own_variables, variable_kind):
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
        session.run(tf.global_variables_initializer())
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
    for seen, _ in _train("all_reduce", "bfloat16", [with_loss(loss) for loss in losses], steps=1):
        assert seen == pytest.approx([losses.mean()], rel=1e-6)

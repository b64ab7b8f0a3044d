"""All-reduce: copies of the variables, what is common to all replicas, and what is refused.

That it trains as one clone does is in `tests/laws.py`.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, graph_walk, slim
from model_deploy.all_reduce import session_config
from model_deploy.hooks import session_hooks
from tests import clusters, harness
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, feed_clones, formula


def _config(num_clones, **options):
    return LogicalDevices(num_clones=num_clones, all_reduce=True, **options)


@pytest.mark.one_mode
@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("num_clones", [1, 2])
def test_batch_norm_statistics_are_the_mean_of_all_clones(num_clones):
    """Moving statistics follow the batches of all clones of all replicas, and stay equal."""
    parts = np.split(GOLDENS["batch_norm"].features, 2 * num_clones)
    mean, variance = np.zeros(3), np.ones(3)
    for _ in range(harness.STEPS):  # decay 0.9; the fused kernel gives the unbiased variance
        mean = 0.9 * mean + 0.1 * np.mean([part.mean(axis=0) for part in parts], axis=0)
        variance = 0.9 * variance + 0.1 * np.mean([p.var(axis=0, ddof=1) for p in parts], axis=0)
    config = _config(num_clones, num_replicas=2)
    for run in harness.train_replicas(config, GOLDENS["batch_norm"]):
        np.testing.assert_allclose(run.values["norm/moving_mean"], mean, rtol=1e-5)
        np.testing.assert_allclose(run.values["norm/moving_variance"], variance, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "assigned", "expected"),
    [
        (tf.int64, [3, 5], 5),
        (tf.int16, [-5, -3], -3),
        (tf.uint8, [200, 100], 200),
        (tf.uint32, [1, 2**32 - 1], 2**32 - 1),
        (tf.bool, [False, True], True),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_counters_and_flags_that_are_not_trained_stay_equal(dtype, assigned, expected):
    """Integers that update ops change become the largest of all copies; a flag is one of any."""
    values = iter(assigned)

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(weight)
        count = tf.get_variable("count", [], dtype, tf.zeros_initializer(), trainable=False)
        changed = count.assign(tf.constant(next(values), dtype))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, changed)

    model = deploy(_config(2), model_fn, optimizer=harness.sgd(1.0))
    _, values = harness.run_steps(model, [*tf.global_variables("count"), model.copies_difference])
    assert values == [expected, 0]


@pytest.mark.one_mode
@pytest.mark.gpu
@pytest.mark.slow
def test_moving_averages_are_those_of_one_clone():
    """Averages of variables see the updated values, and are equal on all replicas."""

    def average():
        return tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())

    golden, options = GOLDENS["slim_mlp"], {"update_ops": [average]}
    expected = harness.one_clone(golden, **options)
    for run in harness.train_replicas(_config(2, num_replicas=2), golden, **options):
        harness.assert_same(run, expected)


def test_the_chief_gives_the_start_values():
    """Replicas that start from other values train from those of the chief."""

    def model_fn():
        table = tf.get_variable("table", [4, 3], initializer=tf.random_normal_initializer(seed=7))
        tf.losses.add_loss(0.0 * tf.reduce_sum(table))
        for dtype in (tf.bool, tf.uint8, tf.bfloat16):
            tf.get_variable(dtype.name, [2], dtype, tf.zeros_initializer(), trainable=False)

    def changed(variable, i):  # whatever the initializers say, replicas have other values
        if variable.dtype.base_dtype == tf.bool:
            return variable.assign([i == 0, i == 1])
        return variable.assign(variable + tf.cast(100 + i, variable.dtype))

    config = _config(2, num_replicas=2)
    replicas = harness.replicas_of(config, model_fn, harness.momentum)
    variables, changes = [], []
    for i, replica in enumerate(replicas):
        with replica.graph.as_default():
            everything = [*tf.global_variables(), *tf.local_variables()]
            variables.append([v.read_value() for v in everything])
            changes.append([changed(v, i) for v in everything])

    def train(replica):
        session, i = replica.session, replica.config.replica_id
        session.run(replica.initialize_local)
        session.run(changes[i])
        before = session.run(variables[i])
        replica.start()
        return before, session.run(variables[i])

    with harness.opened(replicas, clusters.workers(len(replicas))):
        (chief_before, chief), (other_before, other) = harness.together(train, replicas)
    assert not np.array_equal(chief_before[1], other_before[1])
    for before, first, second in zip(chief_before, chief, other, strict=True):
        np.testing.assert_array_equal(first, before)
        np.testing.assert_array_equal(second, before)


@pytest.mark.one_mode
@pytest.mark.slow
def test_monitored_sessions():
    """Where each replica initializes its own variables, hooks make monitored sessions train."""
    golden = GOLDENS["slim_mlp"]
    replicas = harness.replicas_of(_config(2, num_replicas=2), golden)

    def train(replica, target):
        assert replica.model.owns_variables
        last = tf.train.StopAtStepHook(last_step=harness.STEPS)
        with (
            replica.graph.as_default(),
            tf.train.MonitoredTrainingSession(
                target, is_chief=True, hooks=[*replica.hooks, last], config=replica.proto
            ) as session,
        ):
            while not session.should_stop():
                replica.losses.append(session.run(replica.model.train_op))

    harness.together(train, replicas, clusters.workers(len(replicas)))
    for replica in replicas:
        np.testing.assert_allclose(replica.losses, harness.one_clone(golden).losses, rtol=2e-6)


def _names(path):
    return {name: tuple(shape) for name, shape in tf.train.list_variables(path)}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["slim_mlp", "batch_norm", "embedding"])
def test_checkpoints_are_those_without_all_reduce(name, tmp_path, variable_kind):
    """Names and shapes are the same, and a normal deployment's checkpoint starts all copies."""
    first, second = (
        harness.Replica(config, GOLDENS[name], harness.adam)
        for config in (LogicalDevices(num_clones=2), _config(2))
    )
    paths = [str(tmp_path / each) for each in ("first", "second")]
    first(steps=1, save=paths[0])
    first(steps=1, restore=paths[0])
    second(steps=1, restore=paths[0], save=paths[1])
    assert _names(paths[0]) == _names(paths[1])
    found, expected = (
        # The mean of both clones, not those of the first.
        {key: run.values[key] for key in run.values if "moving" not in key}
        for run in (second, first)
    )
    harness.assert_close(found, expected, 1e-5)


@pytest.mark.gpu
def test_local_initializers_copy_what_was_restored():
    """Without the hook, too, copies start from the first clone's values, slots included."""
    run = harness.Replica(_config(3), GOLDENS["slim_mlp"], harness.momentum)
    with run.graph.as_default(), tf.Session(config=cpu_config(3)) as session:
        session.run(tf.global_variables_initializer())
        changed = [tf.assign_add(v, tf.ones_like(v)) for v in tf.global_variables()]
        session.run(changed)
        session.run(tf.local_variables_initializer())
        assert session.run(run.model.copies_difference) == 0


@pytest.mark.one_mode
@pytest.mark.gpu
def test_differences_between_copies_show():
    """The check finds the one number that is not equal, whatever its sign."""
    run = harness.Replica(_config(3), GOLDENS["slim_mlp"])
    with run.graph.as_default(), tf.Session(config=cpu_config(3)) as session:
        harness.start(session)
        [copied] = [v for v in tf.local_variables() if v.op.name == "clone_1/hidden/weights"]
        for change, total in ((0.5, 0.5), (-2.0, 1.5)):
            session.run(tf.assign_add(copied, tf.one_hot([0] + [-1] * 5, 5) * change))
            assert session.run(run.model.copies_difference) == pytest.approx(total)


@pytest.mark.one_mode
@pytest.mark.parametrize("settings", [{}, {"local_steps": 2}], ids=str)
def test_a_check_of_copies_makes_no_step(settings):
    """What compares the copies needs nothing of a step, whose batches it would take."""
    golden = GOLDENS["slim_mlp"]
    model = deploy(_config(2, **settings), feed_clones(golden, 2), optimizer=harness.sgd())
    needed = graph_walk.ancestors([model.copies_difference.op], control_inputs=True)
    assert not needed & {loss.op for loss in tf.get_collection(tf.GraphKeys.LOSSES)}
    assert needed > {variable.op for variable in tf.trainable_variables()}


@pytest.mark.one_mode
def test_copies_are_on_their_clones_devices(variable_kind):
    """Each clone has all variables and slots on its device; only the first clone's are saved."""
    run = harness.Replica(_config(3), GOLDENS["slim_mlp"], harness.momentum)
    with run.graph.as_default():
        saved = {v.op.name: v.device for v in tf.global_variables()}
        assert saved.pop("global_step") == "/device:CPU:0"
        assert set(saved.values()) == {"/device:CPU:0"}
        copies = {v.op.name: v.device for v in tf.local_variables()}
        assert copies == {f"clone_{i}/{name}": f"/device:CPU:{i}" for i in (1, 2) for name in saved}
        assert len(tf.trainable_variables()) == 4
        assert len(slim.get_model_variables()) == 4
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2


@pytest.mark.gpu
@pytest.mark.slow
def test_sparse_gradients_stay_sparse(variable_kind):
    """Rows of different number, or none, reach each clone's optimizer as rows."""
    batches = iter([[3, 3, 1], [], None, [0]])

    def model_fn():
        table = tf.get_variable("table", [4, 2], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        rows = next(batches)
        words = 0.0 if rows is None else tf.nn.embedding_lookup(table, tf.constant(rows, tf.int32))
        tf.losses.add_loss(4 * (bias + tf.reduce_sum(words)))

    spy = harness.Spy(1.0)
    model = deploy(_config(4), model_fn, optimizer=spy)
    assert sum(isinstance(gradient, tf.IndexedSlices) for gradient, _ in spy.seen) == 4
    fetches = [*tf.trainable_variables(), model.copies_difference]
    _, [table, bias, difference] = harness.run_steps(model, fetches)
    assert difference == 0
    np.testing.assert_array_equal(table, -np.outer([1, 1, 0, 2], [1, 1]))
    assert bias == -4


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "use"),
    [(tf.float32, lambda table: tf.nn.embedding_lookup(table, [2, 2])), (tf.float64, tf.identity)],
    ids=["all gradients are sparse", "all gradients have another type"],
)
def test_a_loss_with_which_nothing_travels(dtype, use, variable_kind):
    """A step ends though the clones' losses are summed by an op of their own."""

    def model_fn():
        table = tf.get_variable("table", [3], dtype, initializer=tf.zeros_initializer())
        tf.losses.add_loss(2 * tf.reduce_sum(tf.cast(use(table), tf.float32)))

    model = deploy(_config(2), model_fn, optimizer=harness.sgd(1.0))
    _, [table] = harness.run_steps(model, tf.trainable_variables(), steps=2)
    assert table.tolist() == ([0, 0, -8] if dtype == tf.float32 else [-4, -4, -4])


@pytest.mark.gpu
def test_dense_and_sparse_gradients_of_one_variable():
    """A variable that is sparse in one clone and dense in another gets the sum of both."""
    uses = iter([lambda table: tf.nn.embedding_lookup(table, [2, 2]), lambda table: table])

    def model_fn():
        table = tf.get_variable("table", [3], initializer=tf.zeros_initializer())
        tf.losses.add_loss(2 * tf.reduce_sum(next(uses)(table)))

    model = deploy(_config(2), model_fn, optimizer=harness.sgd(1.0))
    fetches = [*tf.trainable_variables(), model.copies_difference]
    _, [table, difference] = harness.run_steps(model, fetches)
    assert table.tolist() == [-1, -1, -3]
    assert difference == 0


@pytest.mark.gpu
def test_variables_in_parts():
    """Each part of a partitioned variable has its copies; a gradient of w / 2 halves it at 1."""

    def model_fn():
        partitioner = tf.fixed_size_partitioner(2)
        weights = tf.get_variable("weights", [4], partitioner=partitioner, initializer=formula)
        tf.losses.mean_squared_error(tf.zeros([4]), tf.convert_to_tensor(weights))

    run = harness.Replica(_config(2), model_fn, lambda: harness.sgd(1.0))
    names = {v.op.name for v in run.graph.get_collection(tf.GraphKeys.LOCAL_VARIABLES)}
    assert names == {"clone_1/weights/part_0", "clone_1/weights/part_1"}
    start = run(steps=0).values
    for name, value in run(steps=1).values.items():
        if name != "global_step":
            np.testing.assert_allclose(value, start[name] / 2, rtol=1e-6)


@pytest.mark.one_mode
def test_summaries_need_no_other_replica():
    """A chief that runs the summaries alone waits for nobody."""
    config = _config(1, num_replicas=2)
    model = harness.Replica(config, GOLDENS["slim_mlp"], summarize_gradients=True).model
    needed = graph_walk.ancestors([model.summary_op.op], control_inputs=True)
    assert not [op for op in needed if op.type.startswith("Collective")]
    needed = graph_walk.ancestors([model.train_op.op], control_inputs=True)
    assert [op for op in needed if op.type.startswith("Collective")]


@pytest.mark.one_mode
def test_summaries_of_what_is_not_trained():
    """A variable that no loss depends on has no summary of a gradient, and the others have."""

    def model_fn():
        used, _ = (tf.get_variable(name, [2]) for name in ("used", "unused"))
        tf.losses.add_loss(tf.reduce_sum(used**2))

    optimizer = harness.sgd()
    deploy(_config(2), model_fn, optimizer=optimizer, summarize_gradients=True)
    names = [tensor.op.name for tensor in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert [name for name in names if "gradient" in name] == ["used/gradient", "used/gradient_norm"]


@pytest.mark.one_mode
def test_small_gradients_travel_together():
    """A step of the four variables of a network is one collective op per clone."""
    model = harness.Replica(_config(2), GOLDENS["slim_mlp"]).model
    needed = graph_walk.ancestors([model.train_op.op], control_inputs=True)
    ops = [op for op in needed if op.type.startswith("Collective")]
    assert len(ops) == 2
    assert len({op.get_attr("instance_key") for op in ops}) == 1


@pytest.mark.gpu
def test_one_clone_alone_needs_no_exchange():
    """All-reduce over one clone of one replica is plain training."""
    golden = GOLDENS["slim_mlp"]
    harness.assert_same(harness.Replica(_config(1), golden)(), harness.one_clone(golden))


def test_training_and_evaluation_in_one_graph():
    """An evaluation in the training's graph sees the trained variables."""
    model = deploy(_config(2), feed_clones(GOLDENS["slim_mlp"], 2), optimizer=harness.sgd())
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        one = deploy(LogicalDevices(), feed_clones(GOLDENS["slim_mlp"], 1))
        two = deploy(_config(2), feed_clones(GOLDENS["slim_mlp"], 2))
    assert len(session_hooks()) == 1
    with tf.Session(config=cpu_config(2)) as session:
        harness.start(session)
        before = session.run(one.total_loss)
        session.run(model.train_op)
        losses = session.run([one.total_loss, two.total_loss])
    assert losses[0] < before
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def _of_outside():
    with tf.device("/device:CPU:0"):
        outside = tf.get_variable("outside", [], initializer=tf.ones_initializer())
    return lambda: tf.losses.add_loss(1.0 * outside)


def _of_the_first_clone():
    first = []

    def model_fn():
        first.append(tf.get_variable("weight", []))
        tf.losses.add_loss(1.0 * first[0])

    return model_fn


def _of_nothing():
    tf.get_variable("unused", [])
    return lambda: tf.losses.add_loss(tf.constant(1.0))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make_model_fn", "message"),
    [
        (_of_outside, r"must make its variables, .* got outside made elsewhere"),
        (_of_the_first_clone, "clone 1 must use its own copy of weight, got that of"),
        (_of_nothing, "depend on at least one variable to train, got none"),
    ],
)
def test_variables_that_are_not_the_clones_own(make_model_fn, message):
    """A variable that clones would share says so, by name; and each clone has to have one."""
    with pytest.raises(ValueError, match=message):
        deploy(_config(2), make_model_fn(), optimizer=harness.sgd())


@pytest.mark.one_mode
def test_optimizers_that_differ_by_clone_are_an_error():
    """State that only one clone's optimizer makes cannot be kept equal."""

    class Odd(tf.train.GradientDescentOptimizer):
        made = 0

        def apply_gradients(self, *args, **kwargs):
            Odd.made += 1
            if Odd.made == 2:
                tf.Variable(0.0, name="state")
            return super().apply_gradients(*args, **kwargs)

    with pytest.raises(ValueError, match="same variables for each clone, got state for clone 1"):
        harness.Replica(_config(2), GOLDENS["linear"], lambda: Odd(0.1))


def test_a_missing_device_is_an_error():
    """Clones that soft placement would put on one device do not wait for each other."""
    config = DeploymentConfig(num_clones=2, clone_on_cpu=True, all_reduce=True)
    deploy(config, feed_clones(GOLDENS["linear"], 2), optimizer=harness.sgd())
    proto = cpu_config(1)
    proto.allow_soft_placement = True
    with (
        tf.Session(config=proto) as session,
        pytest.raises(ValueError, match=r"each clone, got no /device:CPU:1 among .*/device:CPU:0"),
    ):
        harness.start(session)


def test_session_config():
    """Servers and sessions get the leader, their devices, and see no other worker."""
    base = tf.ConfigProto(log_device_placement=True)
    config = DeploymentConfig(
        num_clones=3, clone_on_cpu=True, num_replicas=2, replica_id=1, all_reduce=True
    )
    proto = session_config(config, base)
    assert proto.experimental.collective_group_leader == "/job:worker/replica:0/task:0"
    assert list(proto.device_filters) == ["/job:worker/task:1"]
    assert proto.device_count["CPU"] == 3
    assert proto.log_device_placement
    assert not base.device_filters
    assert session_config(DeploymentConfig(all_reduce=True)) == tf.ConfigProto()


@pytest.mark.parametrize(
    ("options", "devices", "worker"),
    [
        pytest.param({}, ["/device:GPU:0", "/device:GPU:1"], "", id="GPU"),
        pytest.param(
            {"clone_on_cpu": True}, ["/device:CPU:0", "/device:CPU:1"], "", id="logical CPU"
        ),
        pytest.param(
            {"num_replicas": 2, "replica_id": 1},
            ["/job:worker/task:1/device:GPU:0", "/job:worker/task:1/device:GPU:1"],
            "/job:worker/task:1",
            id="replica",
        ),
    ],
)
def test_devices(options, devices, worker):
    """Each clone has a device of its own, of this worker, and variables follow the clones."""
    config = DeploymentConfig(num_clones=2, all_reduce=True, **options)
    assert [config.clone_device(i) for i in range(2)] == devices
    assert config.optimizer_device() == f"{worker}/device:CPU:0"
    assert config.worker_device == config.variables_device() == worker
    assert config.caching_device() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"all_reduce": 1}, "all_reduce must be True or False, got 1", id="int"),
        pytest.param(
            {"all_reduce": True, "num_ps_tasks": 2},
            "num_ps_tasks must be 0 with all_reduce=True, got 2",
            id="with ps",
        ),
        pytest.param(
            {"num_replicas": 2}, "with num_replicas=2, got 0; or set all_reduce=True", id="neither"
        ),
    ],
)
def test_config_rejects(options, message):
    """All-reduce excludes parameter servers; several replicas need one of the two."""
    with pytest.raises(ValueError, match=message):
        DeploymentConfig(**options)

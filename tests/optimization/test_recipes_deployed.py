"""AdamW, LAMB and LARS in deployments: clones, parameter servers, cut variables, checkpoints."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy
from model_deploy.optimization import (
    AdamWOptimizer,
    LAMBOptimizer,
    LARSOptimizer,
    OptimizerOptions,
    build_optimizer,
    weight_decay_note,
)
from tests import clusters, harness, laws
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula
from tests.optimization import ten_steps

# By an anchored pattern, which must find the copies of all-reduce and the parts, too.
MAKERS = {
    "adamw": lambda: AdamWOptimizer(0.05, 0.1, epsilon=1e-3, no_weight_decay="^logits"),
    "lamb": lambda: LAMBOptimizer(0.05, 0.1, epsilon=1e-3, no_weight_decay="^logits"),
    "lars": lambda: LARSOptimizer(0.5, 0.8, 0.1, 0.1, no_weight_decay="^logits"),
}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "way", "variable_kind"),
    laws.covering([MAKERS, ["all_reduce", "num_ps_tasks"], laws.KINDS], lambda *cell: True),
    indirect=["variable_kind"],
)
def test_two_clones_train_as_one(name, way, variable_kind):
    """Copies of all-reduce, and variables and slots on two servers, end where one clone does."""
    fields = {"all_reduce": {"all_reduce": True}, "num_ps_tasks": {"num_ps_tasks": 2}}[way]
    target = _two_servers() if "num_ps_tasks" in fields else ""
    golden, make = GOLDENS["embedding"], MAKERS[name]
    run = harness.Replica(LogicalDevices(num_clones=2, **fields), golden, make)(target, 4)
    harness.assert_same(run, harness.one_clone(golden, make, steps=4), 2e-6)


def _two_servers():
    """The target of a worker with two parameter servers, without variables."""
    [target] = clusters.workers(1)
    return target


@pytest.mark.gpu
@pytest.mark.one_mode
@pytest.mark.parametrize("name", MAKERS)
def test_asynchronous_clones(name, variable_kind):
    """Each clone's update decays once, and moves the state once: two updates are two steps."""

    def model_fn():
        weight = tf.get_variable("weight", initializer=tf.constant([3.0, 4.0]))
        tf.losses.add_loss(tf.reduce_sum(weight * [1.0, -2.0]))

    run = harness.Replica(LogicalDevices(num_clones=2, asynchronous=True), model_fn, MAKERS[name])
    with run.open():
        run.start()
        for clone in (0, 1):
            run.update(clone)
        run.finish()
    settings = {
        "adamw": {"rate": 0.05, "epsilon": 1e-3},
        "lamb": {"rate": 0.05, "epsilon": 1e-3},
        "lars": {"rate": 0.5, "momentum": 0.8, "coefficient": 0.1},
    }[name]
    reference = getattr(ten_steps, name)
    gradients = [np.array([1.0, -2.0])] * 2
    expected = reference(np.array([3.0, 4.0]), gradients, decay=0.1, **settings)[-1]
    np.testing.assert_allclose(run.values["weight"], expected, rtol=1e-5)


def _rows(shape, dtype=tf.float32, partition_info=None):
    """An initializer that gives a part what the whole has there."""
    first = 0 if partition_info is None else partition_info.var_offset[0]
    values = formula([7, 3], dtype)
    return values[first : first + int(shape[0])]


def _cut_model(num_parts, is_sparse):
    """Builds a table in parts; returns its gradients and variables, and its whole value."""
    partitioner = tf.fixed_size_partitioner(num_parts) if num_parts else None
    table = tf.get_variable("table", [7, 3], initializer=_rows, partitioner=partitioner)
    # A cut table has its rows by turns among the parts unless told otherwise.
    words = tf.nn.embedding_lookup(table, [0, 2, 2, 5, 6], partition_strategy="div")
    if is_sparse:
        loss = tf.reduce_sum(tf.square(words - 1))
    else:
        loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(table) - 1))
    tf.losses.add_loss(loss)
    return table


def _train_cut(name, num_parts, is_sparse, config, target=""):
    with tf.Graph().as_default():
        made = []
        model = deploy(
            config, lambda: made.append(_cut_model(num_parts, is_sparse)), optimizer=MAKERS[name]()
        )
        devices = {variable.device for variable in tf.trainable_variables()}
        whole = tf.convert_to_tensor(made[0])
        return harness.run_steps(model, whole, 4, target)[1], devices


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "is_sparse"), [("adamw", True), ("lamb", False), ("lamb", True), ("lars", False)]
)
def test_cut_variables(name, is_sparse, variable_kind):
    """A variable in three parts makes the steps of the whole one: norms are of all parts, also
    where they are on several servers.
    """
    whole, _ = _train_cut(name, None, is_sparse, LogicalDevices())
    parts, _ = _train_cut(name, 3, is_sparse, LogicalDevices())
    np.testing.assert_allclose(parts, whole, rtol=2e-6, atol=2e-7)
    if variable_kind == "resource" and name != "adamw":
        cluster = LogicalDevices(num_ps_tasks=2), _two_servers()
        parts, devices = _train_cut(name, 2, is_sparse, *cluster)
        assert len(devices) == 2
        np.testing.assert_allclose(parts, whole, rtol=2e-6, atol=2e-7)


@pytest.mark.one_mode
@pytest.mark.parametrize("make", [LAMBOptimizer, LARSOptimizer])
def test_a_part_without_gradient(make):
    """A layer of which only a part is trained has no norm: the message names it."""
    table = tf.get_variable("table", [6, 2], partitioner=tf.fixed_size_partitioner(3))
    message = r"all parts of table must have a gradient, .*got 1 part\(s\) with 4 of 12 values"
    with pytest.raises(ValueError, match=message):
        make(0.1).minimize(tf.reduce_sum(next(iter(table))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adamw", "lamb", "lars"])
def test_checkpoints_have_all_of_the_state(name, variable_kind, tmp_path):
    """A run that is restored after two steps ends with the bits of one that went on."""

    table = tf.get_variable(
        "table", [6, 4], initializer=formula, partitioner=tf.fixed_size_partitioner(2)
    )
    words = tf.nn.embedding_lookup(table, [0, 1, 4, 4])
    bias = tf.get_variable("bias", [4], initializer=formula)
    update = MAKERS[name]().minimize(tf.reduce_sum(tf.square(words + bias)))
    saver, path = tf.train.Saver(), str(tmp_path / "model.ckpt")

    def run(steps, restore):
        with tf.Session(config=cpu_config(1)) as session:
            session.run(tf.global_variables_initializer())
            if restore:
                saver.restore(session, path)
            for _ in range(steps):
                session.run(update)
            saver.save(session, path)
            return session.run({v.op.name: v for v in tf.global_variables()})

    straight = run(4, restore=False)
    run(2, restore=False)
    resumed = run(2, restore=True)
    assert len(straight) == {"adamw": 11, "lamb": 11, "lars": 6}[name]
    for key, value in straight.items():
        np.testing.assert_array_equal(resumed[key], value, err_msg=key)


@pytest.mark.one_mode
@pytest.mark.parametrize("name", MAKERS)
def test_constraints_hold(name, variable_kind):
    """A variable's constraint is applied to what the step leaves."""
    weight = tf.get_variable(
        "w", initializer=tf.constant([1.0, 1.0]), constraint=lambda v: tf.clip_by_value(v, 0.9, 1.1)
    )
    update = MAKERS[name]().apply_gradients([(tf.constant([50.0, -50.0]), weight)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(update)
        assert session.run(weight) == pytest.approx([0.9, 1.1])


@pytest.mark.one_mode
def test_weight_decay_note():
    """The note counts what is decayed, and warns of a second decay in the loss."""
    for name in ("conv/weights", "conv/biases", "BatchNorm/gamma", "BatchNorm/beta", "dense/bias"):
        tf.get_variable(name, [2])
    with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
        tf.get_variable("cut/biases", [4])
    variables = tf.trainable_variables()
    options = OptimizerOptions(optimizer="lamb", optimizer_weight_decay=0.5)
    start = "lamb decays 1 of 7 variables by 0.5 times the rate, not those with "
    assert weight_decay_note(options, variables, 0.0).startswith(start)
    end = "; the loss has L2 regularization of 4e-05 as well (--weight_decay=0: none)"
    assert weight_decay_note(options, variables, 4e-5).endswith(end)
    every = OptimizerOptions(optimizer="adamw", no_weight_decay="")
    expected = "adamw decays 7 of 7 variables by 0.01 times the rate"
    assert weight_decay_note(every, variables, 0.0) == expected
    for name in ("adam", "momentum"):
        assert weight_decay_note(OptimizerOptions(optimizer=name), variables, 4e-5) is None
    none = OptimizerOptions(optimizer="lars", optimizer_weight_decay=0.0)
    assert weight_decay_note(none, variables, 4e-5) is None


@pytest.mark.one_mode
@pytest.mark.parametrize("name", ["adamw", "lamb", "lars"])
def test_defaults(name):
    """Without a decay each optimizer takes its own, and trains the golden model to a lower loss."""
    options = OptimizerOptions(optimizer=name)
    assert options.own_decay == {"adamw": 0.01, "lamb": 0.01, "lars": 0.0005}[name]
    rate = {"adamw": 0.01, "lamb": 0.05, "lars": 5.0}[name]
    losses = harness.one_clone(
        GOLDENS["slim_mlp"], lambda: build_optimizer(rate, options), steps=15
    ).losses
    assert losses[-1] < losses[0]

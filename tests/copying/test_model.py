"""Clones by copy: the same graph and weights as with one call of `model_fn` per clone."""

import collections
import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    create_clones,
    deploy,
    inputs,
    optimize_clones,
    random_by_step,
    slim,
)
from tests import copies, harness, laws
from tests.copying.models import ALL
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula

SGD = tf.train.GradientDescentOptimizer


def _both(build):
    """What `build(copy)` gives without and with copies, each in a graph of its own."""
    results = []
    for copy in (False, True):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            results.append(build(copy))
    return results


_CLONES = {"clones": (3, 1), "parts": (1, 3), "clones with parts": (2, 2)}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "clones", "variable_kind"),
    [
        # That these train with both kinds of variables is in `tests/laws.py`.
        *zip(GOLDENS, itertools.cycle(_CLONES), itertools.cycle(laws.KINDS), strict=False),
        ("loop", "clones", "resource"),
        ("dropout", "parts", "resource"),
        ("condition", "clones with parts", "resource"),
        ("condition", "parts", "reference"),
        ("nested_loops", "clones", "resource"),
        ("nested_loops", "parts", "reference"),
    ],
    indirect=["variable_kind"],
)
def test_copies_are_what_calls_build(name, clones, variable_kind):
    """The graphs and collections are the same, and so are losses and weights, to the last bit."""
    num_clones, steps = _CLONES[clones]
    called, copied = (
        harness.Replica(
            LogicalDevices(num_clones=num_clones, accumulate_steps=steps, copy_clones=copy),
            ALL[name],
            harness.momentum,
            summarize_gradients=True,
        )
        for copy in (False, True)
    )
    assert copies.nodes(copied.graph) == copies.nodes(called.graph)
    assert copies.collections(copied.graph) == copies.collections(called.graph)
    if name != "dropout":
        harness.assert_equal(copied(), called())


@pytest.mark.one_mode
@pytest.mark.parametrize("options", [{"num_ps_tasks": 2}, {"clone_on_cpu": True}, {}])
def test_copies_are_placed_as_calls_are(options, variable_kind):
    """With parameter servers, on GPUs and on one CPU, each op has the device that a call gives."""

    called, copied = (
        harness.Replica(
            DeploymentConfig(num_clones=2, copy_clones=copy, **options), GOLDENS["batch_norm"]
        )
        for copy in (False, True)
    )
    assert copies.nodes(copied.graph) == copies.nodes(called.graph)


def test_model_fn_is_called_once():
    """Four clones take one call; without `copy_clones` they take four."""

    def model_fn():
        tf.add_to_collection("calls", "called")
        return tf.ones([])

    clones = create_clones(LogicalDevices(num_clones=4, copy_clones=True), model_fn)
    assert [clone.outputs.op.name for clone in clones] == [f"clone_{i}/ones" for i in range(4)]
    assert [(c.scope, c.device) for c in clones] == [
        (f"clone_{i}/", f"/device:CPU:{i}") for i in range(4)
    ]
    assert tf.get_collection("calls") == ["called"]


def test_one_clone_is_called():
    """A single clone has nothing to copy, so that nothing is forbidden to it."""
    batch = iter([3])
    (clone,) = create_clones(DeploymentConfig(copy_clones=True), lambda: next(batch))
    assert clone.outputs == 3


@pytest.mark.gpu
def test_seeds_differ_between_clones(variable_kind):
    """Random ops give other numbers in each clone, and the same in each session."""

    def build(copy):
        def model_fn():
            return tf.random_uniform([4]), tf.random_normal([4], seed=7)

        clones = create_clones(LogicalDevices(num_clones=3, copy_clones=copy), model_fn)
        seeds = [[tensor.op.inputs for tensor in clone.outputs] for clone in clones]
        assert len(seeds) == 3
        return tf.get_default_graph(), [clone.outputs for clone in clones]

    graph, outputs = _both(build)[1]
    ops = [op for op in graph.get_operations() if "seed2" in op.node_def.attr]
    assert len({(op.get_attr("seed"), op.get_attr("seed2")) for op in ops}) == 6
    runs = []
    for _ in range(2):
        with tf.Session(graph=graph, config=cpu_config(3)) as session:
            runs.append(np.array(session.run(outputs)))
    np.testing.assert_array_equal(runs[0], runs[1])
    for numbers in np.moveaxis(runs[0], 1, 0):
        assert len({tuple(row) for row in numbers}) == 3


@pytest.mark.not_v1("the body of a loop of TensorFlow 1 is no function")
def test_seeds_in_loops_differ():
    """The body of a loop is a function: each copy has its own, with seeds and devices."""

    def model_fn():
        body = lambda i, x: (i + 1, x + tf.random_uniform([]))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 2, body, (0, 0.0))[1]

    clones = create_clones(LogicalDevices(num_clones=3, copy_clones=True), model_fn)
    with tf.Session(config=cpu_config(3)) as session:
        assert len(set(session.run([clone.outputs for clone in clones]))) == 3
    library = tf.get_default_graph().as_graph_def().library.function
    drawn = {
        (node.device, node.attr["seed2"].i)
        for function in library
        for node in function.node_def
        if node.op == "RandomUniform"
    }
    assert sorted(device for device, _ in drawn) == [f"/device:CPU:{i}" for i in range(3)]
    assert len({seed for _, seed in drawn}) == 3


@pytest.mark.gpu
def test_random_numbers_by_step_differ_between_clones():
    """What depends on seed and step has a seed of its own in each copy, the same in each run."""

    def model_fn():
        return tf.nn.dropout(tf.ones([64]), rate=0.5)

    tf.train.get_or_create_global_step()
    config = LogicalDevices(num_clones=3, copy_clones=True)
    clones = create_clones(config, random_by_step(model_fn))
    runs = []
    for _ in range(2):
        with tf.Session(config=cpu_config(3)) as session:
            session.run(tf.global_variables_initializer())
            runs.append(session.run([clone.outputs for clone in clones]))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert len({tuple(numbers) for numbers in runs[0]}) == 3


def test_unseeded_ops_stay_unseeded():
    """Without a seed of the graph each session draws other numbers, in copies, too."""
    with tf.Graph().as_default() as graph:
        create_clones(
            DeploymentConfig(num_clones=2, copy_clones=True), lambda: tf.random_uniform([])
        )
    seeds = [
        (op.get_attr("seed"), op.get_attr("seed2"))
        for op in graph.get_operations()
        if op.type == "RandomUniform"
    ]
    assert seeds == [(0, 0), (0, 0)]


@dataclasses.dataclass(frozen=True)
class _Logits:
    logits: tf.Tensor
    name: str


_Pair = collections.namedtuple("_Pair", "first second")


def test_outputs_are_mapped():
    """Tensors and ops are those of the clone in any structure; all else is shared."""
    thing = object()

    def model_fn():
        a = tf.constant([1.0, 2.0], name="a")
        weights = tf.get_variable("weights", [2])
        return {
            "list": [a, (a.op, _Pair(a, thing))],
            "sparse": tf.SparseTensor(tf.zeros([1, 1], tf.int64), [3.0], [2]),
            "data": _Logits(a, "logits"),
            "ordered": collections.OrderedDict(z=a, y=None),
            "variable": weights,
            "update": weights.assign_add(a),
        }

    clones = create_clones(LogicalDevices(num_clones=2, copy_clones=True), model_fn)
    first, second = (clone.outputs for clone in clones)
    assert second["list"][0].name == "clone_1/a:0"
    assert second["list"][1][0].name == "clone_1/a"
    assert second["list"][1][1] == _Pair(second["list"][0], thing)
    assert isinstance(second["sparse"], tf.SparseTensor)
    assert second["sparse"].values.name.startswith("clone_1/")
    assert (second["data"].logits.name, second["data"].name) == ("clone_1/a:0", "logits")
    assert list(second["ordered"]) == ["z", "y"]
    assert second["variable"] is first["variable"]
    assert getattr(second["update"], "op", second["update"]).name.startswith("clone_1/")
    assert first["list"][0].name == "clone_0/a:0"


def test_shapes_that_were_set_by_hand_are_kept():
    """What `set_shape` said of an output holds for its copies."""

    def model_fn(batches):
        output = tf.py_func(lambda x: x, [next(batches)], tf.float32)
        output.set_shape([2, 3])
        return output

    batches = iter([tf.ones([2, 3]), tf.zeros([2, 3])])
    clones = create_clones(LogicalDevices(num_clones=2, copy_clones=True), model_fn, [batches])
    assert clones[1].outputs.shape == [2, 3]


def test_outputs_without_tensors_are_shared():
    """What holds no tensor of the clone is the very object that `model_fn` returned."""
    outputs = {"a": [1, (2, None)]}
    clones = create_clones(LogicalDevices(num_clones=2, copy_clones=True), lambda: outputs)
    assert all(clone.outputs is outputs for clone in clones)


@pytest.mark.gpu
@pytest.mark.slow
def test_training_batches_are_the_clones_own(variable_kind):
    """With the digits pipeline copies and calls see the same batches, and other attributes."""

    def build(copy):
        digits = inputs.get_dataset("digits", "train")
        batches = inputs.train_batches(digits, preprocessing="lenet", num_clones=2, batch_size=8)

        def model_fn(batches):
            assert batches.num_batches_per_epoch == 1437 // 16
            with tf.name_scope("input"), tf.device("/device:CPU:3"):
                batch = next(batches)
            logits = slim.fully_connected(
                slim.flatten(batch["image"]), 10, None, weights_initializer=formula
            )
            tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)

        config = LogicalDevices(num_clones=2, copy_clones=copy)
        model = deploy(config, model_fn, [batches], optimizer=SGD(0.1))
        graph = tf.get_default_graph()
        with tf.Session(config=cpu_config(4)) as session:
            harness.start(session)
            session.run(batches.initializer)
            return copies.nodes(graph), [session.run(model.train_op) for _ in range(3)]

    called, copied = _both(build)
    assert {k: v["device"] for k, v in copied[0].items()} == {
        k: v["device"] for k, v in called[0].items()
    }
    assert copied[1] == called[1]


@pytest.mark.gpu
def test_what_leaves_the_scope_is_copied():
    """A loss outside of the clone's scope is copied under the next free name, as a call does."""

    def build(copy):
        def model_fn():
            weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
            with tf.name_scope(None):
                tf.losses.add_loss(tf.square(weight, name="loss"))

        config = LogicalDevices(num_clones=2, copy_clones=copy)
        model = deploy(config, model_fn, optimizer=SGD(0.25))
        losses, _ = harness.run_steps(model, steps=2)
        return copies.collections(tf.get_default_graph()), losses

    called, copied = _both(build)
    assert copied == called
    assert copied[0][tf.GraphKeys.LOSSES] == ["loss", "loss_1"]
    assert copied[1] == [1, 0.25]  # w^2 at 1 and, after a step of 2 w / 4, at 1 / 2


def test_two_deployments_in_a_graph():
    """A second deployment copies its own clones, and reuses the variables."""
    golden = GOLDENS["slim_mlp"]

    def build(copy):
        config = LogicalDevices(num_clones=2, copy_clones=copy)
        for reuse in (False, True):
            with tf.variable_scope("", reuse=reuse):
                deploy(
                    config,
                    lambda batches: golden.model_fn(*next(batches)),
                    [copies.batches_of(golden, 2)],
                    optimizer=None if reuse else SGD(0.1),
                )
        graph = tf.get_default_graph()
        return copies.nodes(graph), copies.collections(graph)

    called, copied = _both(build)
    assert copied == called


@pytest.mark.gpu
@pytest.mark.parametrize("which", [(0, 1), (1,)], ids=["in all", "in the second"])
def test_losses_added_after_create_clones_count(which):
    """A loss w x added by hand gives the gradient x of each clone that it is added to.

    The clones' own losses are w^2, at w = 3: the gradient is 2 w + x * number / 2.
    """

    def model_fn():
        weight = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
        tf.losses.add_loss(weight * weight)
        return weight * 5.0

    clones = create_clones(LogicalDevices(num_clones=2, copy_clones=True), model_fn)
    for i in which:
        with tf.name_scope(clones[i].scope):
            tf.losses.add_loss(clones[i].outputs)
    total, [(gradient, _)] = optimize_clones(clones, SGD(0.1))
    with tf.Session(config=cpu_config(2)) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total) == 9 + 15 * len(which) / 2
        assert session.run(gradient) == 6 + 5 * len(which) / 2


def test_a_variable_made_by_the_optimizer_is_shared():
    """Where building gradients makes variables, they are built by calls."""

    class Scaling(SGD):
        def compute_gradients(self, loss, *args, **kwargs):
            with tf.variable_scope("", reuse=tf.AUTO_REUSE), tf.device("/device:CPU:0"):
                scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
            return super().compute_gradients(loss * scale, *args, **kwargs)

    def model_fn():
        tf.losses.add_loss(tf.square(tf.get_variable("w", [], initializer=formula)))

    config = LogicalDevices(num_clones=2, copy_clones=True)
    model = deploy(config, model_fn, optimizer=Scaling(0.1))
    assert harness.run_steps(model)[0] > [0]


def _words(golden, num_clones):
    """Batches whose values are not known before the graph runs."""
    for features, labels in copies.batches_of(golden, num_clones):
        yield tf.placeholder_with_default(features, features.shape), labels


@pytest.mark.one_mode
def test_partitioned_variables_are_shared(variable_kind):
    """Clones train a variable in parts as they do when they are called."""
    golden = GOLDENS["embedding"]

    def build(copy):
        config = LogicalDevices(num_clones=2, copy_clones=copy)
        with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
            model = deploy(
                config,
                lambda batches: golden.model_fn(*next(batches)),
                [_words(golden, 2)],
                optimizer=SGD(0.1),
            )
        return harness.run_steps(model, {v.op.name: v for v in tf.global_variables()}, 3)

    (expected_losses, expected), (losses, weights) = _both(build)
    assert losses == expected_losses
    for key, value in expected.items():
        np.testing.assert_array_equal(weights[key], value, err_msg=key)


def test_shapes_may_not_depend_on_batches():
    """A batch whose values are known when the graph is built may not decide a shape."""
    config = LogicalDevices(num_clones=2, copy_clones=True)
    batches = iter([tf.constant(2), tf.constant(3)])
    with pytest.raises(ValueError, match=r"shapes do not .* got \(2,\) for clone_0/.* and \(3,\)"):
        create_clones(config, lambda sizes: tf.zeros([next(sizes)]), [batches])

"""XLA: what is compiled, what draws the same numbers, and what the report says could not be.

That compiled clones train as others do is in `tests/laws.py`.
"""

import itertools
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    create_clones,
    deploy,
    describe,
    internals,
    random_by_step,
)
from tests import harness, laws
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula
from tests.staged import MODELS as STAGED


def _built(model, num_clones=2, **fields):
    """A golden on clones that are compiled."""
    return harness.Replica(LogicalDevices(num_clones=num_clones, xla=True, **fields), model)


def _traced(run, fetches=None):
    """The nodes that TensorFlow has run in a step, or for other fetches."""
    options = tf.RunOptions(output_partition_graphs=True)
    trace = tf.RunMetadata()
    with run.open() as session:
        session.run(fetches or run.model.train_op, options=options, run_metadata=trace)
    return [node for graph in trace.partition_graphs for node in graph.node]


def _to_compile(graph):
    """Names of the ops that are to be compiled."""
    nodes = graph.as_graph_def().node
    return {node.name for node in nodes if node.attr["_XlaCompile"].b}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_clones", "variable_kind"),
    # That each is compiled with both kinds of variables is in `tests/laws.py`.
    list(zip(GOLDENS, itertools.cycle([1, 2, 2, 1]), itertools.cycle(laws.KINDS), strict=False)),
    indirect=["variable_kind"],
)
def test_what_is_marked_is_compiled(name, num_clones, variable_kind):
    """TensorFlow runs clusters in place of the ops of the clones; those that are left it runs."""
    run = _built(GOLDENS[name], num_clones)
    nodes = _traced(run)
    assert sum(node.op == "_XlaRun" for node in nodes) >= num_clones
    compiled = _to_compile(run.graph)
    left = {node.name for node in nodes} & compiled
    assert len(compiled) > 10 * num_clones
    # It takes out again what is cheap and only used outside.
    assert {node.op for node in nodes if node.name in left} <= {"Const", "Fill"}


@pytest.mark.slow
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_stages(copy, variable_kind):
    """Stages of clones on devices of their own are compiled each for itself."""
    fields = {"devices_per_clone": 2, "clone_on_cpu": True, "copy_clones": copy}
    run = _built(STAGED["embedding"], **fields)
    devices = {
        tf.DeviceSpec.from_string(node.device).device_index
        for node in _traced(run)
        if node.op == "_XlaRun"
    }
    assert devices == {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.one_mode
def test_twice_the_same_bits():
    """A second run of compiled clones ends with the bits of the first one."""
    golden = GOLDENS["convolution"]
    harness.assert_equal(_built(golden)(), _built(golden)())


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("by_step", [False, True], ids=["random", "by step"])
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_random_numbers(copy, by_step):
    """Clones drop the same units as if they were not compiled, each clone its own."""

    def model_fn(ones):
        units = tf.nn.dropout(next(ones), rate=0.5) * tf.get_variable("w", [], initializer=formula)
        tf.losses.add_loss(tf.reduce_mean(units))
        return units

    found = []
    for xla in (False, True):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            config = LogicalDevices(num_clones=2, copy_clones=copy, xla=xla)
            model = deploy(
                config,
                random_by_step(model_fn) if by_step else model_fn,
                [iter([tf.ones([64]), tf.ones([64])])],
                optimizer=harness.sgd(),
            )
            outputs = [clone.outputs for clone in model.clones]
            with tf.Session(config=cpu_config()) as session:
                harness.start(session)
                found.append(session.run([model.train_op, outputs]))
    (loss, units), (compiled_loss, compiled) = found
    assert compiled_loss == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(compiled, units, rtol=1e-6)
    assert ((compiled[0] == 0) != (compiled[1] == 0)).any()


def test_no_cluster_has_ops_of_two_parts():
    """Each part of each clone has a scope of its own, its gradients included; all else has none."""
    run = _built(GOLDENS["slim_mlp"], accumulate_steps=2)
    graph = run.graph
    for op in graph.get_operations():
        scopes = [clone.scope for clone in run.model.clones if op.name.startswith(clone.scope)]
        attributes = op.node_def.attr
        if "_XlaCompile" in attributes and attributes["_XlaCompile"].b:
            assert [attributes["_XlaScope"].s.decode() + "/"] == scopes, op.name
    for scope in ("clone_0/part_1", "clone_1/part_0"):
        for name in ("logits/MatMul", f"gradients/{scope}/logits/MatMul_grad/MatMul_1"):
            op = graph.get_operation_by_name(f"{scope}/{name}")
            assert op.get_attr("_XlaCompile")
            assert op.get_attr("_XlaScope") == scope.encode()
    update = graph.get_operation_by_name("train_op")
    assert not update.get_attr("_XlaCompile")
    assert update.get_attr("_XlaScope") == b""


def test_initial_values_are_not_compiled():
    """What is computed only once is not compiled first."""
    run = _built(GOLDENS["slim_mlp"], 1)
    nodes = _traced(run, run.initialize)
    assert nodes
    assert not [node.name for node in nodes if node.op == "_XlaRun"]


@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_own_choice(copy):
    """What `model_fn` keeps from being compiled stays so, in copies too."""

    def model_fn(numbers):
        product = next(numbers) * tf.get_variable("w", [], initializer=formula)
        with tf.xla.experimental.jit_scope(compile_ops=False):
            own = tf.tanh(product, name="own")
        tf.losses.add_loss(tf.reduce_sum(own))

    config = LogicalDevices(num_clones=2, copy_clones=copy, xla=True)
    deploy(config, model_fn, [iter([tf.ones([4]), tf.ones([4])])])
    compiled = _to_compile(tf.get_default_graph())
    assert {"clone_0/mul", "clone_1/mul", "clone_0/Sum", "clone_1/Sum"} <= compiled
    assert not {"clone_0/own", "clone_1/own"} & compiled


def test_without_xla_nothing_is_marked():
    """By default no op has an attribute of XLA."""
    run = harness.Replica(LogicalDevices(num_clones=2), GOLDENS["slim_mlp"])
    nodes = run.graph.as_graph_def().node
    assert not [node.name for node in nodes if any("Xla" in key for key in node.attr)]
    assert describe(run.model).compilation == ""


def test_report():
    """The report says how many ops are compiled, and the types of the others, as they run."""

    def model_fn():
        words = tf.strings.as_string(tf.range(4))
        numbers = tf.strings.to_number(words) + tf.get_variable("w", [], initializer=formula)
        loops = tf.while_loop(lambda x: tf.reduce_sum(x) < 10, lambda x: [x + 1.0], [numbers])
        tf.losses.add_loss(tf.reduce_mean(tf.random.uniform([4]) * loops))

    model = deploy(LogicalDevices(num_clones=2, xla=True), model_fn, optimizer=harness.sgd())
    report = describe(model)
    counts, types = re.fullmatch(
        r"xla: (\d+ of \d+) ops of the clones are compiled, not (.*)", report.compilation
    ).groups()
    compiled, count = map(int, counts.split(" of "))
    others = {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", types)}
    assert {"AsString": 2, "RandomUniform": 2, "StringToNumber": 2}.items() <= others.items()
    assert compiled + sum(others.values()) == count
    assert str(report).startswith(report.compilation)


@pytest.mark.one_mode
def test_all_is_compiled(variable_kind):
    """Where XLA can compile everything the report says so."""
    model = _built(GOLDENS["linear"]).model
    assert re.fullmatch(r"xla: all \d+ ops of the clones are compiled", describe(model).compilation)


def test_tensorflow_without_xla(monkeypatch):
    """Clones cannot be compiled by a TensorFlow that was built without XLA."""
    monkeypatch.setattr(internals, "xla_kernels", lambda op_type, device_type: [])
    with pytest.raises(ValueError, match=r"xla must be False with a TensorFlow .* got True"):
        create_clones(DeploymentConfig(xla=True), lambda: None)
    assert len(create_clones(DeploymentConfig(), lambda: None)) == 1

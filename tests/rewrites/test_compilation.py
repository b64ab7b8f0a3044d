"""XLA: what is compiled trains as what is not, and the report says what could not be."""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    all_reduce,
    create_clones,
    current_clone,
    deploy,
    deployment,
    describe,
    hooks,
    internals,
    optimize_clones,
    random_by_step,
)
from tests import copies
from tests.clusters import start_cluster
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula

STEPS = 3


def _deploy(config, golden, **options):
    """A golden on clones that take parts of its examples from an iterator."""
    return deploy(
        config,
        lambda batches: golden.model_fn(*next(batches)),
        [copies.batches_of(golden, config.batches_per_step)],
        optimizer=tf.train.MomentumOptimizer(0.1, 0.9),
        **options,
    )


def _steps(model, target="", session_config=None):
    """Losses of some steps, and all variables at their end by name."""
    with tf.Session(target, config=session_config or cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        for hook in hooks.session_hooks():
            hook.after_create_session(session, tf.train.Coordinator())
        losses = [session.run(model.train_op) for _ in range(STEPS)]
        return losses, session.run({v.op.name: v for v in tf.global_variables()})


def _train(name, xla, num_clones=2, **fields):
    with tf.Graph().as_default():
        config = LogicalDevices(num_clones=num_clones, xla=xla, **fields)
        return _steps(_deploy(config, GOLDENS[name], clip_norm=1.0))


def _assert_close(actual, expected):
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-5)
    assert actual[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(actual[1][name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def _traced(fetches):
    """Names and types of the nodes that TensorFlow has run, by the device of each."""
    options = tf.RunOptions(output_partition_graphs=True)
    trace = tf.RunMetadata()
    proto = deployment.session_config(LogicalDevices(xla=True), cpu_config())
    with tf.Session(config=proto) as session:
        session.run(tf.global_variables_initializer())
        session.run(fetches, options=options, run_metadata=trace)
    return [node for graph in trace.partition_graphs for node in graph.node]


def _to_compile(graph):
    """Names of the ops that are to be compiled."""
    nodes = graph.as_graph_def().node
    return {node.name for node in nodes if node.attr["_XlaCompile"].b}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
@pytest.mark.parametrize("name", list(GOLDENS))
def test_compiled_clones_train_as_others_do(name, copy, variable_kind):
    """Losses and variables are those of clones that are not compiled, to 1e-5."""
    _assert_close(_train(name, xla=True, copy_clones=copy), _train(name, xla=False))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", list(GOLDENS))
def test_gradients_are_the_same(name, variable_kind):
    """Each gradient of the sum of two clones is that of clones that are not compiled, to 1e-5."""
    found = []
    for xla in (False, True):
        with tf.Graph().as_default():
            config = LogicalDevices(num_clones=2, xla=xla)
            golden = GOLDENS[name]
            clones = create_clones(
                config,
                lambda batches, golden=golden: golden.model_fn(*next(batches)),
                [copies.batches_of(golden, 2)],
            )
            loss, pairs = optimize_clones(clones, tf.train.GradientDescentOptimizer(0.1))
            gradients = {v.op.name: tf.convert_to_tensor(g) for g, v in pairs}
            with tf.Session(config=cpu_config()) as session:
                session.run(tf.global_variables_initializer())
                found.append(session.run([loss, gradients]))
    (loss, gradients), (compiled_loss, compiled) = found
    np.testing.assert_allclose(compiled_loss, loss, rtol=1e-5)
    assert compiled.keys() == gradients.keys()
    for variable, gradient in gradients.items():
        limit = 1e-5 * max(1.0, np.abs(gradient).max())
        np.testing.assert_allclose(compiled[variable], gradient, rtol=0, atol=limit)


@pytest.mark.slow
@pytest.mark.parametrize("num_clones", [1, 2])
@pytest.mark.parametrize("name", list(GOLDENS))
def test_what_is_marked_is_compiled(name, num_clones, variable_kind):
    """TensorFlow runs clusters in place of the ops of the clones; those that are left it runs."""
    golden = GOLDENS[name]
    model = _deploy(LogicalDevices(num_clones=num_clones, xla=True), golden)
    nodes = _traced(model.train_op)
    assert sum(node.op == "_XlaRun" for node in nodes) >= num_clones
    compiled = _to_compile(tf.get_default_graph())
    left = {node.name for node in nodes} & compiled
    assert len(compiled) > 10 * num_clones
    # It takes out again what is cheap and only used outside.
    assert {node.op for node in nodes if node.name in left} <= {"Const", "Fill"}


def _stages(config, batches):
    """A hidden layer on the first device of a clone, the output on its last one."""
    features, labels = next(batches)
    last = config.devices_per_clone - 1
    with tf.device(config.stage_device(current_clone(), 0)):
        hidden = tf.get_variable("hidden", [2, 4], initializer=formula)
        net = tf.tanh(tf.matmul(features, hidden))
    with tf.device(config.stage_device(current_clone(), last)):
        weights = tf.get_variable("weights", [4, 1], initializer=formula)
        tf.losses.mean_squared_error(labels, tf.matmul(net, weights))


@pytest.mark.slow
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_stages(copy, variable_kind):
    """Stages of clones on devices of their own are compiled each for itself."""
    found = []
    for xla in (False, True):
        with tf.Graph().as_default():
            config = DeploymentConfig(
                num_clones=2, clone_on_cpu=True, devices_per_clone=2, copy_clones=copy, xla=xla
            )
            model = deploy(
                config,
                _stages,
                [config, copies.batches_of(GOLDENS["linear"], 2)],
                optimizer=tf.train.MomentumOptimizer(0.1, 0.9),
            )
            found.append(_steps(model))
            if xla:
                clusters = [node for node in _traced(model.train_op) if node.op == "_XlaRun"]
    _assert_close(found[1], found[0])
    devices = {tf.DeviceSpec.from_string(node.device).device_index for node in clusters}
    assert devices == {0, 1, 2, 3}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
@pytest.mark.parametrize("name", ["slim_mlp", "embedding", "batch_norm"])
def test_accumulated_parts(name, copy, variable_kind):
    """Parts of a clone are compiled each for itself, and add up to the same."""
    parts = {"accumulate_steps": 3}
    _assert_close(_train(name, xla=True, copy_clones=copy, **parts), _train(name, False, **parts))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["slim_mlp", "embedding", "batch_norm"])
def test_all_reduce(name, variable_kind):
    """Clones with variables of their own are compiled as others are."""
    found = []
    for xla in (False, True):
        with tf.Graph().as_default():
            config = LogicalDevices(num_clones=2, all_reduce=True, xla=xla)
            model = _deploy(config, GOLDENS[name])
            found.append(_steps(model, "", all_reduce.session_config(config, cpu_config())))
    _assert_close(found[1], found[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slim_mlp", "embedding"])
def test_asynchronous_clones(name, variable_kind):
    """Clones that take turns in updating the variables train as those that are not compiled."""
    found = []
    for xla in (False, True):
        with tf.Graph().as_default():
            config = LogicalDevices(num_clones=2, xla=xla)
            model = _deploy(config, GOLDENS[name], asynchronous=True)
            with tf.Session(config=cpu_config()) as session:
                session.run(tf.global_variables_initializer())
                updates = [each.train_op for each in model.clone_updates]
                losses = [session.run(updates[i]) for i in (0, 1, 1, 0)]
                found.append((losses, session.run({v.op.name: v for v in tf.global_variables()})))
    _assert_close(found[1], found[0])


@pytest.mark.slow
@pytest.mark.parametrize("replicas_to_aggregate", [None, 1], ids=["replica", "synchronous"])
def test_parameter_servers(replicas_to_aggregate, variable_kind):
    """Clones of a worker whose variables are on parameter servers train the same."""
    [target] = start_cluster(num_workers=1, num_ps=2)
    found = []
    for xla in (False, True):
        with tf.Graph().as_default(), tf.container(f"{variable_kind}-{xla}"):
            config = LogicalDevices(num_clones=2, num_ps_tasks=2, xla=xla)
            model = _deploy(
                config, GOLDENS["slim_mlp"], replicas_to_aggregate=replicas_to_aggregate
            )
            found.append(_steps(model, target, tf.ConfigProto()))
    _assert_close(found[1], found[0])


@pytest.mark.slow
@pytest.mark.parametrize("num_clones", [1, 2])
def test_twice_the_same_bits(num_clones, variable_kind):
    """A second run of compiled clones ends with the bits of the first one."""
    first, second = (_train("convolution", True, num_clones) for _ in range(2))
    assert first[0] == second[0]
    for name, value in first[1].items():
        np.testing.assert_array_equal(second[1][name], value, err_msg=name)


@pytest.mark.slow
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
                optimizer=tf.train.GradientDescentOptimizer(0.1),
            )
            with tf.Session(config=cpu_config()) as session:
                session.run(tf.global_variables_initializer())
                outputs = [clone.outputs for clone in model.clones]
                found.append(session.run([model.train_op, outputs]))
    (loss, units), (compiled_loss, compiled) = found
    assert compiled_loss == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(compiled, units, rtol=1e-6)
    assert ((compiled[0] == 0) != (compiled[1] == 0)).any()


def test_no_cluster_has_ops_of_two_parts():
    """Each part of each clone has a scope of its own, its gradients included; all else has none."""
    config = LogicalDevices(num_clones=2, accumulate_steps=2, xla=True)
    model = _deploy(config, GOLDENS["slim_mlp"])
    graph = tf.get_default_graph()
    for op in graph.get_operations():
        scopes = [clone.scope for clone in model.clones if op.name.startswith(clone.scope)]
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
    _deploy(LogicalDevices(xla=True), GOLDENS["slim_mlp"])
    initializer = tf.global_variables_initializer()
    nodes = _traced(initializer)
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
    model = _deploy(LogicalDevices(num_clones=2), GOLDENS["slim_mlp"])
    nodes = tf.get_default_graph().as_graph_def().node
    assert not [node.name for node in nodes if any("Xla" in key for key in node.attr)]
    assert describe(model).compilation == ""


def test_report():
    """The report says how many ops are compiled, and the types of the others, as they run."""

    def model_fn():
        words = tf.strings.as_string(tf.range(4))
        numbers = tf.strings.to_number(words) + tf.get_variable("w", [], initializer=formula)
        loops = tf.while_loop(lambda x: tf.reduce_sum(x) < 10, lambda x: [x + 1.0], [numbers])
        tf.losses.add_loss(tf.reduce_mean(tf.random.uniform([4]) * loops))

    model = deploy(
        LogicalDevices(num_clones=2, xla=True),
        model_fn,
        optimizer=tf.train.GradientDescentOptimizer(0.1),
    )
    report = describe(model)
    counts, types = re.fullmatch(
        r"xla: (\d+ of \d+) ops of the clones are compiled, not (.*)", report.compilation
    ).groups()
    compiled, count = map(int, counts.split(" of "))
    others = {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", types)}
    assert {"AsString": 2, "RandomUniform": 2, "StringToNumber": 2}.items() <= others.items()
    assert compiled + sum(others.values()) == count
    assert str(report).startswith(report.compilation)


def test_all_is_compiled(variable_kind):
    """Where XLA can compile everything the report says so."""
    model = _deploy(LogicalDevices(num_clones=2, xla=True), GOLDENS["linear"])
    assert re.fullmatch(r"xla: all \d+ ops of the clones are compiled", describe(model).compilation)


def test_tensorflow_without_xla(monkeypatch):
    """Clones cannot be compiled by a TensorFlow that was built without XLA."""
    monkeypatch.setattr(internals, "xla_kernels", lambda op_type, device_type: [])
    with pytest.raises(ValueError, match=r"xla must be False with a TensorFlow .* got True"):
        create_clones(DeploymentConfig(xla=True), lambda: None)
    assert len(create_clones(DeploymentConfig(), lambda: None)) == 1

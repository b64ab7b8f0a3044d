"""`create_clones`: scopes, devices, variables, and what belongs to which clone."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import Clone, DeploymentConfig, create_clones, slim
from model_deploy.clones import claim_member, collect_members


def _layer(features=None):
    features = tf.ones([2, 3]) if features is None else features
    return slim.fully_connected(features, 4, scope="layer")


def test_one_clone_has_no_scope():
    """A single clone is built at the top of the graph."""
    (clone,) = create_clones(DeploymentConfig(clone_on_cpu=True), _layer)
    assert isinstance(clone, Clone)
    assert (clone.scope, clone.device) == ("", "/device:CPU:0")
    assert clone.outputs.op.name == "layer/Relu"


def test_clones_have_scopes_and_devices():
    """Each of several clones has its scope and its GPU."""
    clones = create_clones(DeploymentConfig(num_clones=2), _layer)
    assert [(c.scope, c.device) for c in clones] == [
        ("clone_0/", "/device:GPU:0"),
        ("clone_1/", "/device:GPU:1"),
    ]
    for clone in clones:
        assert clone.outputs.op.name == f"{clone.scope}layer/Relu"
        assert clone.outputs.device == clone.device


def test_clones_share_variables(variable_kind):
    """The first clone makes the variables, on the CPU; the second one reuses them."""
    create_clones(DeploymentConfig(num_clones=2), _layer)
    names = [v.op.name for v in tf.global_variables()]
    assert names == ["layer/weights", "layer/biases"]
    assert {v.device for v in tf.global_variables()} == {"/device:CPU:0"}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: slim.model_variable("v", [2]), id="slim.model_variable"),
        pytest.param(lambda: slim.variable("v", [2]), id="slim.variable"),
        pytest.param(lambda: tf.get_variable("v", [2]), id="tf.get_variable"),
        pytest.param(lambda: tf.Variable(tf.zeros([2]), name="v"), id="tf.Variable"),
    ],
)
@pytest.mark.parametrize(
    ("options", "device"),
    [({}, "/device:CPU:0"), ({"num_ps_tasks": 1}, "/job:ps/task:0/device:CPU:0")],
    ids=["no ps", "ps"],
)
def test_every_kind_of_variable_is_placed(make, options, device, variable_kind):
    """Slim's and TensorFlow's own variables land on `variables_device()`."""
    (clone,) = create_clones(DeploymentConfig(**options), make)
    assert clone.outputs.device == device


def test_devices_named_in_model_fn_are_kept(variable_kind):
    """What `model_fn` says of a device goes before what the config says."""

    def model_fn():
        with tf.device("/device:GPU:1"):
            return (
                slim.variable("a", [], device="/device:CPU:1"),
                tf.get_variable("b", []),
                tf.ones(1),
            )

    (clone,) = create_clones(DeploymentConfig(), model_fn)
    assert [v.device for v in clone.outputs] == ["/device:CPU:1", "/device:GPU:1", "/device:GPU:1"]


def test_replicas_name_their_task():
    """A clone of replica 1 runs on task 1, not on that of replica 0."""
    config = DeploymentConfig(num_clones=2, replica_id=1, num_replicas=2, num_ps_tasks=1)
    clones = create_clones(config, _layer)
    assert [c.outputs.device for c in clones] == [
        "/job:worker/task:1/device:GPU:0",
        "/job:worker/task:1/device:GPU:1",
    ]


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param(None, id="None"),
        pytest.param(3, id="number"),
        pytest.param({"a": [1, (2, None)]}, id="nested"),
    ],
)
def test_outputs_are_what_model_fn_returned(outputs):
    """`Clone.outputs` is the very thing that `model_fn` returned."""
    clones = create_clones(DeploymentConfig(num_clones=2), lambda: outputs)
    assert all(clone.outputs is outputs for clone in clones)


def test_arguments_are_passed_on():
    """`args` and `kwargs` reach every clone."""
    clones = create_clones(
        DeploymentConfig(num_clones=2), lambda *a, **k: (a, k), [1, 2], {"three": 3}
    )
    assert [clone.outputs for clone in clones] == [((1, 2), {"three": 3})] * 2


def test_summaries_of_a_model_are_on_the_cpu():
    """Summaries made on a GPU clone go to the worker's CPU, even if a GPU was asked for."""

    def model_fn():
        summaries = [tf.summary.scalar("a", 1.0), tf.summary.histogram("b", [1.0])]
        with tf.device("/device:GPU:3"):
            return [*summaries, tf.summary.image("c", tf.zeros([1, 2, 2, 1]))]

    for clone in create_clones(DeploymentConfig(num_clones=2, num_ps_tasks=1), model_fn):
        assert {s.device for s in clone.outputs} == {"/job:worker/device:CPU:0"}


def test_eager_execution_is_an_error():
    """Without a graph there is nothing to put clones into."""
    with tf.init_scope(), pytest.raises(RuntimeError, match="clones are built in a graph"):
        _in_eager_mode(lambda: create_clones(DeploymentConfig(), lambda: None))


def _in_eager_mode(function):
    from tensorflow.python.eager import context  # noqa: PLC0415 - not public

    with context.eager_mode():
        return function()


def _losses(value):
    tf.losses.add_loss(tf.constant(float(value), name=f"loss_{value}"))


def test_members_are_divided():
    """A loss belongs to the clone in which it was made, or to none."""
    values = iter([1, 2])
    _losses(7)
    clones = create_clones(DeploymentConfig(num_clones=2), lambda: _losses(next(values)))
    _losses(8)
    members = collect_members(tf.GraphKeys.LOSSES, clones)
    assert [[t.op.name for t in part] for part in members.clones] == [
        ["clone_0/loss_1"],
        ["clone_1/loss_2"],
    ]
    assert [t.op.name for t in members.shared] == ["loss_7", "loss_8"]


def test_members_made_later_in_a_scope_count():
    """A loss that is added in a clone's scope after `create_clones` is that clone's."""
    clones = create_clones(DeploymentConfig(num_clones=2), lambda: None)
    with tf.name_scope(clones[1].scope):
        _losses(1)
    members = collect_members(tf.GraphKeys.LOSSES, clones)
    assert [len(part) for part in (*members.clones, members.shared)] == [0, 1, 0]


def test_members_that_leave_their_scope_count():
    """A loss made inside `model_fn` is its clone's, whatever its name."""

    def model_fn():
        with tf.name_scope(None):
            _losses(1)

    clones = create_clones(DeploymentConfig(num_clones=2), model_fn)
    members = collect_members(tf.GraphKeys.LOSSES, clones)
    assert [len(part) for part in (*members.clones, members.shared)] == [1, 1, 0]


def test_members_of_other_deployments_are_left_out():
    """Two deployments in one graph do not see each other's losses."""
    first = create_clones(DeploymentConfig(), lambda: _losses(1))
    second = create_clones(DeploymentConfig(num_clones=2), lambda: _losses(2))
    third = create_clones(DeploymentConfig(), lambda: _losses(3))
    for clones in (first, second, third):
        members = collect_members(tf.GraphKeys.LOSSES, clones)
        assert [len(part) for part in members.clones] == [1] * len(clones)
        assert members.shared == []


def test_claimed_members_are_a_clones():
    """What is claimed for a clone is not shared with another deployment."""
    first = create_clones(DeploymentConfig(), lambda: None)
    second = create_clones(DeploymentConfig(), lambda: None)
    summary = tf.summary.scalar("total_loss", 1.0)
    claim_member(first[0], tf.GraphKeys.SUMMARIES, summary)
    assert collect_members(tf.GraphKeys.SUMMARIES, first).clones == [[summary]]
    assert collect_members(tf.GraphKeys.SUMMARIES, second) == ([[]], [])


def test_checkpoints_do_not_warn_of_clones(tmp_path, caplog):
    """What the graph knows of its clones stays out of the saved meta graph."""
    create_clones(DeploymentConfig(clone_on_cpu=True), _layer)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "model"))
    assert caplog.records == []

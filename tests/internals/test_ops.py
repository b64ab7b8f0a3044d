"""Ops that are changed after they were made do what they were changed to."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import internals


def test_set_device():
    """An op moves to a device, and away from any."""
    op = tf.constant(1.0).op
    internals.set_device(op, "/job:worker/task:1/device:CPU:0")
    assert op.device == "/job:worker/task:1/device:CPU:0"
    internals.set_device(op, "")
    assert op.device == ""


def test_replace_input():
    """An op computes with its new input."""
    difference = tf.constant(5.0) - tf.constant(3.0)
    internals.replace_input(difference.op, 1, tf.constant(4.0))
    with tf.Session() as session:
        assert session.run(difference) == 1.0


def test_replace_input_refuses_another_graph():
    """An input of another graph is an error at once."""
    negative = -tf.constant(5.0)
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with pytest.raises(ValueError, match="graph"):
        internals.replace_input(negative.op, 0, other)


def test_add_control_inputs():
    """An op waits for what it is told to wait for."""
    variable = tf.get_variable("variable", initializer=1.0)
    doubled = tf.identity(2.0)
    internals.add_control_inputs(doubled.op, [variable.assign(7.0).op])
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(doubled)
        assert session.run(variable) == 7.0


def test_attributes():
    """An attribute is there once it is set, and gone once it is cleared."""
    op = tf.constant(1.0).op
    internals.set_attribute(op, "_mark", tf.AttrValue(s=b"here"))
    assert op.get_attr("_mark") == b"here"
    internals.clear_attribute(op, "_mark")
    assert "_mark" not in op.node_def.attr


@pytest.mark.parametrize(("old", "expected"), [(True, True), (False, False)])
def test_in_old_control_flow(old, expected):
    """Only conditions of TensorFlow 1 have ops of the graph inside of them."""
    was_new = tf.control_flow_v2_enabled()
    (tf.disable_control_flow_v2 if old else tf.enable_control_flow_v2)()
    seen = []

    def branch():
        seen.append(internals.makes_old_control_flow(tf.get_default_graph()))
        return tf.constant(1.0) + 1

    try:
        tf.cond(tf.constant(value=True), branch, lambda: tf.constant(2.0))
    finally:
        (tf.enable_control_flow_v2 if was_new else tf.disable_control_flow_v2)()
    assert seen == [expected]
    assert not internals.makes_old_control_flow(tf.get_default_graph())
    inside = [op for op in tf.get_default_graph().get_operations() if op.name.startswith("cond/")]
    assert any(map(internals.in_old_control_flow, inside)) is expected


@pytest.mark.parametrize(("use_resource", "expected"), [(True, False), (False, True)])
def test_is_reference(use_resource, expected):
    """Reference variables give references, resource variables a handle."""
    variable = tf.get_variable("variable", [2], use_resource=use_resource)
    assert internals.is_reference(variable.op.outputs[0]) is expected


@pytest.mark.not_v1("a loop of TensorFlow 1 is not one op")
def test_loop_with_more_inputs_and_outputs():
    """A loop that gets a second value, in its functions too, gives both of them."""
    tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])
    tf.while_loop(lambda i, _: i < 3, lambda i, x: [i + 1, x * 2], [tf.constant(0), tf.constant(1)])
    loops = [op for op in tf.get_default_graph().get_operations() if "While" in op.type]
    small, large = sorted(loops, key=lambda op: len(op.inputs))
    for key in ("T", "output_shapes", "body", "cond"):
        internals.set_attribute(small, key, large.node_def.attr[key])
    internals.add_loop_inputs(small, list(large.inputs)[len(small.inputs) :])
    internals.add_outputs(small, list(large.outputs)[len(small.outputs) :])
    assert len(small.outputs) == len(large.outputs)
    with tf.Session() as session:
        assert session.run(small.outputs) == session.run(large.outputs)

"""Tests of `model_deploy.internals.op_creation`."""

import threading

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.internals import making_ops_by

_AS_IT_WAS = tf.Graph._create_op_internal


def _double(new):
    """Makes twice a sum in place of it."""
    if new.type != "AddV2":
        return None
    total = new.make(f"{new.name}/sum", new.inputs, new.attrs)
    return tf.multiply(total.outputs[0], 2, name=f"{new.name}/").op


def _value(tensor):
    with tf.Session() as session:
        return session.run(tensor)


def test_ops_of_a_block_are_made_otherwise():
    """A rule makes the ops of its block, under their names; others are as before."""
    before = tf.add(1, 2)
    with making_ops_by(_double):
        inside = tf.add(1, 2, name="mine")
    after = tf.add(1, 2)
    assert inside.name == "mine:0"
    assert [int(_value(each)) for each in (before, inside, after)] == [3, 6, 3]
    assert tf.Graph._create_op_internal is _AS_IT_WAS


def test_rules_of_inner_blocks_make_what_outer_ones_ask_for():
    """An outer rule's own ops go to the inner rule, and not to itself."""

    def minus(new):
        if new.type != "Mul":
            return None
        product = new.make(f"{new.name}/product", new.inputs, new.attrs)
        return tf.negative(product.outputs[0], name=f"{new.name}/").op

    with making_ops_by(_double), making_ops_by(minus):
        value = tf.add(1, 2)
    assert _value(value) == -6


def test_functions_and_other_threads():
    """Ops in a function's graph are made by the rule; those of another thread are not."""
    found = []

    def other():
        with tf.Graph().as_default():
            found.append(tf.add(1, 2).op.type)

    with making_ops_by(_double):
        doubled = tf.function(lambda x: x + 2)(tf.constant(1))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert int(_value(doubled)) == 6
    assert found == ["AddV2"]


def test_errors_leave_tensorflow_as_it_was():
    """A block that ends with an error leaves nothing behind."""
    with pytest.raises(ValueError, match="no"), making_ops_by(_double):
        raise ValueError("no")
    assert tf.Graph._create_op_internal is _AS_IT_WAS

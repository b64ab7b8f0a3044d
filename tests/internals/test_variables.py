"""What is known of variables and optimizers beside their values."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import internals


@pytest.mark.parametrize("use_resource", [True, False])
def test_is_resource_variable(use_resource):
    """The two kinds of variables are told apart."""
    variable = tf.get_variable("variable", [2], use_resource=use_resource)
    assert internals.is_resource_variable(variable) is use_resource


def test_partitioned_variable():
    """A partitioned variable of other parts has the cut of the first one, and their values."""
    cut = tf.fixed_size_partitioner(2)
    one = tf.get_variable("one", [4, 3], partitioner=cut)
    parts = [tf.get_variable(f"part_{i}", initializer=tf.fill([2, 3], float(i))) for i in range(2)]
    for part, original in zip(parts, one, strict=True):
        assert internals.slice_of(part) is None
        internals.set_slice_of(part, internals.slice_of(original))
    other = internals.partitioned_variable("other", one, parts)
    assert internals.is_partitioned(one)
    assert internals.is_partitioned(other)
    assert not internals.is_partitioned(parts[0])
    assert [internals.slice_of(part).var_offset for part in other] == [[0, 0], [2, 0]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value = session.run(tf.convert_to_tensor(other))
    assert value.tolist() == [[0.0] * 3] * 2 + [[1.0] * 3] * 2


@pytest.mark.parametrize("use_resource", [True, False])
def test_set_initializer(use_resource):
    """A variable starts from what its new initializer says, and is trained if that is said."""
    variable = tf.get_variable("variable", initializer=1.0, use_resource=use_resource)
    internals.set_initializer(variable, variable.assign(5.0).op)
    internals.set_trainable(variable, False)
    assert not variable.trainable
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(variable) == 5.0


def test_forget_slots():
    """An optimizer without its slots makes new ones, beside those that were there."""
    variable = tf.get_variable("variable", initializer=1.0)
    optimizer = tf.train.AdamOptimizer()
    gradients = optimizer.compute_gradients(variable * 2.0)
    optimizer.apply_gradients(gradients)
    first = optimizer.variables()
    internals.forget_slots(optimizer)
    assert optimizer.variables() == []
    optimizer.apply_gradients(gradients)
    assert len(optimizer.variables()) == len(first) == 4
    assert not {v.name for v in first} & {v.name for v in optimizer.variables()}

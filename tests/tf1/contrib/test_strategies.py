"""`tf.contrib.training`'s strategies: which parameter server gets a variable."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import strategies

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("resource", [False, True])
def test_bytes_are_balanced(resource):
    """Each variable goes to the server with the fewest bytes so far."""
    strategy = strategies.GreedyLoadBalancingStrategy(2, strategies.byte_size_load_fn)
    setter = tf.train.replica_device_setter(2, ps_strategy=strategy)
    with tf.device(setter):
        variables = [
            tf.get_variable(f"v{number}", [size], tf.float32, use_resource=resource)
            for number, size in enumerate([10, 3, 4, 5])
        ]
    # 40 bytes on the first; then 12, 28 and 48 on the second.
    assert [each.device for each in variables] == [f"/job:ps/task:{task}" for task in (0, 1, 1, 1)]


def test_random_tasks():
    """Every server gets some of many, the same ones by the same seed."""
    first, second = ([strategy(None) for _ in range(50)] for strategy in _pair())
    assert first == second
    assert set(first) == {0, 1, 2}


def _pair():
    return strategies.RandomStrategy(3, seed=4), strategies.RandomStrategy(3, seed=4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.placeholder(tf.float32, [None]).op, "a known shape"),
        (tf.no_op, "one output, got 0"),
    ],
)
def test_refusals(make, message):
    """What has no size is told."""
    with pytest.raises(ValueError, match=message):
        strategies.byte_size_load_fn(make())

"""However a global batch is divided among synchronous replicas, they make the same updates."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, slim
from model_deploy.hooks import session_hooks
from model_deploy.parameter_servers import Fence, note_fence
from tests import clusters, harness
from tests.goldens import formula

SHARES, STEPS, WORDS = 3, 3, 7


def _model_fn(share):
    """Rows of a table, a layer with batch norm and dropout; a batch follows from its share."""
    table = tf.get_variable("table", [WORDS, 5], initializer=formula)
    words = (tf.range(8) * (share + 2) + share) % WORDS
    hidden = slim.fully_connected(
        tf.nn.embedding_lookup(table, words),
        4,
        activation_fn=None,
        weights_initializer=formula,
        weights_regularizer=slim.l2_regularizer(0.01),
    )
    hidden = slim.dropout(hidden, 0.5, is_training=True)
    hidden = slim.batch_norm(hidden, is_training=True, decay=0.9, epsilon=0.1)
    # Shares of other sizes of loss: a mean that counts them wrongly shows.
    tf.losses.add_loss((share + 1.0) * tf.reduce_mean(tf.square(hidden - tf.range(4.0))))


def _replica(config, **options):
    """The model for the shares of a replica, by momentum."""
    shares = iter(range(config.first_part * config.num_clones, config.global_clones))

    def average():
        return tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())

    return harness.Replica(
        config,
        lambda: _model_fn(next(shares)),
        lambda: tf.train.MomentumOptimizer(0.05, 0.9),
        by_step=True,
        update_ops=[average],
        **options,
    )


def _configs(parts, num_ps, **settings):
    """The deployments of replicas that take so many parts; the servers are numbered backwards."""
    return [
        DeploymentConfig(
            clone_on_cpu=True,
            num_ps_tasks=num_ps,
            replica_id=i,
            num_replicas=len(parts),
            worker_task=2 - i,
            accumulate_steps=count,
            global_parts=SHARES,
            first_part=sum(parts[:i]),
            **settings,
        )
        for i, count in enumerate(parts)
    ]


def _train(parts, num_ps, settings, **options):
    """All variables after some steps, by name."""
    targets = clusters.workers(3)
    replicas = [_replica(config, **options) for config in _configs(parts, num_ps, **settings)]
    own = [targets[replica.config.worker_task] for replica in replicas]
    return harness.train_together(replicas, own, STEPS)[0].values


def _one_machine(settings, **options):
    """All variables after the same steps of all shares in one process."""
    config = DeploymentConfig(
        clone_on_cpu=True, all_reduce=True, accumulate_steps=SHARES, global_parts=SHARES, **settings
    )
    return _replica(config, **options)(steps=STEPS).values


@pytest.mark.parametrize(
    # The number of parts that each replica takes, and of parameter servers.
    ("parts", "num_ps", "settings", "options"),
    [
        pytest.param(
            [1, 1, 1], 1, {"num_clones": 2}, {"clip_norm": 0.5}, marks=pytest.mark.one_mode
        ),
        pytest.param([2, 1], 2, {}, {}, marks=pytest.mark.one_mode),
        ([2, 1], 1, {"loss_scale": "dynamic"}, {}),
        pytest.param([3], 2, {"loss_scale": "dynamic"}, {}, marks=pytest.mark.one_mode),
    ],
    ids=str,
)
def test_division_changes_nothing(parts, num_ps, settings, options):
    """Weights, slots, statistics and averages are those of one machine with all shares."""
    found = _train(parts, num_ps, settings, **options)
    expected = _one_machine(settings, **options)
    assert expected["global_step"] == STEPS
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6, err_msg=name)


CONFIG = DeploymentConfig(clone_on_cpu=True, num_ps_tasks=1, global_parts=2, accumulate_steps=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"asynchronous": True}, "asynchronous must be False with global_parts, got True"),
        (
            {"replicas_to_aggregate": 1},
            "replicas_to_aggregate must be num_replicas=2 with global_parts, .* got 1",
        ),
    ],
)
def test_ways_that_have_no_parts(options, message):
    """All replicas make each update together, as each has parts of its own."""
    config = DeploymentConfig(num_ps_tasks=1, global_parts=2, num_replicas=2)
    with pytest.raises(ValueError, match=message):
        deploy(config, lambda: None, **options)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("integers", "on parameter servers an update op must change floats, got count of int32"),
        ("forward", "by its optimizer and by update ops alone, got .*Assign"),
    ],
)
def test_updates_that_are_refused(kind, message):
    """What has no mean over parts, or changes a variable before the update, is named."""

    def model_fn():
        dtype = tf.int32 if kind == "integers" else tf.float32
        count = tf.get_variable("count", [], dtype, tf.zeros_initializer(), trainable=False)
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        update = count.assign_add(1, read_value=False)
        with tf.control_dependencies([update] if kind == "forward" else []):
            tf.losses.add_loss(tf.square(weight - 1))
        if kind == "integers":
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)

    with pytest.raises(ValueError, match=message):
        deploy(CONFIG, model_fn, optimizer=harness.sgd())


@pytest.mark.one_mode
@pytest.mark.parametrize(("num_ps", "is_elastic", "repeats"), [(1, 1, 1), (2, 1, 0), (2, 0, 1)])
def test_refused_update(num_ps, is_elastic, repeats):
    """In an elastic run it is not tried again where another server may have made its part."""
    [config] = _configs([SHARES], num_ps)
    shares = iter(range(config.global_clones))
    if is_elastic:
        note_fence(Fence(1, "/job:ps/task:0", num_ps))
    deploy(config, lambda: _model_fn(next(shares)), optimizer=harness.momentum())
    [hook] = session_hooks()
    assert hook.repeats == bool(repeats)

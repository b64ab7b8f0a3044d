"""What of a deployed model can be fetched alone."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, slim, training
from tests import harness, laws
from tests.goldens import LogicalDevices, cpu_config

_LIMIT_MS = 20_000


def _model_fn():
    net = tf.random_normal([4, 8], seed=1)
    weights_regularizer = slim.l2_regularizer(0.1)
    for _ in range(2):
        net = slim.fully_connected(
            net, 8, normalizer_fn=slim.batch_norm, weights_regularizer=weights_regularizer
        )
    tf.summary.scalar("mean", tf.reduce_mean(net))
    tf.losses.mean_squared_error(tf.zeros([4, 8]), net)


def _has_common_batch(way, accumulate_steps, sync_batch_norm, summarize_gradients):
    del accumulate_steps, summarize_gradients
    return way != "asynchronous" or not sync_batch_norm


@pytest.mark.parametrize(
    ("way", "accumulate_steps", "sync_batch_norm", "summarize_gradients"),
    laws.covering(
        [["all_reduce", "asynchronous", "copy_clones", ""], [1, 2], [False, True], [False, True]],
        _has_common_batch,
    ),
)
def test_each_fetch_returns_alone(way, accumulate_steps, sync_batch_norm, summarize_gradients):
    """In one process the summaries, the loss and the step return, each fetched by itself."""
    config = LogicalDevices(
        num_clones=2,
        accumulate_steps=accumulate_steps,
        sync_batch_norm=sync_batch_norm,
        **({way: True} if way else {}),
    )
    model = deploy(
        config, _model_fn, optimizer=harness.sgd(), summarize_gradients=summarize_gradients
    )
    options = tf.RunOptions(timeout_in_ms=_LIMIT_MS)
    with tf.Session(config=training.session_config(config, base=cpu_config())) as session:
        harness.start(session)
        for fetch in (model.summary_op, model.total_loss, model.train_op, model.summary_op):
            session.run(fetch, options=options)

"""User code with queue runners keeps working with `deploy`."""

import numpy as np
import tensorflow as tf

import model_deploy
from model_deploy import slim

tf1 = tf.compat.v1


def test_prefetch_queue_feeds_clones():
    """Each clone of `deploy` takes a batch of its own from `slim.prefetch_queue`."""
    config = model_deploy.DeploymentConfig(num_clones=2, clone_on_cpu=True)
    with tf.Graph().as_default():
        tf1.train.create_global_step()
        with tf.device(config.inputs_device()):
            (number,) = tf1.train.slice_input_producer([np.arange(24)], shuffle=False, num_epochs=1)
            batch = tf1.train.batch([number], batch_size=4)
            queue = slim.prefetch_queue.prefetch_queue([batch], capacity=4)

        def model(queue):
            numbers = queue.dequeue()
            weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
            tf1.losses.mean_squared_error(tf.cast(numbers, tf.float32) * weight, numbers)
            return numbers

        deployed = model_deploy.deploy(
            config, model, [queue], optimizer=tf1.train.GradientDescentOptimizer(0.0)
        )
        outputs = [clone.outputs for clone in deployed.clones]
        seen = []
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            coordinator = tf1.train.Coordinator()
            threads = tf1.train.start_queue_runners(session, coordinator)
            for _ in range(3):
                _, values = session.run([deployed.train_op, outputs])
                seen.append(np.concatenate(values))
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=30)
    assert [len(set(step.tolist())) for step in seen] == [8, 8, 8]
    assert sorted(np.concatenate(seen).tolist()) == list(range(24))

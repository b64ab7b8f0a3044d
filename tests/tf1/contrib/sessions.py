"""Runs graphs of `tf.contrib`, with and without queues."""

import tensorflow.compat.v1 as tf


def run(values):
    """The values, with newly initialized variables."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(values)


def read(tensors):
    """All that queues give until they are at their end."""
    coordinator, found = tf.train.Coordinator(), []
    with tf.Session() as session:
        session.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append(session.run(tensors))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found

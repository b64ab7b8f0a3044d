"""Calls of a session."""

import threading

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals


def test_inline_callable_runs_in_the_calling_thread():
    """What is fetched is computed in the thread of the caller, and each call runs it anew."""
    threads = []

    def note():
        threads.append(threading.current_thread())
        return np.float32(len(threads))

    counted = tf.py_func(note, [], tf.float32)
    with tf.Session() as session:
        call = internals.inline_callable(session, counted)
        assert [call(), call()] == [1.0, 2.0]
    assert threads == [threading.current_thread()] * 2

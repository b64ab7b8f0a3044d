"""Classifiers of `nets`, deployed on one clone on the CPU, in a process of their own."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import model_deploy
from benchmarks.child import Requests
from benchmarks.classifiers import LEARNING_RATE, Work, measure, num_threads
from nets import nets_factory


def serve(requests: Requests, **arguments: Any) -> None:
    """Trains what a `Work` of these arguments says; answers "images/s" and "parameters"."""
    work = Work(**arguments)
    tf.disable_eager_execution()
    tf.set_random_seed(1)
    model = deploy(work)
    threads = num_threads()
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
    )
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        # Its value is the loss.
        step = session.make_callable(model.train_op)
        step()
        parameters = count_parameters()
        requests.serve(lambda: {"parameters": parameters, **measure(step, work)})


def deploy(work: Work) -> model_deploy.DeployedModel:
    """The model in the default graph."""
    config = model_deploy.DeploymentConfig(clone_on_cpu=True, precision=work.precision)
    optimizer = tf.train.GradientDescentOptimizer(LEARNING_RATE)
    return model_deploy.deploy(config, lambda: build(work), optimizer=optimizer)


def build(work: Work) -> None:
    """A network and its loss; neither weight decay nor an auxiliary head."""
    network = nets_factory.get_network_fn(work.network, work.num_classes, is_training=True)
    keywords = {"create_aux_logits": False} if work.network == "inception_v3" else {}
    # Variables: what is computed from constants alone would be computed just once.
    images = tf.get_variable(
        "images",
        initializer=tf.random.uniform([work.batch_size, work.image_size, work.image_size, 3]),
        trainable=False,
    )
    labels = tf.get_variable(
        "labels",
        initializer=tf.random.uniform([work.batch_size], 0, work.num_classes, tf.int32),
        trainable=False,
    )
    logits, _ = network(tf.convert_to_tensor(images), **keywords)
    tf.losses.sparse_softmax_cross_entropy(labels, logits)


def count_parameters() -> int:
    """Of all trainable variables of the default graph."""
    return sum(int(np.prod(each.shape.as_list())) for each in tf.trainable_variables())

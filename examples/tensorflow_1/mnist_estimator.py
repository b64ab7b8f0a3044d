"""A network for handwritten digits, by Estimator, as such programs were written in 2019.

python -m model_deploy.tf1 examples/tensorflow_1/mnist_estimator.py --model_dir=mnist_estimator
"""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

tf.app.flags.DEFINE_string("model_dir", "mnist_estimator", "folder of the run")
tf.app.flags.DEFINE_integer("train_steps", 200, "number of the last step")
tf.app.flags.DEFINE_integer("batch_size", 50, "examples in a batch")
tf.app.flags.DEFINE_float("learning_rate", 0.002, "learning rate")
FLAGS = tf.app.flags.FLAGS


def make_input_fn(images, labels, training):
    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices(({"image": images}, labels))
        if training:
            dataset = dataset.shuffle(len(images), seed=1).repeat()
        return dataset.batch(FLAGS.batch_size).prefetch(1)

    return input_fn


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.reshape(features["image"], [-1, 8, 8, 1])
    net = tf.layers.conv2d(net, 16, 3, padding="same", activation=tf.nn.relu)
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.batch_normalization(net, training=training)
    net = tf.layers.dense(tf.layers.flatten(net), 64, activation=tf.nn.relu)
    logits = tf.layers.dense(net, 10)
    classes = tf.argmax(logits, axis=1)

    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"class": classes, "probabilities": tf.nn.softmax(logits)}
        outputs = {"classify": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)

    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    accuracy = tf.metrics.accuracy(labels=labels, predictions=classes)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})

    tf.summary.scalar("train_accuracy", accuracy[1])
    optimizer = tf.train.AdamOptimizer(learning_rate=params["learning_rate"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(unused_argv):
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int64)
    test = np.arange(len(images)) % 5 == 0

    classifier = tf.estimator.Estimator(
        model_fn=model_fn,
        model_dir=FLAGS.model_dir,
        config=tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=100),
        params={"learning_rate": FLAGS.learning_rate},
    )

    def serving_input_fn():
        image = tf.placeholder(tf.float32, [None, 8, 8], name="image")
        return tf.estimator.export.ServingInputReceiver({"image": image}, {"image": image})

    train_spec = tf.estimator.TrainSpec(
        make_input_fn(images[~test], labels[~test], True), max_steps=FLAGS.train_steps
    )
    eval_spec = tf.estimator.EvalSpec(
        make_input_fn(images[test], labels[test], False),
        steps=None,
        start_delay_secs=0,
        throttle_secs=1,
        exporters=tf.estimator.FinalExporter("digits", serving_input_fn),
    )
    result = tf.estimator.train_and_evaluate(classifier, train_spec, eval_spec)
    if result and result[0]:  # not in a cluster, where each task does its part
        print("test accuracy at step %d: %.4f" % (result[0]["global_step"], result[0]["accuracy"]))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.WARN)
    tf.app.run()

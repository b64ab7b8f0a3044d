"""Digits by a small network of convolutions, in the style of Horovod's programs of 2018."""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

tf.logging.set_verbosity(tf.logging.INFO)
FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('model_dir', '', 'where worker 0 keeps its checkpoints')
tf.app.flags.DEFINE_integer('steps', 60, 'steps of one worker')


def digits(count, seed):
  """Ten patterns with noise."""
  patterns = np.random.RandomState(0).rand(10, 12, 12)
  random = np.random.RandomState(seed)
  labels = random.randint(0, 10, count)
  images = patterns[labels] + 0.3 * random.randn(count, 12, 12)
  return images.astype(np.float32), labels.astype(np.int32)


def batches(seed, size=20):
  images, labels = digits(400, seed)
  while True:
    chosen = np.random.permutation(len(labels))
    for first in range(0, len(labels), size):
      part = chosen[first:first + size]
      yield images[part], labels[part]


def network(images, labels):
  net = tf.reshape(images, [-1, 12, 12, 1])
  with tf.variable_scope('conv'):
    net = tf.layers.conv2d(net, 8, 3, padding='same', activation=tf.nn.relu)
    net = tf.layers.max_pooling2d(net, 2, 2)
  net = tf.layers.dense(tf.layers.flatten(net), 32, activation=tf.nn.relu)
  logits = tf.layers.dense(net, 10, activation=None)
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  right = tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), labels)
  return tf.reduce_mean(tf.cast(right, tf.float32)), loss


def main(_):
  hvd.init()
  np.random.seed(hvd.rank())
  tf.set_random_seed(hvd.rank())
  images = tf.placeholder(tf.float32, [None, 12, 12], name='images')
  labels = tf.placeholder(tf.int32, [None], name='labels')
  accuracy, loss = network(images, labels)

  opt = tf.train.AdamOptimizer(0.003 * hvd.size())
  opt = hvd.DistributedOptimizer(opt)
  global_step = tf.train.get_or_create_global_step()
  train_op = opt.minimize(loss, global_step=global_step)
  weights = tf.add_n([tf.reduce_sum(tf.abs(v)) for v in tf.trainable_variables()])

  hooks = [
      hvd.BroadcastGlobalVariablesHook(0),
      tf.train.StopAtStepHook(last_step=FLAGS.steps // hvd.size()),
      tf.train.LoggingTensorHook({'step': global_step, 'loss': loss}, every_n_iter=10),
  ]
  config = tf.ConfigProto()
  config.gpu_options.allow_growth = True
  config.gpu_options.visible_device_list = str(hvd.local_rank())

  checkpoint_dir = FLAGS.model_dir if hvd.rank() == 0 else None
  generator = batches(seed=1 + hvd.rank())
  with tf.train.MonitoredTrainingSession(
      checkpoint_dir=checkpoint_dir, hooks=hooks, config=config) as sess:
    while not sess.should_stop():
      image_, label_ = next(generator)
      sess.run(train_op, {images: image_, labels: label_})
      if not sess.should_stop():
        image_, label_ = digits(200, 99)
        got, found = sess.run([accuracy, weights], {images: image_, labels: label_})
  print('worker %d of %d: accuracy %.3f, weights %.6f' % (hvd.rank(), hvd.size(), got, found))


if __name__ == '__main__':
  tf.app.run()

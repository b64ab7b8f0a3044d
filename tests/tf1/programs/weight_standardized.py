"""Trains as DeepLab's train.py does: a layer of its own, averaged losses, a profile."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim
from tensorflow.contrib import tfprof as contrib_tfprof

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string('train_logdir', None, 'Where checkpoints are written.')
flags.DEFINE_string('profile_logdir', None, 'Where the profile is written.')
flags.DEFINE_integer('training_number_of_steps', 30, 'Number of steps.')


class Conv2D(tf.keras.layers.Conv2D, tf.layers.Layer):
  """A convolution whose weights are standardized first."""

  def call(self, inputs):
    mean, var = tf.nn.moments(self.kernel, [0, 1, 2], keep_dims=True)
    kernel = (self.kernel - mean) / tf.sqrt(var + 1e-10)
    outputs = self._convolution_op(inputs, kernel)
    outputs = tf.nn.bias_add(outputs, self.bias)
    return self.activation(outputs)


def loss_of(images, labels):
  net = Conv2D(8, 3, padding='same', activation=tf.nn.relu,
               name='standardized').apply(images)
  net = slim.conv2d(net, 2, 1, activation_fn=None, scope='logits',
                    weights_regularizer=slim.l2_regularizer(1e-3))
  tf.losses.sparse_softmax_cross_entropy(labels, net)


def add_averages():
  """As in CIFAR-10's tutorial, of all losses, those of regularizers too."""
  losses = tf.get_collection(tf.GraphKeys.LOSSES)
  losses += tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
  averages = tf.train.ExponentialMovingAverage(0.9, name='avg')
  with tf.control_dependencies([averages.apply(losses)]):
    total = tf.identity(tf.losses.get_total_loss())
  for loss in losses:
    tf.summary.scalar(loss.op.name, averages.average(loss))
  return total


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  images = np.random.RandomState(0).rand(8, 8, 8, 3).astype(np.float32)
  labels = (images.mean(3) > 0.5).astype(np.int32)
  moved = tf.contrib.image.translate(images, [1, 0])
  targets = tf.contrib.image.translate(labels, [1, 0])
  loss_of(moved, targets)
  total = add_averages()
  optimizer = tf.contrib.opt.MovingAverageOptimizer(
      tf.train.MomentumOptimizer(0.2, 0.9), average_decay=0.9)
  train_op = slim.learning.create_train_op(total, optimizer)
  with tf.contrib.tfprof.ProfileContext(
      enabled=FLAGS.profile_logdir is not None,
      profile_dir=FLAGS.profile_logdir):
    loss = slim.learning.train(
        train_op, FLAGS.train_logdir, log_every_n_steps=10,
        number_of_steps=FLAGS.training_number_of_steps,
        saver=optimizer.swapping_saver())
  tf.logging.flush()
  print('trained to a loss below 0.6: %s' % (loss < 0.6))


if __name__ == '__main__':
  assert contrib_tfprof.ProfileContext
  tf.app.run()

"""The network of the towers, and its losses."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tensorflow as tf

import cifar10_input


def _variable_on_cpu(name, shape, initializer, wd=None):
  with tf.device('/cpu:0'):
    var = tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)
  if wd is not None:
    weight_decay = tf.multiply(tf.nn.l2_loss(var), wd, name='weight_loss')
    tf.add_to_collection('losses', weight_decay)
  return var


def inference(images):
  """Logits of [batch_size, 10]."""
  with tf.variable_scope('conv1') as scope:
    normal = tf.truncated_normal_initializer(stddev=5e-2)
    kernel = _variable_on_cpu('weights', [5, 5, 3, 8], normal)
    conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding='SAME')
    biases = _variable_on_cpu('biases', [8], tf.constant_initializer(0.0))
    conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
    tf.summary.scalar(conv1.op.name + '/sparsity', tf.nn.zero_fraction(conv1))
  pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1],
                         padding='SAME', name='pool1')
  norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name='norm1')
  with tf.variable_scope('softmax_linear') as scope:
    reshape = tf.reshape(norm1, [images.get_shape().as_list()[0], -1])
    dim = reshape.get_shape()[1].value
    normal = tf.truncated_normal_initializer(stddev=0.02)
    weights = _variable_on_cpu('weights', [dim, cifar10_input.NUM_CLASSES], normal, 0.004)
    biases = _variable_on_cpu('biases', [10], tf.constant_initializer(0.0))
    return tf.add(tf.matmul(reshape, weights), biases, name=scope.name)


def loss(logits, labels):
  """Adds the cross entropy to the collection 'losses'."""
  cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.cast(labels, tf.int64), logits=logits)
  tf.add_to_collection('losses', tf.reduce_mean(cross_entropy, name='cross_entropy'))

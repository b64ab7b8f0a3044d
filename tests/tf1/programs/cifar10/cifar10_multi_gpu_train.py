"""CIFAR-10 on several GPUs: towers, whose gradients are averaged."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os.path

import numpy as np
from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf
import cifar10
import cifar10_input

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer('batch_size', 8, """Images of a tower.""")
tf.app.flags.DEFINE_string('data_dir', '/tmp/cifar10_data', """Binary files.""")
tf.app.flags.DEFINE_string('train_dir', '/tmp/cifar10_train', """Events and checkpoint.""")
tf.app.flags.DEFINE_integer('max_steps', 1000000, """Number of batches to run.""")
tf.app.flags.DEFINE_integer('num_gpus', 1, """How many GPUs to use.""")


def average_gradients(tower_grads):
  """(gradient, variable) pairs, averaged over the towers."""
  average_grads = []
  for grad_and_vars in zip(*tower_grads):
    grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
    grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
    average_grads.append((grad, grad_and_vars[0][1]))
  return average_grads


def train():
  with tf.Graph().as_default(), tf.device('/cpu:0'):
    tf.set_random_seed(1)
    global_step = tf.get_variable(
        'global_step', [], initializer=tf.constant_initializer(0), trainable=False)
    lr = tf.train.exponential_decay(0.1, global_step, 10000, 0.1, staircase=True)
    opt = tf.train.GradientDescentOptimizer(lr)
    images, labels = cifar10_input.distorted_inputs(
        FLAGS.data_dir, FLAGS.batch_size, min_queue_examples=16)
    batch_queue = tf.contrib.slim.prefetch_queue.prefetch_queue(
        [images, labels], capacity=2 * FLAGS.num_gpus)
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
      for i in xrange(FLAGS.num_gpus):
        with tf.device('/gpu:%d' % i):
          with tf.name_scope('tower_%d' % i) as scope:
            image_batch, label_batch = batch_queue.dequeue()
            cifar10.loss(cifar10.inference(image_batch), label_batch)
            loss = tf.add_n(tf.get_collection('losses', scope), name='total_loss')
            tf.get_variable_scope().reuse_variables()
            summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
            tower_grads.append(opt.compute_gradients(loss))
    grads = average_gradients(tower_grads)
    summaries.append(tf.summary.scalar('learning_rate', lr))
    for grad, var in grads:
      summaries.append(tf.summary.histogram(var.op.name + '/gradients', grad))
    apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
    variable_averages = tf.train.ExponentialMovingAverage(0.9999, global_step)
    variables_averages_op = variable_averages.apply(tf.trainable_variables())
    train_op = tf.group(apply_gradient_op, variables_averages_op)
    saver = tf.train.Saver(tf.global_variables())
    summary_op = tf.summary.merge(summaries)
    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    sess.run(tf.global_variables_initializer())
    tf.train.start_queue_runners(sess=sess)
    summary_writer = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
    for step in xrange(FLAGS.max_steps):
      _, loss_value = sess.run([train_op, loss])
      assert not np.isnan(loss_value), 'Model diverged with loss = NaN'
      if step % 5 == 0:
        print('step %d, loss = %.2f' % (step, loss_value))
      if step % 100 == 0:
        summary_writer.add_summary(sess.run(summary_op), step)
      if step % 1000 == 0 or (step + 1) == FLAGS.max_steps:
        saver.save(sess, os.path.join(FLAGS.train_dir, 'model.ckpt'), global_step=step)


def main(argv=None):  # pylint: disable=unused-argument
  if tf.gfile.Exists(FLAGS.train_dir):
    tf.gfile.DeleteRecursively(FLAGS.train_dir)
  tf.gfile.MakeDirs(FLAGS.train_dir)
  train()


if __name__ == '__main__':
  tf.app.run()

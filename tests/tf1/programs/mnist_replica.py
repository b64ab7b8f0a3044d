"""MNIST on parameter servers and workers, asynchronous, with a Supervisor."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import math
import os
import sys
import tempfile

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string('data_dir', '/tmp/mnist-data', 'Directory for mnist data')
flags.DEFINE_string('train_dir', None, 'Directory of the checkpoints')
flags.DEFINE_integer('task_index', None, 'Worker task index, 0 is the chief')
flags.DEFINE_integer('hidden_units', 20, 'Number of units in the hidden layer')
flags.DEFINE_integer('train_steps', 40, 'Number of (global) training steps')
flags.DEFINE_integer('batch_size', 8, 'Training batch size')
flags.DEFINE_string('ps_hosts', 'localhost:2222', 'Comma-separated list of hostname:port')
flags.DEFINE_string('worker_hosts', 'localhost:2223,localhost:2224', 'The same of workers')
flags.DEFINE_string('job_name', None, 'job name: worker or ps')
FLAGS = flags.FLAGS

IMAGE_PIXELS = 28


def main(unused_argv):
  ps_spec = FLAGS.ps_hosts.split(',')
  worker_spec = FLAGS.worker_hosts.split(',')
  cluster = tf.train.ClusterSpec({'ps': ps_spec, 'worker': worker_spec})
  server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
  if FLAGS.job_name == 'ps':
    server.join()
  is_chief = (FLAGS.task_index == 0)
  mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, validation_size=0)

  worker_device = '/job:worker/task:%d' % FLAGS.task_index
  with tf.device(tf.train.replica_device_setter(
      worker_device=worker_device, ps_device='/job:ps/cpu:0', cluster=cluster)):
    global_step = tf.Variable(0, name='global_step', trainable=False)
    hid_w = tf.Variable(
        tf.truncated_normal([IMAGE_PIXELS * IMAGE_PIXELS, FLAGS.hidden_units],
                            stddev=1.0 / IMAGE_PIXELS), name='hid_w')
    hid_b = tf.Variable(tf.zeros([FLAGS.hidden_units]), name='hid_b')
    sm_w = tf.Variable(
        tf.truncated_normal([FLAGS.hidden_units, 10],
                            stddev=1.0 / math.sqrt(FLAGS.hidden_units)), name='sm_w')
    sm_b = tf.Variable(tf.zeros([10]), name='sm_b')
    x = tf.placeholder(tf.float32, [None, IMAGE_PIXELS * IMAGE_PIXELS])
    y_ = tf.placeholder(tf.float32, [None, 10])
    hid = tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b))
    y = tf.nn.softmax(tf.nn.xw_plus_b(hid, sm_w, sm_b))
    cross_entropy = -tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)))
    opt = tf.train.AdamOptimizer(0.01)
    train_step = opt.minimize(cross_entropy, global_step=global_step)

  init_op = tf.global_variables_initializer()
  train_dir = FLAGS.train_dir or tempfile.mkdtemp()
  sv = tf.train.Supervisor(
      is_chief=is_chief, logdir=train_dir, init_op=init_op,
      recovery_wait_secs=1, global_step=global_step)
  sess_config = tf.ConfigProto(
      allow_soft_placement=True, log_device_placement=False,
      device_filters=['/job:ps', '/job:worker/task:%d' % FLAGS.task_index])
  sess = sv.prepare_or_wait_for_session(server.target, config=sess_config)
  while True:
    batch_xs, batch_ys = mnist.train.next_batch(FLAGS.batch_size)
    _, step = sess.run([train_step, global_step], feed_dict={x: batch_xs, y_: batch_ys})
    if step >= FLAGS.train_steps:
      break
  val_xent = sess.run(cross_entropy, feed_dict={x: mnist.test.images, y_: mnist.test.labels})
  print('After %d training step(s), validation cross entropy = %g' %
        (FLAGS.train_steps, val_xent))
  if is_chief:
    sv.saver.save(sess, os.path.join(train_dir, 'final'), global_step=step)
  sys.stdout.flush()


if __name__ == '__main__':
  tf.app.run()

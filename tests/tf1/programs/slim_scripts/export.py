"""Writes the inference graph of a network, and one with its weights."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os

import tensorflow as tf
from tensorflow.python.framework import graph_util
from tensorflow.python.platform import gfile

from nets import nets_factory

tf.app.flags.DEFINE_string('model_name', 'cifarnet', 'The name of the architecture.')
tf.app.flags.DEFINE_integer('num_classes', 10, 'Width of the logits.')
tf.app.flags.DEFINE_string('checkpoint_path', None, 'Folder of the checkpoint.')
tf.app.flags.DEFINE_string('output_file', '', 'Where to save the frozen graph.')
FLAGS = tf.app.flags.FLAGS


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  with tf.Graph().as_default() as graph:
    network_fn = nets_factory.get_network_fn(
        FLAGS.model_name, num_classes=FLAGS.num_classes, is_training=False)
    image_size = network_fn.default_image_size
    placeholder = tf.placeholder(
        name='input', dtype=tf.float32, shape=[None, image_size, image_size, 3])
    _, end_points = network_fn(placeholder)
    name = end_points['Predictions'].op.name
    saver = tf.train.Saver()
    with tf.Session() as sess:
      saver.restore(sess, tf.train.latest_checkpoint(FLAGS.checkpoint_path))
      frozen = graph_util.convert_variables_to_constants(
          sess, graph.as_graph_def(), [name])
  with gfile.GFile(FLAGS.output_file, 'wb') as f:
    f.write(frozen.SerializeToString())
  print('wrote %s with %d nodes, %s' % (
      os.path.basename(FLAGS.output_file), len(frozen.node), name))


if __name__ == '__main__':
  tf.app.run()

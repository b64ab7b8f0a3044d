"""Evaluates the newest checkpoint of a folder, as TF-Slim's script did."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import math

import tensorflow as tf

from datasets import dataset_factory
from nets import nets_factory
from preprocessing import preprocessing_factory

slim = tf.contrib.slim

tf.app.flags.DEFINE_integer('batch_size', 8, 'The number of samples in each batch.')
tf.app.flags.DEFINE_integer('max_num_batches', None, 'Max number of batches to evaluate.')
tf.app.flags.DEFINE_string('checkpoint_path', '/tmp/tfmodel/', 'Checkpoint, or its folder.')
tf.app.flags.DEFINE_string('eval_dir', '/tmp/tfmodel/', 'Where the results are saved.')
tf.app.flags.DEFINE_string('dataset_dir', None, 'Where the dataset files are stored.')
tf.app.flags.DEFINE_string('model_name', 'cifarnet', 'The name of the architecture.')

FLAGS = tf.app.flags.FLAGS


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  with tf.Graph().as_default():
    slim.get_or_create_global_step()
    dataset = dataset_factory.get_dataset('cifar10', 'test', FLAGS.dataset_dir)
    network_fn = nets_factory.get_network_fn(
        FLAGS.model_name, num_classes=dataset.num_classes, is_training=False)
    provider = slim.dataset_data_provider.DatasetDataProvider(
        dataset, shuffle=False, common_queue_capacity=2 * FLAGS.batch_size,
        common_queue_min=FLAGS.batch_size)
    [image, label] = provider.get(['image', 'label'])
    image_preprocessing_fn = preprocessing_factory.get_preprocessing(
        FLAGS.model_name, is_training=False)
    size = network_fn.default_image_size
    image = image_preprocessing_fn(image, size, size)
    images, labels = tf.train.batch(
        [image, label], batch_size=FLAGS.batch_size, num_threads=1,
        capacity=5 * FLAGS.batch_size)
    logits, _ = network_fn(images)
    predictions = tf.argmax(logits, 1)
    labels = tf.squeeze(labels)
    names_to_values, names_to_updates = slim.metrics.aggregate_metric_map({
        'Accuracy': slim.metrics.streaming_accuracy(predictions, labels),
        'Recall_5': slim.metrics.streaming_recall_at_k(logits, labels, 5),
    })
    for name, value in names_to_values.items():
      summary_name = 'eval/%s' % name
      op = tf.summary.scalar(summary_name, value, collections=[])
      op = tf.Print(op, [value], summary_name)
      tf.add_to_collection(tf.GraphKeys.SUMMARIES, op)
    num_batches = FLAGS.max_num_batches or math.ceil(
        dataset.num_samples / float(FLAGS.batch_size))
    checkpoint_path = FLAGS.checkpoint_path
    if tf.gfile.IsDirectory(checkpoint_path):
      checkpoint_path = tf.train.latest_checkpoint(checkpoint_path)
    tf.logging.info('Evaluating %s' % checkpoint_path)
    found = slim.evaluation.evaluate_once(
        master='',
        checkpoint_path=checkpoint_path,
        logdir=FLAGS.eval_dir,
        num_evals=num_batches,
        eval_op=list(names_to_updates.values()),
        final_op=names_to_values,
        variables_to_restore=slim.get_variables_to_restore())
    print('accuracy %.4f' % found['Accuracy'])


if __name__ == '__main__':
  tf.app.run()

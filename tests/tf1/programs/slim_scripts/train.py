"""Trains a network of the factory on clones, as TF-Slim's script did."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tensorflow as tf

from datasets import dataset_factory
from deployment import model_deploy
from nets import nets_factory
from preprocessing import preprocessing_factory

slim = tf.contrib.slim

tf.app.flags.DEFINE_string('train_dir', '/tmp/tfmodel/', 'Checkpoints and event logs.')
tf.app.flags.DEFINE_integer('num_clones', 1, 'Number of model clones to deploy.')
tf.app.flags.DEFINE_boolean('clone_on_cpu', False, 'Use CPUs to deploy clones.')
tf.app.flags.DEFINE_float('moving_average_decay', None, 'The decay to use for averages.')
tf.app.flags.DEFINE_string('dataset_name', 'cifar10', 'The name of the dataset to load.')
tf.app.flags.DEFINE_string('dataset_dir', None, 'Where the dataset files are stored.')
tf.app.flags.DEFINE_string('model_name', 'cifarnet', 'The name of the architecture.')
tf.app.flags.DEFINE_integer('batch_size', 8, 'The number of samples in each batch.')
tf.app.flags.DEFINE_integer('max_number_of_steps', None, 'The maximum number of steps.')
tf.app.flags.DEFINE_string('checkpoint_path', None, 'Checkpoint to fine-tune from.')
tf.app.flags.DEFINE_string('checkpoint_exclude_scopes', None, 'Scopes not to restore.')
tf.app.flags.DEFINE_string('trainable_scopes', None, 'Scopes to train.')

FLAGS = tf.app.flags.FLAGS


def _get_init_fn():
  if FLAGS.checkpoint_path is None:
    return None
  exclusions = []
  if FLAGS.checkpoint_exclude_scopes:
    exclusions = [scope.strip() for scope in FLAGS.checkpoint_exclude_scopes.split(',')]
  variables_to_restore = []
  for var in slim.get_model_variables():
    if not any(var.op.name.startswith(exclusion) for exclusion in exclusions):
      variables_to_restore.append(var)
  checkpoint_path = FLAGS.checkpoint_path
  if tf.gfile.IsDirectory(checkpoint_path):
    checkpoint_path = tf.train.latest_checkpoint(checkpoint_path)
  tf.logging.info('Fine-tuning from %s' % checkpoint_path)
  return slim.assign_from_checkpoint_fn(
      checkpoint_path, variables_to_restore, ignore_missing_vars=False)


def _get_variables_to_train():
  if FLAGS.trainable_scopes is None:
    return tf.trainable_variables()
  variables_to_train = []
  for scope in [scope.strip() for scope in FLAGS.trainable_scopes.split(',')]:
    variables_to_train.extend(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope))
  return variables_to_train


def main(_):
  if not FLAGS.dataset_dir:
    raise ValueError('You must supply the dataset directory with --dataset_dir')
  tf.logging.set_verbosity(tf.logging.INFO)
  with tf.Graph().as_default():
    tf.set_random_seed(1)
    deploy_config = model_deploy.DeploymentConfig(
        num_clones=FLAGS.num_clones,
        clone_on_cpu=FLAGS.clone_on_cpu)
    with tf.device(deploy_config.variables_device()):
      global_step = slim.create_global_step()
    dataset = dataset_factory.get_dataset(
        FLAGS.dataset_name, 'train', FLAGS.dataset_dir)
    network_fn = nets_factory.get_network_fn(
        FLAGS.model_name,
        num_classes=dataset.num_classes,
        weight_decay=0.00004,
        is_training=True)
    image_preprocessing_fn = preprocessing_factory.get_preprocessing(
        FLAGS.model_name, is_training=True)
    with tf.device(deploy_config.inputs_device()):
      provider = slim.dataset_data_provider.DatasetDataProvider(
          dataset,
          num_readers=2,
          common_queue_capacity=20 * FLAGS.batch_size,
          common_queue_min=2 * FLAGS.batch_size)
      [image, label] = provider.get(['image', 'label'])
      size = network_fn.default_image_size
      image = image_preprocessing_fn(image, size, size)
      images, labels = tf.train.batch(
          [image, label], batch_size=FLAGS.batch_size, num_threads=2,
          capacity=5 * FLAGS.batch_size)
      labels = slim.one_hot_encoding(labels, dataset.num_classes)
      batch_queue = slim.prefetch_queue.prefetch_queue(
          [images, labels], capacity=2 * deploy_config.num_clones)

    def clone_fn(batch_queue):
      images, labels = batch_queue.dequeue()
      logits, end_points = network_fn(images)
      tf.losses.softmax_cross_entropy(
          logits=logits, onehot_labels=labels, label_smoothing=0.0, weights=1.0)
      return end_points

    summaries = set(tf.get_collection(tf.GraphKeys.SUMMARIES))
    clones = model_deploy.create_clones(deploy_config, clone_fn, [batch_queue])
    first_clone_scope = deploy_config.clone_scope(0)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS, first_clone_scope)
    end_points = clones[0].outputs
    for end_point in end_points:
      x = end_points[end_point]
      summaries.add(tf.summary.histogram('activations/' + end_point, x))
      summaries.add(tf.summary.scalar('sparsity/' + end_point, tf.nn.zero_fraction(x)))
    for loss in tf.get_collection(tf.GraphKeys.LOSSES, first_clone_scope):
      summaries.add(tf.summary.scalar('losses/%s' % loss.op.name, loss))
    for variable in slim.get_model_variables():
      summaries.add(tf.summary.histogram(variable.op.name, variable))
    if FLAGS.moving_average_decay:
      moving_average_variables = slim.get_model_variables()
      variable_averages = tf.train.ExponentialMovingAverage(
          FLAGS.moving_average_decay, global_step)
      update_ops.append(variable_averages.apply(moving_average_variables))
    with tf.device(deploy_config.optimizer_device()):
      learning_rate = tf.train.exponential_decay(
          0.01, global_step, dataset.num_samples, 0.94, staircase=True)
      optimizer = tf.train.RMSPropOptimizer(
          learning_rate, decay=0.9, momentum=0.9, epsilon=1.0)
      summaries.add(tf.summary.scalar('learning_rate', learning_rate))
    total_loss, clones_gradients = model_deploy.optimize_clones(
        clones, optimizer, var_list=_get_variables_to_train())
    summaries.add(tf.summary.scalar('total_loss', total_loss))
    grad_updates = optimizer.apply_gradients(clones_gradients, global_step=global_step)
    update_ops.append(grad_updates)
    update_op = tf.group(*update_ops)
    with tf.control_dependencies([update_op]):
      train_tensor = tf.identity(total_loss, name='train_op')
    summaries |= set(tf.get_collection(tf.GraphKeys.SUMMARIES, first_clone_scope))
    summary_op = tf.summary.merge(list(summaries), name='summary_op')
    slim.learning.train(
        train_tensor,
        logdir=FLAGS.train_dir,
        init_fn=_get_init_fn(),
        summary_op=summary_op,
        number_of_steps=FLAGS.max_number_of_steps,
        log_every_n_steps=5,
        sync_optimizer=None)


if __name__ == '__main__':
  tf.app.run()

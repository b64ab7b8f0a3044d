"""Digits by an Estimator, in the style of Horovod's programs of 2019."""

from __future__ import print_function

import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('model_dir', '', 'where worker 0 keeps its checkpoints')
tf.app.flags.DEFINE_integer('steps', 10, 'steps of a call; 10 see each example once')


def model_fn(features, labels, mode):
  hidden = tf.layers.dense(features['x'], 8, activation=tf.nn.relu)
  logits = tf.layers.dense(hidden, 4)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, predictions=tf.argmax(logits, 1))
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  if mode == tf.estimator.ModeKeys.EVAL:
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={'accuracy': accuracy})
  optimizer = hvd.DistributedOptimizer(tf.train.MomentumOptimizer(0.2, 0.9))
  train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
  hvd.init()
  random = np.random.RandomState(0)
  labels = random.randint(0, 4, 240)
  images = (np.eye(4)[labels] + 0.1 * random.randn(240, 4)).astype(np.float32)
  # Step by step the workers have the examples that one process has.
  own = slice(hvd.rank(), None, hvd.size())
  train_input = tf.estimator.inputs.numpy_input_fn(
      {'x': images[own]}, labels[own], 24 // hvd.size(), num_epochs=None, shuffle=False)
  test_input = tf.estimator.inputs.numpy_input_fn({'x': images}, labels, shuffle=False)

  config = tf.estimator.RunConfig(
      model_dir=FLAGS.model_dir if hvd.rank() == 0 else None,
      # All start at worker 0's weights.
      tf_random_seed=1 + hvd.rank())
  digits = tf.estimator.Estimator(model_fn, config=config)
  digits.train(train_input, steps=FLAGS.steps, hooks=[hvd.BroadcastGlobalVariablesHook(0)])
  print('worker %d of %d: step %d, weights %r' % (
      hvd.rank(), hvd.size(), digits.get_variable_value('global_step'),
      [float(w) for name in sorted(digits.get_variable_names())
       for w in digits.get_variable_value(name).ravel()]))
  if hvd.rank() == 0:
    print('accuracy %.4f' % digits.evaluate(test_input)['accuracy'])


if __name__ == '__main__':
  tf.app.run()

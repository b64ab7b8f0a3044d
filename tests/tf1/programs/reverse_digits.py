"""Learns to write a sequence of digits backwards, as programs did in 2017."""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import numpy as np
import tensorflow as tf
from tensorflow.contrib import seq2seq
from tensorflow.python.layers.core import Dense

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer('steps', 250, 'Number of steps.')
tf.app.flags.DEFINE_integer('units', 48, 'Size of the LSTMs.')
tf.app.flags.DEFINE_integer('beam_width', 3, 'Number of beams.')
tf.app.flags.DEFINE_string('attention', 'bahdanau', 'bahdanau or luong.')

BATCH, LONGEST, START, END, TOKENS = 64, 5, 10, 11, 12


def make_batch(random):
  lengths = random.randint(2, LONGEST + 1, [BATCH])
  sources = np.full([BATCH, LONGEST], END)
  targets = np.full([BATCH, LONGEST + 1], END)
  for i, length in enumerate(lengths):
    sources[i, :length] = random.randint(0, 10, [length])
    targets[i, :length] = sources[i, :length][::-1]
  return sources, lengths, targets


def decode(mode, memory, state, lengths, embedding, targets=None):
  with tf.variable_scope('decode', reuse=mode == 'infer'):
    beams = FLAGS.beam_width if mode == 'infer' else 1
    if beams > 1:
      memory, state, lengths = seq2seq.tile_batch(
          [memory, state, lengths], multiplier=beams)
    if FLAGS.attention == 'luong':
      attention = seq2seq.LuongAttention(
          FLAGS.units, memory, memory_sequence_length=lengths, scale=True)
    else:
      attention = seq2seq.BahdanauAttention(
          FLAGS.units, memory, memory_sequence_length=lengths, normalize=True)
    cell = seq2seq.AttentionWrapper(
        tf.contrib.rnn.LSTMBlockCell(FLAGS.units), attention,
        attention_layer_size=FLAGS.units)
    projection = Dense(TOKENS, use_bias=False, name='projection')
    first = cell.zero_state(BATCH * beams, tf.float32).clone(cell_state=state)
    if mode == 'train':
      read = tf.concat([tf.fill([BATCH, 1], START), targets[:, :-1]], 1)
      helper = seq2seq.TrainingHelper(
          tf.nn.embedding_lookup(embedding, read),
          tf.fill([BATCH], LONGEST + 1))
      decoder = seq2seq.BasicDecoder(cell, helper, first, projection)
      outputs, _, _ = seq2seq.dynamic_decode(decoder)
      return outputs.rnn_output
    decoder = seq2seq.BeamSearchDecoder(
        cell, embedding, tf.fill([BATCH], START), END, first, beams,
        output_layer=projection)
    outputs, _, _ = seq2seq.dynamic_decode(
        decoder, maximum_iterations=LONGEST + 1)
    return outputs.predicted_ids[:, :, 0]


def main(_):
  sources = tf.placeholder(tf.int32, [BATCH, LONGEST])
  lengths = tf.placeholder(tf.int32, [BATCH])
  targets = tf.placeholder(tf.int32, [BATCH, LONGEST + 1])
  tf.set_random_seed(1)
  embedding = tf.get_variable('embedding', [TOKENS, FLAGS.units])
  memory, state = tf.nn.dynamic_rnn(
      tf.contrib.rnn.LSTMBlockCell(FLAGS.units),
      tf.nn.embedding_lookup(embedding, sources), lengths, dtype=tf.float32)
  logits = decode('train', memory, state, lengths, embedding, targets)
  loss = seq2seq.sequence_loss(logits, targets, tf.ones([BATCH, LONGEST + 1]))
  train_op = tf.contrib.layers.optimize_loss(
      loss, tf.train.get_or_create_global_step(), 0.01, 'Adam',
      clip_gradients=5.0)
  written = decode('infer', memory, state, lengths, embedding)
  random = np.random.RandomState(0)
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(FLAGS.steps):
      batch = dict(zip([sources, lengths, targets], make_batch(random)))
      value, _ = sess.run([loss, train_op], batch)
      if step % 50 == 0:
        tf.logging.info('step %d, loss = %.2f', step, value)
    batch = make_batch(random)
    found = sess.run(written, {sources: batch[0], lengths: batch[1]})
  width = found.shape[1]
  right = (found == batch[2][:, :width]).all(1)
  print('loss %.3f, sequences right: %.2f' % (value, right.mean()))


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.app.run()

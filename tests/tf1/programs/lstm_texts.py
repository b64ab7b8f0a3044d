"""A text classifier on two devices, which share each batch: synchronous or not."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import argparse
import collections
import threading

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument('--data_file')
parser.add_argument('--num_devices', type=int, default=2)
parser.add_argument('--steps', type=int, default=150)
parser.add_argument('--batch_size', type=int, default=32)
parser.add_argument('--async', dest='asynchronous', action='store_true')
parser.add_argument('--cells', default='static', choices=['static', 'dynamic'])
args = parser.parse_args()

MAX_LENGTH = 12


def read(path):
  """Ids of [n, MAX_LENGTH], labels of [n] and the size of the vocabulary."""
  texts, labels = [], []
  for line in open(path):
    label, text = line.rstrip('\n').split('\t')
    texts.append(text.split())
    labels.append(label)
  words = collections.Counter(word for text in texts for word in text)
  ids = dict((word, i + 1) for i, (word, _) in enumerate(sorted(words.items())))
  names = sorted(set(labels))
  data = np.zeros([len(texts), MAX_LENGTH], dtype=np.int)
  for row, text in enumerate(texts):
    for column, word in enumerate(text[:MAX_LENGTH]):
      data[row, column] = ids[word]
  return data, np.array([names.index(label) for label in labels]), len(ids) + 1


def model(tokens, labels, vocabulary, num_classes):
  """The mean loss and the accuracy on a part of a batch."""
  with tf.device('/cpu:0'):
    embedding = tf.get_variable('embedding', [vocabulary, 16])
    inputs = tf.nn.embedding_lookup(embedding, tokens)
  if args.cells == 'static':
    cell = tf.contrib.rnn.BasicLSTMCell(24, forget_bias=1.0)
    outputs, state = tf.contrib.rnn.static_rnn(
        cell, tf.unstack(inputs, num=MAX_LENGTH, axis=1), dtype=tf.float32)
    last = outputs[-1]
  else:
    length = tf.reduce_sum(tf.sign(tokens), reduction_indices=1)
    cells = [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(24), output_keep_prob=1.0)
             for _ in range(2)]
    outputs, state = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.MultiRNNCell(cells), inputs, sequence_length=length, dtype=tf.float32)
    last = state[-1].h
  logits = tf.layers.dense(last, num_classes, name='logits')
  loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=logits))
  accuracy = tf.reduce_mean(tf.to_float(tf.nn.in_top_k(logits, labels, 1)))
  return loss, accuracy


def main():
  tf.set_random_seed(1)
  data, labels, vocabulary = read(args.data_file)
  num_classes = int(labels.max()) + 1
  x = tf.placeholder(tf.int32, [None, MAX_LENGTH], name='tokens')
  y = tf.placeholder(tf.int32, [None], name='labels')
  opt = tf.train.AdamOptimizer(0.01)
  losses, accuracies, gradients = [], [], []
  for i, (part, targets) in enumerate(zip(tf.split(x, args.num_devices), tf.split(y, args.num_devices))):
    with tf.device('/gpu:%d' % i), tf.variable_scope(tf.get_variable_scope(), reuse=i > 0):
      loss, accuracy = model(part, targets, vocabulary, num_classes)
      losses.append(loss)
      accuracies.append(accuracy)
      gradients.append(opt.compute_gradients(loss))
  if args.asynchronous:
    train_ops = [opt.apply_gradients(pairs) for pairs in gradients]
  else:
    average = []
    for pairs in zip(*gradients):
      grads = [tf.convert_to_tensor(g) for g, _ in pairs]
      average.append((tf.add_n(grads) / len(grads), pairs[0][1]))
    train_ops = [opt.apply_gradients(average)]

  config = tf.ConfigProto(allow_soft_placement=True)
  config.gpu_options.allow_growth = True
  sess = tf.InteractiveSession(config=config)
  tf.global_variables_initializer().run()
  random = np.random.RandomState(0)

  def feed():
    rows = random.randint(0, len(data), size=args.batch_size)
    return {x: data[rows], y: labels[rows]}

  def run(op):
    for _ in range(args.steps):
      sess.run(op, feed_dict=feed())

  threads = [threading.Thread(target=run, args=(op,)) for op in train_ops]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  rows = len(data) // args.num_devices * args.num_devices
  found = sess.run(accuracies, {x: data[:rows], y: labels[:rows]})
  print('accuracy %.3f' % np.mean(found))


if __name__ == '__main__':
  main()

"""Tags words by a CRF above LSTMs in both directions, as programs did in 2018."""

import tensorflow as tf
from tensorflow.contrib import crf
from tensorflow.contrib.lookup import index_table_from_tensor
from tensorflow.contrib.lookup import index_to_string_table_from_tensor
from tensorflow.contrib.rnn import LSTMBlockFusedCell, TimeReversedFusedRNN

tf.flags.DEFINE_integer('steps', 80, 'Number of steps.')
FLAGS = tf.flags.FLAGS

NAMES = ['ada', 'alan', 'grace', 'kurt']
PLACES = ['london', 'paris', 'vienna', 'rome']
OTHERS = ['lived', 'in', 'left', 'for', 'and', 'then', 'saw']
TAGS = ['O', 'NAME', 'PLACE']


def sentence(number):
  """A sentence of two to four parts; its words and their tags."""
  words, tags = [], []
  for part in range(2 + number % 3):
    n = number * 7 + part * 3
    words += [NAMES[n % 4], OTHERS[n % 7], OTHERS[(n + 2) % 7], PLACES[n % 4]]
    tags += [1, 0, 0, 2]
  return ' '.join(words).encode(), tags


def read():
  sentences, tags = zip(*[sentence(n) for n in range(60)])
  longest = max(map(len, tags))
  padded = [list(t) + [0] * (longest - len(t)) for t in tags]
  text, tag = tf.train.slice_input_producer(
      [tf.constant(sentences), tf.constant(padded)], seed=1)
  words = tf.string_split([text]).values
  length = tf.size(words)
  lengths, (words, tags) = tf.contrib.training.bucket_by_sequence_length(
      length, [words, tag[:length]], batch_size=10, bucket_boundaries=[9, 13],
      dynamic_pad=True, capacity=50)
  return words, tags, lengths


def model(words, lengths):
  table = index_table_from_tensor(
      mapping=tf.constant(NAMES + PLACES + OTHERS), num_oov_buckets=1)
  embedding = tf.get_variable('embedding', [16, 12])
  inputs = tf.nn.embedding_lookup(embedding, table.lookup(words))
  inputs = tf.transpose(inputs, [1, 0, 2])
  forward = LSTMBlockFusedCell(16, name='forward')
  backward = TimeReversedFusedRNN(LSTMBlockFusedCell(16, name='backward'))
  outputs = tf.concat(
      [cell(inputs, dtype=tf.float32, sequence_length=lengths)[0]
       for cell in (forward, backward)], 2)
  return tf.layers.dense(tf.transpose(outputs, [1, 0, 2]), len(TAGS))


def main(unused_argv):
  tf.set_random_seed(2)
  words, tags, lengths = read()
  scores = model(words, lengths)
  log_likelihood, transitions = crf.crf_log_likelihood(scores, tags, lengths)
  loss = tf.reduce_mean(-log_likelihood)
  train_op = tf.contrib.opt.LazyAdamOptimizer(0.03).minimize(loss)
  best, _ = crf.crf_decode(scores, transitions, lengths)
  mask = tf.sequence_mask(lengths, tf.shape(tags)[1], tf.float32)
  accuracy, update = tf.contrib.metrics.streaming_accuracy(best, tags, mask)
  names = index_to_string_table_from_tensor(mapping=tf.constant(TAGS))
  readable = names.lookup(tf.to_int64(best))
  with tf.train.MonitoredSession() as sess:
    for _ in range(FLAGS.steps):
      sess.run(train_op)
    for _ in range(10):
      sess.run(update)
    found, tagged = sess.run([accuracy, readable])
  print('accuracy %.3f' % found)
  print('first tags: %s' % b' '.join(tagged[0][:4]).decode())


if __name__ == '__main__':
  tf.app.run(main=main)

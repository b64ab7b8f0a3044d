"""Downloads and converts a dataset, as in TF-Slim."""

import tensorflow as tf

from datasets import download_and_convert_mnist

try:
  from datasets import download_and_convert_own
except ImportError:
  download_and_convert_own = None

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string('dataset_name', None, 'The name of the dataset.')
tf.app.flags.DEFINE_string('dataset_dir', None, 'Where records are written.')


def main(_):
  if FLAGS.dataset_name == 'mnist':
    download_and_convert_mnist.run(FLAGS.dataset_dir)
  elif download_and_convert_own is None:
    raise ValueError('dataset_name [%s] was not recognized.' % FLAGS.dataset_name)


if __name__ == '__main__':
  tf.app.run()

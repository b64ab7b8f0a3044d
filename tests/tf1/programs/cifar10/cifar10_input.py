"""Reads CIFAR-10's binary files with queue runners."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os

from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf

IMAGE_SIZE = 24
NUM_CLASSES = 10


def read_cifar10(filename_queue):
  """One image of [3, 32, 32] and its label, [1]."""
  reader = tf.FixedLengthRecordReader(record_bytes=1 + 3 * 32 * 32)
  _, value = reader.read(filename_queue)
  record = tf.decode_raw(value, tf.uint8)
  label = tf.cast(tf.strided_slice(record, [0], [1]), tf.int32)
  image = tf.strided_slice(record, [1], [1 + 3 * 32 * 32])
  return tf.reshape(image, [3, 32, 32]), label


def distorted_inputs(data_dir, batch_size, min_queue_examples):
  """Images of [batch_size, 24, 24, 3] and labels of [batch_size]."""
  filenames = [os.path.join(data_dir, 'data_batch_%d.bin' % i) for i in xrange(1, 6)]
  for name in filenames:
    if not tf.gfile.Exists(name):
      raise ValueError('Failed to find file: ' + name)
  image, label = read_cifar10(tf.train.string_input_producer(filenames))
  image = tf.cast(tf.transpose(image, [1, 2, 0]), tf.float32)
  image = tf.random_crop(image, [IMAGE_SIZE, IMAGE_SIZE, 3])
  image = tf.image.random_flip_left_right(image)
  image = tf.image.per_image_standardization(image)
  image.set_shape([IMAGE_SIZE, IMAGE_SIZE, 3])
  label.set_shape([1])
  images, labels = tf.train.shuffle_batch(
      [image, label], batch_size=batch_size, num_threads=2,
      capacity=min_queue_examples + 3 * batch_size, min_after_dequeue=min_queue_examples)
  tf.summary.image('images', images)
  return images, tf.reshape(labels, [batch_size])

"""Reads CIFAR-10's binary files with queue runners."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os

from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf

IMAGE_SIZE = 24
NUM_CLASSES = 10
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 50000


def read_cifar10(filename_queue):
  """One example: an object with key, label and uint8image."""

  class CIFAR10Record(object):
    pass

  result = CIFAR10Record()
  label_bytes = 1
  result.height = 32
  result.width = 32
  result.depth = 3
  image_bytes = result.height * result.width * result.depth
  record_bytes = label_bytes + image_bytes
  reader = tf.FixedLengthRecordReader(record_bytes=record_bytes)
  result.key, value = reader.read(filename_queue)
  record = tf.decode_raw(value, tf.uint8)
  result.label = tf.cast(
      tf.strided_slice(record, [0], [label_bytes]), tf.int32)
  depth_major = tf.reshape(
      tf.strided_slice(record, [label_bytes], [label_bytes + image_bytes]),
      [result.depth, result.height, result.width])
  result.uint8image = tf.transpose(depth_major, [1, 2, 0])
  return result


def distorted_inputs(data_dir, batch_size, min_queue_examples):
  """Images of [batch_size, 24, 24, 3] and labels of [batch_size]."""
  filenames = [os.path.join(data_dir, 'data_batch_%d.bin' % i)
               for i in xrange(1, 6)]
  for name in filenames:
    if not tf.gfile.Exists(name):
      raise ValueError('Failed to find file: ' + name)
  filename_queue = tf.train.string_input_producer(filenames)
  with tf.name_scope('data_augmentation'):
    read_input = read_cifar10(filename_queue)
    image = tf.cast(read_input.uint8image, tf.float32)
    image = tf.random_crop(image, [IMAGE_SIZE, IMAGE_SIZE, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, max_delta=63)
    image = tf.image.per_image_standardization(image)
    image.set_shape([IMAGE_SIZE, IMAGE_SIZE, 3])
    read_input.label.set_shape([1])
  images, labels = tf.train.shuffle_batch(
      [image, read_input.label],
      batch_size=batch_size,
      num_threads=2,
      capacity=min_queue_examples + 3 * batch_size,
      min_after_dequeue=min_queue_examples)
  tf.summary.image('images', images)
  return images, tf.reshape(labels, [batch_size])

"""Images a second of a residual network on synthetic data, in the style of Horovod's benchmark."""

from __future__ import print_function

import argparse
import os
import signal
import timeit

import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

parser = argparse.ArgumentParser()
parser.add_argument('--fp16-allreduce', action='store_true')
parser.add_argument('--model', choices=['tiny', 'resnet50'], default='resnet50')
parser.add_argument('--batch-size', type=int, default=32)
parser.add_argument('--num-warmup-batches', type=int, default=10)
parser.add_argument('--num-batches-per-iter', type=int, default=10)
parser.add_argument('--num-iters', type=int, default=10)
parser.add_argument('--no-cuda', action='store_true')
parser.add_argument('--dies-after', type=int, default=-1, help='the last worker, after so many')
args = parser.parse_args()

hvd.init()
config = tf.ConfigProto()
if args.no_cuda:
  config.gpu_options.visible_device_list = ''
else:
  config.gpu_options.allow_growth = True
  config.gpu_options.visible_device_list = str(hvd.local_rank())

BLOCKS = {'tiny': [(8, 1), (16, 1)], 'resnet50': [(256, 3), (512, 4), (1024, 6), (2048, 3)]}
SIZE = {'tiny': 16, 'resnet50': 224}


def conv(net, filters, size, stride=1, relu=True):
  net = tf.layers.conv2d(net, filters, size, stride, padding='same', use_bias=False)
  net = tf.layers.batch_normalization(net, training=True)
  return tf.nn.relu(net) if relu else net


def block(net, filters, stride):
  short = net
  if stride != 1 or net.shape[-1] != filters:
    short = conv(net, filters, 1, stride, relu=False)
  net = conv(net, filters // 4, 1, stride)
  net = conv(net, filters // 4, 3)
  return tf.nn.relu(short + conv(net, filters, 1, relu=False))


def network(images):
  net = conv(images, 64 if args.model == 'resnet50' else 8, 7, 2)
  net = tf.layers.max_pooling2d(net, 3, 2, padding='same')
  for i, (filters, units) in enumerate(BLOCKS[args.model]):
    for j in range(units):
      net = block(net, filters, 2 if i and not j else 1)
  return tf.layers.dense(tf.reduce_mean(net, [1, 2]), 1000 if args.model == 'resnet50' else 10)


size = SIZE[args.model]
data = tf.random_uniform([args.batch_size, size, size, 3])
target = tf.random_uniform([args.batch_size, 1], maxval=9, dtype=tf.int64)

compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
opt = tf.train.GradientDescentOptimizer(0.01)
opt = hvd.DistributedOptimizer(opt, compression=compression)
init = tf.global_variables_initializer()
loss = tf.losses.sparse_softmax_cross_entropy(target, network(data))
init = tf.group(init, tf.global_variables_initializer())
bcast_op = hvd.broadcast_global_variables(0)
train_opt = opt.minimize(loss)


def log(text):
  if hvd.rank() == 0:
    print(text)


def run(session):
  init.run()
  bcast_op.run()
  log('Model: %s, batch size: %d, workers: %d' % (args.model, args.batch_size, hvd.size()))
  timeit.timeit(lambda: session.run(train_opt), number=args.num_warmup_batches)
  found = []
  for x in range(args.num_iters):
    if x == args.dies_after and hvd.rank() == hvd.size() - 1:
      os.kill(os.getpid(), signal.SIGKILL)
    time = timeit.timeit(lambda: session.run(train_opt), number=args.num_batches_per_iter)
    found.append(args.batch_size * args.num_batches_per_iter / time)
    log('Iter #%d: %.1f img/sec per worker' % (x, found[-1]))
  log('Total img/sec on %d workers: %.1f' % (hvd.size(), hvd.size() * np.mean(found)))


with tf.Session(config=config) as session:
  run(session)

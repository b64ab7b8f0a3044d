"""Digits by the package Keras, in the style of Horovod's programs of 2018."""

from __future__ import print_function

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
import horovod.keras as hvd
from keras import backend as K
from keras.layers import Conv2D, Dense, Flatten, MaxPooling2D
from keras.models import Sequential
from keras.utils import np_utils

hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
K.set_session(tf.Session(config=config))

# Workers start apart, and have examples of their own.
tf.set_random_seed(hvd.rank())
random = np.random.RandomState(hvd.rank())
np.random.seed(hvd.rank())
labels = random.randint(0, 4, 128)
images = 0.1 * random.randn(128, 8, 8, 1)
images[np.arange(128), 2 * labels] += 1
targets = np_utils.to_categorical(labels, 4)

model = Sequential()
model.add(Conv2D(4, kernel_size=(3, 3), activation='relu', input_shape=(8, 8, 1)))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Flatten())
model.add(Dense(4, activation='softmax'))
opt = hvd.DistributedOptimizer(keras.optimizers.rmsprop(lr=0.01 * hvd.size()))
model.compile(loss=keras.losses.categorical_crossentropy, optimizer=opt, metrics=['accuracy'])
model.fit(images, targets, batch_size=16, epochs=5, verbose=0,
          callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
print('accuracy %.4f, weights %.6f' % (
    model.evaluate(images, targets, verbose=0)[1],
    sum(np.abs(w).sum() for w in model.get_weights())))

path = os.path.join(tempfile.mkdtemp(), 'model.h5')
model.save(path)
again = hvd.load_model(path)
same = all((a == b).all() for a, b in zip(model.optimizer.get_weights(),
                                          again.optimizer.get_weights()))
again.fit(images, targets, batch_size=16, epochs=1, verbose=0)
print('%s loaded, same slots %s, weights %.6f' % (
    type(again.optimizer).__name__, same, sum(np.abs(w).sum() for w in again.get_weights())))

"""Digits by tf.keras, in the style of Horovod's programs of 2019."""

from __future__ import print_function

import random

import numpy as np
import tensorflow as tf
import horovod.tensorflow.keras as hvd
from tensorflow.keras import backend as K

hvd.init()
config = tf.ConfigProto()
config.gpu_options.allow_growth = True
config.gpu_options.visible_device_list = str(hvd.local_rank())
K.set_session(tf.Session(config=config))

# Workers start apart.  Keras takes seeds of values from `random`, and shuffles by NumPy.
random.seed(hvd.rank())
np.random.seed(hvd.rank())
tf.set_random_seed(hvd.rank())
own = np.random.RandomState(hvd.rank())
labels = own.randint(0, 4, 64)
images = np.eye(4)[labels] + 0.1 * own.randn(64, 4)

model = tf.keras.Sequential([
    tf.keras.layers.Dense(8, activation='relu', input_shape=(4,)),
    tf.keras.layers.Dense(4, activation='softmax'),
])
opt = tf.keras.optimizers.SGD(0.2 * hvd.size(), momentum=0.9)
opt = hvd.DistributedOptimizer(opt)
model.compile(loss='sparse_categorical_crossentropy', optimizer=opt, metrics=['accuracy'])

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(warmup_epochs=2, verbose=1),
    hvd.callbacks.LearningRateScheduleCallback(start_epoch=2, end_epoch=4, multiplier=1.),
    hvd.callbacks.LearningRateScheduleCallback(start_epoch=4, multiplier=1e-1),
]
history = model.fit(images, labels, batch_size=16, epochs=5, callbacks=callbacks,
                    verbose=2 if hvd.rank() == 0 else 0).history
print('rates %s' % np.round(history['lr'], 4).tolist())
print('accuracy %.4f, loss %.6f, weights %.6f' % (
    history['accuracy' if 'accuracy' in history else 'acc'][-1], history['loss'][-1],
    sum(np.abs(w).sum() for w in model.get_weights())))
print('ranks %s' % hvd.allgather([hvd.rank()], name='ranks').tolist())

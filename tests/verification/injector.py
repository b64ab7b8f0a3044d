"""Models one bit of whose gradients, weights or batches flips in a chosen execution."""

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import deploy
from tests.goldens import GOLDENS, LogicalDevices
from tests.harness import momentum

_INTEGERS = {2: (tf.int16, np.int16), 4: (tf.int32, np.int32)}


class Injector:
    """Hands values on, and flips one of their bits when it is asked to.

    It counts executions in Python, which no snapshot of variables turns back. Its call of Python
    takes the global step, so that it is a part of the step and not of the inputs.

    Attributes:
      flips: how many bits it has flipped.
    """

    def __init__(self):
        self.flips = 0
        self._sizes, self._executions_left, self._bit = {}, {}, {}

    @property
    def names(self):
        """What it hands on."""
        return sorted(self._sizes)

    def place(self, name, random):
        """A random element of a value, and a random bit of it."""
        count, bits = self._sizes[name]
        return int(random.integers(count)), int(random.integers(bits))

    def arm(self, name, executions, place):
        """Flips a bit of a value after so many more executions."""
        self._executions_left[name], self._bit[name] = executions, place

    def mask(self, name, shape, dtype):
        """A tensor of integers, all 0 but where and when a bit is to be flipped."""
        integers, kind = _INTEGERS[dtype.size]
        shape = tf.TensorShape(shape).as_list()
        self._sizes[name] = (int(np.prod(shape)), 8 * dtype.size)

        def make(_):
            mask = np.zeros(int(np.prod(shape)), kind)
            if name in self._executions_left:
                self._executions_left[name] -= 1
                if self._executions_left[name] < 0:
                    element, bit = self._bit[name]
                    mask.view(f"u{dtype.size}")[element] = 1 << bit
                    del self._executions_left[name]
                    self.flips += 1
            return mask.reshape(shape)

        with tf.init_scope(), tf.device("CPU:0"), tf.control_dependencies(None):
            made = tf.py_func(make, [tf.train.get_global_step().read_value()], integers)
        made.set_shape(shape)
        return made

    def __call__(self, name, value):
        """The value, or another one."""
        return flipped(value, self.mask(name, value.shape, value.dtype.base_dtype))


def flipped(value, mask):
    """A value whose bits are others where those of a mask are set."""
    bits = tf.bitwise.bitwise_xor(tf.bitcast(value, mask.dtype), mask)
    return tf.bitcast(bits, value.dtype.base_dtype)


class _Flipping(tf.train.MomentumOptimizer):
    """Gradients of each clone by way of an injector."""

    def __init__(self, injector):
        super().__init__(0.1, 0.9)
        self._injector, self._calls = injector, 0

    def compute_gradients(self, loss, **kwargs):
        """Those of the optimizer, where they are dense, by way of the injector."""
        pairs = super().compute_gradients(loss, **kwargs)
        self._calls += 1
        return [
            (
                self._injector(f"gradient {self._calls} of {v.op.name}", g)
                if isinstance(g, tf.Tensor)
                else g,
                v,
            )
            for g, v in pairs
        ]


def _model_fn(golden, dropout):
    def model_fn(batches):
        features, labels = next(batches)
        if dropout:  # no seed: another mask in each execution
            features = tf.nn.dropout(features, rate=0.2)
        return golden.model_fn(features, labels)

    return model_fn


class _Batches:
    """An iterator over the parts of a step, each the next batch of one `tf.data` pipeline."""

    def __init__(self, golden, config, injector):
        size = len(golden.features) // config.batches_per_step
        dataset = tf.data.Dataset.from_tensor_slices((golden.features, golden.labels))
        dataset = (
            dataset.shuffle(24, seed=1, reshuffle_each_iteration=False)
            .repeat()
            .batch(size, drop_remainder=True)
        )
        self._iterator = tf.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, self._iterator.initializer)
        # A model that is copied must leave Python objects alone.
        self._injector = None if config.copy_clones else injector
        self._latest = None if config.copy_clones else []

    def __next__(self):
        with tf.control_dependencies(self._latest or []):
            features, labels = self._iterator.get_next()
        if self._latest is not None:
            self._latest = [features]
        if features.dtype == tf.float32 and self._injector is not None:
            features = self._injector(f"batch of {features.op.name}", features)
        return features, labels


def build(name, *, injector=None, dropout=False, optimizer=None, replica_id=0, **settings):
    """Deploys a golden model on a pipeline in the default graph; values pass an injector."""
    golden = GOLDENS[name]
    config = LogicalDevices(replica_id=replica_id, **{"num_clones": 2, **settings})
    tf.set_random_seed(1)
    tf.train.get_or_create_global_step()
    batches = _Batches(golden, config, injector)
    written = []
    if injector is not None:
        written = [lambda: _flip_written(injector)]
        optimizer = optimizer or _Flipping(injector)
    model_fn = _model_fn(golden, dropout)
    return deploy(
        config, model_fn, [batches], optimizer=optimizer or momentum(), update_ops=written
    )


def _flip_written(injector):
    """Flips what the update has written into variables."""
    changes = []
    for variable in tf.trainable_variables():
        with tf.device(variable.device):
            value = injector(f"weight {variable.op.name}", variable.read_value())
            changes.append(tf.assign(variable, value).op)
    return tf.group(*changes)

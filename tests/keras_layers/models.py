"""Tiny Keras models of each form, in Keras 3 and tf-keras, and what training them gives."""

import dataclasses

import keras
import numpy as np
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy import deploy, internals, random_by_step
from model_deploy.all_reduce import session_config
from model_deploy.hooks import session_hooks
from tests.copies import batches_of
from tests.goldens import GOLDENS, NUM_CLASSES, Golden, LogicalDevices, cpu_config, formula

KERASES = {"keras": keras, "tf_keras": tf_keras}
STEPS = 3
_MLP, _IMAGES = GOLDENS["slim_mlp"], GOLDENS["convolution"]


def _input(library, shape):
    layers = library.layers
    return layers.InputLayer(shape=shape) if library is keras else layers.InputLayer(shape)


def averages_activity(library):
    """Whether activity regularizers are divided by the batch: in tf-keras, and since Keras 3.14."""
    version = tuple(int(part) for part in library.__version__.split(".")[:2])
    return library is tf_keras or version >= (3, 14)


def averaged(library, regularizer):
    """An activity regularizer that is a mean over examples, as a law of batches needs."""
    if averages_activity(library):
        return regularizer
    return lambda output: regularizer(output) / tf.cast(tf.shape(output)[0], output.dtype)


def mlp(library):
    """Sequential: regularizers of weights, and of activations."""
    layers, l2 = library.layers, library.regularizers.L2
    return library.Sequential(
        [
            _input(library, (6,)),
            layers.Dense(
                5,
                "tanh",
                kernel_initializer=formula,
                kernel_regularizer=l2(0.02),
                activity_regularizer=averaged(library, l2(0.05)),
            ),
            layers.Dense(
                NUM_CLASSES, kernel_initializer=formula, bias_regularizer=l2(0.1), name="logits"
            ),
        ]
    )


def residual(library):
    """Functional: a block with two batch norms, and one of these layers used twice."""
    layers = library.layers
    start = library.Input((4, 4, 2))
    norm = layers.BatchNormalization(momentum=0.9, name="shared")
    x = layers.Conv2D(4, 3, padding="same", kernel_initializer=formula)(start)
    x = norm(x)
    y = layers.Conv2D(4, 3, padding="same", kernel_initializer=formula)(layers.ReLU()(x))
    y = layers.BatchNormalization(momentum=0.8, name="norm")(norm(y))
    x = layers.GlobalAveragePooling2D()(layers.Add()([x, y]))
    return library.Model(start, layers.Dense(NUM_CLASSES, kernel_initializer=formula)(x))


def subclassed(library, units=5):
    """A model and a layer of one's own: losses in `call`, and a running mean that is used."""

    class Centered(library.layers.Layer):
        def build(self, shape):
            self.center = self.add_weight(
                shape=(int(shape[-1]),), initializer="zeros", trainable=False, name="center"
            )
            self.count = self.add_weight(
                shape=(), initializer="zeros", trainable=False, name="count"
            )
            super().build(shape)

        def call(self, x, training=False):
            if training:
                self.count.assign_add(1.0)
                mean = tf.reduce_mean(tf.stop_gradient(x), axis=0)
                self.center.assign(self.center + (mean - self.center) / (self.count + 1.0))
            self.add_loss(0.1 * tf.reduce_mean(tf.square(x)))
            return x - self.center

    class Model(library.Model):
        def __init__(self):
            super().__init__()
            self.hidden = library.layers.Dense(units, "tanh", kernel_initializer=formula)
            self.centered = Centered()
            self.logits = library.layers.Dense(NUM_CLASSES, kernel_initializer=formula)

        def call(self, x, training=False):
            return self.logits(self.centered(self.hidden(x), training=training))

    return Model()


def dropping(library):
    """Sequential: dropout, with and without a seed, before and after a batch norm."""
    layers = library.layers
    return library.Sequential(
        [
            _input(library, (6,)),
            layers.Dropout(0.3, seed=7),
            layers.Dense(5, kernel_initializer=formula),
            layers.BatchNormalization(momentum=0.9),
            layers.Dropout(0.5),
            layers.Dense(NUM_CLASSES, kernel_initializer=formula),
        ]
    )


def recurrent(library):
    """Sequential: an embedding, with sparse gradients in tf-keras, and a loop."""
    layers = library.layers
    return library.Sequential(
        [
            layers.Embedding(11, 4, embeddings_initializer=formula),
            layers.GRU(
                3,
                kernel_initializer=formula,
                recurrent_initializer=formula,
                reset_after=False,
                activation="tanh",
            ),
            layers.Dense(NUM_CLASSES, kernel_initializer=formula),
        ]
    )


_WORDS = GOLDENS["embedding"]
# Those that give the same on parts of a batch as on the whole one.
_BY_BATCH = {"mlp": (mlp, _MLP), "recurrent": (recurrent, _WORDS)}
_OTHERS = {
    "residual": (residual, _IMAGES),
    "subclassed": (subclassed, _MLP),
    "dropping": (dropping, _MLP),
}

GOLDENS_OF = {name: golden for name, (_, golden) in {**_BY_BATCH, **_OTHERS}.items()}


@dataclasses.dataclass(frozen=True)
class Model:
    """A Keras model and its examples.

    Attributes:
      make: makes it.
      golden: has the examples.
      made: where: `inside` of `model_fn`, or `before` it.
    """

    make: object
    golden: Golden
    made: str

    def model_fn(self, config, seen=None):
        """A function of an iterator over batches, for `deploy`; `seen` gets the models it calls."""
        made = []
        if self.made == "before":
            with tf.device(config.variables_device()):
                made.append(self.make())

        def model_fn(batches):
            features, labels = next(batches)
            model = made[0] if made else self.make()
            logits = model(features, training=True)
            if seen is not None:
                seen.append(model)
            tf.losses.sparse_softmax_cross_entropy(labels, logits)
            return logits

        return model_fn


def _models(table):
    return {
        f"{name} {library} {made}": Model(lambda m=make, k=KERASES[library]: m(k), golden, made)
        for name, (make, golden) in table.items()
        for library in KERASES
        for made in ("inside", "before")
    }


BATCH_LAW_MODELS = _models(_BY_BATCH)
MODELS = {**BATCH_LAW_MODELS, **_models(_OTHERS)}


def adam():
    """Adam whose first steps are no mere signs of gradients, which may all but cancel."""
    return tf.train.AdamOptimizer(0.02, epsilon=1e-2)


class Run:
    """A model of one replica.

    Attributes:
      graph: holds it.
      model: what `deploy` returned.
      losses: of each step.
      values: of all global variables at the end, by name.
    """

    def __init__(self, model, num_clones=1, make_optimizer=adam, by_step=False, **options):
        ways = {name: options.pop(name) for name in list(options) if name in _OF_DEPLOY}
        self.config = LogicalDevices(num_clones=num_clones, **options)
        self.losses = []
        self.graph = tf.Graph()
        parts = self.config.batches_per_step * self.config.num_replicas
        with self.graph.as_default():
            tf.set_random_seed(1)
            keras.utils.set_random_seed(1)
            batches = batches_of(model.golden, parts)
            for _ in range(self.config.replica_id * self.config.batches_per_step):
                next(batches)  # of another replica
            with internals.fresh_names():
                model_fn = model.model_fn(self.config)
            model_fn = random_by_step(model_fn) if by_step else model_fn
            self.model = deploy(
                self.config, model_fn, [batches], optimizer=make_optimizer(), **ways
            )
            self.variables = {v.op.name: v for v in tf.global_variables()}
            self.saver = tf.train.Saver(max_to_keep=None)

    def __call__(self, target="", steps=STEPS, restore=None, save=None):
        """Trains; returns itself."""
        proto = session_config(self.config, cpu_config(max(4, self.config.num_clones)))
        proto.isolate_session_state = True  # servers keep variables of earlier sessions
        with self.graph.as_default(), tf.Session(target, config=proto) as session:
            session.run(tf.global_variables_initializer())
            session.run(tf.local_variables_initializer())
            if restore:
                self.saver.restore(session, restore)
            for hook in session_hooks():
                hook.after_create_session(session, None)
            self.losses += [session.run(self.model.train_op) for _ in range(steps)]
            self.values = session.run(self.variables)
            if save:
                self.saver.save(session, save, write_meta_graph=False)
            if self.config.all_reduce:
                assert session.run(self.model.copies_difference) == 0
        return self


_OF_DEPLOY = ("asynchronous", "replicas_to_aggregate", "clip_norm", "variables_to_train")


def assert_same(run, expected, tolerance=1e-6):
    """Losses and all variables agree, slots and averages among them."""
    np.testing.assert_allclose(run.losses, expected.losses, rtol=2e-6)
    assert run.values.keys() == expected.values.keys()
    for name, value in expected.values.items():
        limit = tolerance * max(np.max(np.abs(value)), 0.1)
        np.testing.assert_allclose(run.values[name], value, rtol=0, atol=limit, err_msg=name)


def assert_equal(run, expected):
    """Losses and all variables are the same to the last bit."""
    np.testing.assert_array_equal(run.losses, expected.losses)
    assert run.values.keys() == expected.values.keys()
    for name, value in expected.values.items():
        np.testing.assert_array_equal(run.values[name], value, err_msg=name)

"""Tiny Keras models of each form, in Keras 3 and tf-keras."""

import functools
import itertools

import keras
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy import internals
from tests.goldens import GOLDENS, NUM_CLASSES, Golden, formula

KERASES = {"keras": keras, "tf_keras": tf_keras}
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
            layers.SimpleRNN(3, kernel_initializer=formula, recurrent_initializer=formula),
            layers.Dense(NUM_CLASSES, kernel_initializer=formula),
        ]
    )


def autoencoder(library):
    """A model of one's own that adds losses in `call`, as a VAE does; its first call builds it."""
    dense = functools.partial(library.layers.Dense, kernel_initializer=formula)

    class Autoencoder(library.Model):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = dense(4), dense(6)
            self.logits = dense(NUM_CLASSES)

        def call(self, x, training=False):
            del training
            code = self.encoder(x)
            spread, mean = tf.split(code, 2, axis=-1)
            divergence = tf.square(mean) + tf.exp(spread) - spread - 1.0
            self.add_loss(0.05 * tf.reduce_mean(divergence))
            self.add_loss(0.1 * tf.reduce_mean(tf.square(self.decoder(code) - x)))
            return self.logits(code)

    return Autoencoder()


def normalizes_in_graphs(library):
    """Whether `SpectralNormalization` can be called in a graph; that of tf-keras 2.16 cannot."""
    return library is keras or hasattr(library.layers.SpectralNormalization, "_update_weights")


def spectral(library):
    """Sequential: a layer that assigns to its kernel, which is trained."""
    layers = library.layers
    return library.Sequential(
        [
            _input(library, (6,)),
            layers.SpectralNormalization(layers.Dense(5, "tanh", kernel_initializer=formula)),
            layers.Dense(NUM_CLASSES, kernel_initializer=formula),
        ]
    )


_WORDS = GOLDENS["embedding"]
_FORMS = {
    "mlp": (mlp, _MLP),
    "recurrent": (recurrent, _WORDS),
    "residual": (residual, _IMAGES),
    "subclassed": (subclassed, _MLP),
    "dropping": (dropping, _MLP),
    "autoencoder": (autoencoder, _MLP),
    "spectral": (spectral, _MLP),
}
# Those that give the same on parts of a batch as on the whole one.
_BY_BATCH = ("mlp", "recurrent", "autoencoder", "spectral")
GOLDENS_OF = {name: golden for name, (_, golden) in _FORMS.items()}


def _prepare(make, made, config, seen=None):
    """A `model_fn` with a Keras model that is made `inside` of it, or `before`; `seen` gets it."""
    keras.utils.set_random_seed(1)
    models = []
    if made == "before":
        with internals.fresh_names(), tf.device(config.variables_device()):
            models.append(make())

    def model_fn(features, labels):
        model = models[0] if models else make()
        logits = model(features, training=True)
        if seen is not None:
            seen.append(model)
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return logits

    return model_fn


def _golden(name, library, made):
    make, golden = _FORMS[name]
    prepare = functools.partial(_prepare, functools.partial(make, KERASES[library]), made)
    full_name = f"{name} {library} {made}"
    batch_law = name in _BY_BATCH
    return Golden(
        full_name, golden.features, golden.labels, None, batch_law=batch_law, prepare=prepare
    )


# By form, library, and where the model is made.
MODELS = {
    golden.name: golden
    for golden in itertools.starmap(
        _golden, itertools.product(_FORMS, KERASES, ("inside", "before"))
    )
    if not golden.name.startswith("spectral tf_keras") or normalizes_in_graphs(KERASES["tf_keras"])
}

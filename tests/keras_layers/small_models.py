"""Small models of layers of either library, as rows of the table of layers."""

import tensorflow.compat.v1 as tf


def u_net(layers):
    """A network whose early layers are used again late."""

    def call(images):
        early = layers.Conv2D(3, 2, padding="same", activation="relu")(images)
        deep = layers.Conv2D(4, 2, padding="same", activation="swish")(layers.MaxPooling2D()(early))
        late = layers.Conv2DTranspose(3, 2, strides=2)(deep)
        return layers.Conv2D(2, 1)(layers.Concatenate()([early, late]))

    return call


def tied_transformer(layers):
    """A transformer whose words are guessed by the embeddings that they were read with."""

    def call(words):
        embedding = layers.Embedding(11, 4)
        x = embedding(words)
        seen = layers.MultiHeadAttention(num_heads=2, key_dim=2)(x, x, use_causal_mask=True)
        x = layers.LayerNormalization()(layers.Add()([x, seen]))
        x = layers.Add()([x, layers.Dense(4)(layers.Dense(6, "gelu")(x))])
        return tf.einsum("bwd,vd->bwv", x, tf.convert_to_tensor(embedding.embeddings))

    return call


def lora(layers):
    """A layer whose kernel rests, beside a product of two small ones that is trained."""

    def call(x):
        layer = layers.Dense(4)
        layer.build(x.shape)
        layer.enable_lora(2)
        return layer(x)

    return call


def frozen(layers):
    """Layers that are not trained, before one that is."""

    def call(x):
        x = layers.BatchNormalization(trainable=False)(layers.Dense(4, trainable=False)(x))
        return layers.Dense(3, "tanh")(x)

    return call


OF_VECTORS = {"LoRA": lora, "frozen parts": frozen}
OF_WORDS = {"tied transformer": tied_transformer}
OF_IMAGES = {"U-Net": u_net}

"""`tf.contrib.layers`: what tf-slim does not have of it for tokens."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The embeddings of tokens, by the table `embeddings`.

    Args:
      ids: integers [batch, steps].
      vocab_size: number of tokens.
      embed_dim: size of an embedding.
      unique: whether a token that comes several times is looked up once.
      initializer: of the table.
      regularizer: of the table.
      trainable: whether it learns.
      scope: of the variable, "EmbedSequence" by default.
      reuse: whether the variable is one that is there.

    Returns:
      Float [batch, steps, embed_dim].

    Raises:
      ValueError: for a new table whose size is not given.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            f"vocab_size and embed_dim must be given, got {vocab_size} and {embed_dim}"
        )
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        table = slim.model_variable(
            "embeddings",
            shape,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        look_up = embedding_lookup_unique if unique else tf.nn.embedding_lookup
        return look_up(table, ids)


def embedding_lookup_unique(params: Any, ids: Any, name: str | None = None) -> Any:
    """`tf.nn.embedding_lookup` that looks up once a token that comes several times.

    Args:
      params: the table, float [tokens, ...], or a list of its parts.
      ids: integers, of any shape.
      name: of the ops.

    Returns:
      Float, of the shape of the tokens and that of an embedding behind it.
    """
    with tf.name_scope(name, "EmbeddingLookupUnique", [ids]):
        ids = tf.convert_to_tensor(ids)
        different, places = tf.unique(tf.reshape(ids, [-1]))
        rows = tf.nn.embedding_lookup(params, different)
        found = tf.gather(rows, places)
        found = tf.reshape(found, tf.concat([tf.shape(ids), tf.shape(rows)[1:]], 0))
        found.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return found

"""`tf.contrib.layers.embed_sequence`: rows of its table."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import embeddings

pytestmark = pytest.mark.one_mode


def test_embeddings():
    """Rows of the table, looked up singly or once for each token; the table can be shared."""
    tokens = [[0, 2], [2, 2]]
    found = embeddings.embed_sequence(tokens, 3, 4)
    once = embeddings.embed_sequence(tokens, 3, 4, unique=True, scope="EmbedSequence", reuse=True)
    shared = embeddings.embed_sequence(tokens, scope="EmbedSequence", reuse=True)
    [table] = tf.trainable_variables()
    assert table.op.name == "EmbedSequence/embeddings"
    assert once.shape.as_list() == [2, 2, 4]
    known = embeddings.embedding_lookup_unique(tf.constant([[5], [6], [7]]), tokens)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(known).tolist() == [[[5], [7]], [[7], [7]]]
        *values, rows = session.run([found, once, shared, table])
    for value in values:
        np.testing.assert_array_equal(value, rows[np.array(tokens)])


def test_size_is_needed():
    """A new table has a size."""
    with pytest.raises(ValueError, match="must be given, got 3 and None"):
        embeddings.embed_sequence([[0]], 3)

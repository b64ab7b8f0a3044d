"""`tf.contrib.lookup`: tables by contrib's names and arguments."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib import contrib_module

pytestmark = pytest.mark.one_mode

lookup = contrib_module("tensorflow.contrib.lookup")
_WORDS = ["a", "b", "c"]


def _found(make, keys):
    with tf.Session() as session:
        table = make() if callable(make) else make
        session.run(tf.tables_initializer())
        value = table.lookup(tf.convert_to_tensor(keys)) if hasattr(table, "lookup") else table
        return session.run(value).tolist()


@pytest.mark.parametrize(
    ("make", "keys", "expected"),
    [
        (lambda: lookup.index_table_from_tensor(mapping=tf.constant(_WORDS)), ["b", "z"], [1, -1]),
        (lambda: lookup.index_table_from_tensor(_WORDS, default_value=7), ["c", "z"], [2, 7]),
        (lambda: lookup.index_table_from_tensor(_WORDS, 1), ["c", "z"], [2, 3]),
        (
            lambda: lookup.index_table_from_tensor(vocabulary_list=[5, 6], dtype=tf.int64),
            [6, 9],
            [1, -1],
        ),
        (lambda: lookup.string_to_index_table_from_tensor(_WORDS), ["c"], [2]),
        (
            lambda: lookup.index_to_string_table_from_tensor(mapping=_WORDS),
            [2, 9],
            [b"c", b"UNK"],
        ),
        (lambda: lookup.string_to_index(["c", "z"], _WORDS), [0], [2, -1]),
        (
            lambda: lookup.index_to_string(tf.constant([0, 4], tf.int64), _WORDS, "?"),
            [0],
            [b"a", b"?"],
        ),
    ],
)
def test_tables(make, keys, expected):
    """Values are found, and others have the default."""
    keys = tf.constant(keys, tf.int64) if isinstance(keys[0], int) else keys
    assert _found(make, keys) == expected


def test_tables_of_files(tmp_path):
    """Each line of a file is a word, its number the place."""
    path = tmp_path / "words"
    path.write_text("a\nb\n")
    tables = (
        lookup.index_table_from_file(str(path)),
        lookup.string_to_index_table_from_file(str(path)),
    )
    for table in tables:
        assert _found(table, ["b", "z"]) == [1, -1]
    places = lookup.index_to_string_table_from_file(str(path))
    assert _found(places, tf.constant([1], tf.int64)) == [b"b"]


@pytest.mark.parametrize(
    ("make", "keys"),
    [
        (lambda: lookup.MutableHashTable(tf.string, tf.int64, -1), ["x", "y"]),
        (lambda: lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0), [1, 2]),
        (lambda: lookup.MutableDenseHashTable(tf.string, tf.int64, -1, ""), ["x", "y"]),
    ],
)
def test_tables_that_change(make, keys):
    """What is inserted is found, in steps that follow each other."""
    table = make()
    keys = tf.constant(keys, table.key_dtype)
    with tf.Session() as session:
        assert session.run(table.lookup(keys)).tolist() == [-1, -1]
        session.run(table.insert(keys[:1], tf.constant([4], tf.int64)))
        assert session.run(table.lookup(keys)).tolist() == [4, -1]
        assert session.run(table.size()) == 1


def test_hash_table_has_init():
    """A table of TensorFlow 1 is filled by its own `init`, too."""
    table = lookup.HashTable(lookup.KeyValueTensorInitializer(["x"], [5]), 0)
    with tf.Session() as session:
        session.run(table.init)
        assert session.run(table.lookup(tf.constant("x"))) == 5

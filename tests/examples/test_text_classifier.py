"""The text classifier: its data, its gradients and its two ways to train."""

import pytest
import tensorflow.compat.v1 as tf

import model_deploy
from examples import text_classifier as script
from model_deploy import inputs


def build_clones(options):
    """Clones on the training texts."""
    corpus = inputs.read_texts(options.data_file, options.max_words)
    parts = script.train_batches(corpus.train, options)
    config = model_deploy.DeploymentConfig(options.num_clones, clone_on_cpu=True)
    clones = model_deploy.create_clones(config, script.add_loss, [iter(parts), corpus])
    return parts, clones


def test_sentences():
    """600 different sentences, as many of each class; no test sentence is a training one."""
    lines = script.SENTENCES.read_text().splitlines()
    assert len(set(lines)) == len(lines) == 600
    labels = [line.split("\t")[0] for line in lines]
    assert (labels.count("praise"), labels.count("complaint")) == (300, 300)


def test_gradients_of_the_embedding_stay_sparse():
    """They are as many rows as there are tokens in the batch, over all clones."""
    options = script.TextOptions(num_clones=2, batch_size=6)
    parts, clones = build_clones(options)
    _, gradients = model_deploy.optimize_clones(clones, tf.train.AdamOptimizer())
    (rows,) = [each for each, variable in gradients if "embeddings" in variable.name]
    assert isinstance(rows, tf.IndexedSlices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        indices, tokens = session.run([rows.indices, [part.tokens for part in parts]])
    assert sorted(indices) == sorted(token for part in tokens for token in part.flat)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
def test_batches(asynchronous):
    """Clones share each batch; asynchronous ones take batches of that size one by one."""
    options = script.TextOptions(num_clones=2, batch_size=6, asynchronous=asynchronous)
    corpus = inputs.read_texts(options.data_file, options.max_words)
    parts = script.train_batches(corpus.train, options)
    assert [part.labels.shape.as_list() for part in parts] == [[3], [3]]
    taken = [op for op in tf.get_default_graph().get_operations() if op.type == "IteratorGetNext"]
    assert len(taken) == (2 if asynchronous else 1)


@pytest.mark.parametrize("text", ["a\tone\n", ""])
def test_errors_are_one_line(text, tmp_path, capsys):
    """A bad file ends the program with exit code 1."""
    path = tmp_path / "texts.tsv"
    path.write_text(text)
    assert script.main(["text", f"--data_file={path}", f"--train_dir={tmp_path}"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {path}: must have at least 5 lines")

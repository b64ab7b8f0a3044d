"""The text classifier: its data, its gradients and its two ways to train."""

import pytest
import tensorflow.compat.v1 as tf

import model_deploy
from examples import text_classifier as script


def build_clones(options):
    """Clones on the training texts."""
    corpus = script.read_corpus(options.data_file, options.max_words)
    parts = script.train_batches(corpus.train, options)
    config = model_deploy.DeploymentConfig(options.num_clones, clone_on_cpu=True)
    clones = model_deploy.create_clones(config, script.add_loss, [iter(parts), corpus])
    return parts, clones


def test_corpus(tmp_path):
    """Every fifth text is for the test; words that only it has are unknown; padding is in front."""
    path = tmp_path / "texts.tsv"
    path.write_text("b\tone two\na\tOne\nb\ttwo one two\na\ttwo\na\tnew one\n")
    corpus = script.read_corpus(path, max_words=2)
    assert corpus.classes == ["a", "b"]
    assert corpus.words == {"one": 2, "two": 3}
    assert corpus.train.tokens.tolist() == [[2, 3], [0, 2], [3, 2], [0, 3]]
    assert corpus.train.labels.tolist() == [1, 0, 1, 0]
    assert corpus.test.tokens.tolist() == [[1, 2]]
    assert corpus.test.labels.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a\tone\nonly\n", r"line 2 must be label<TAB>text, got \['only'\]", id="tab"),
        pytest.param("a\t \n", r"line 1 must be label<TAB>text, got \['a', ' '\]", id="empty"),
        pytest.param("a\tone\n" * 4, "at least 5 lines, got 4", id="short"),
    ],
)
def test_bad_files(tmp_path, text, message):
    """An error names the file and the line."""
    path = tmp_path / "texts.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"texts.tsv: .*{message}"):
        script.read_corpus(path, 10)


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
    corpus = script.read_corpus(options.data_file, options.max_words)
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

"""Files of texts: their tokens, their labels, their two parts."""

import pytest

from model_deploy import inputs

pytestmark = pytest.mark.one_mode


def test_corpus(tmp_path):
    """Every fifth text is for the test; words that only it has are unknown; padding is in front."""
    path = tmp_path / "texts.tsv"
    path.write_text("b\tone two\na\tOne\nb\ttwo one two\na\ttwo\na\tnew one\n")
    corpus = inputs.read_texts(path, max_words=2)
    assert corpus.class_names == ["a", "b"]
    assert corpus.words == {"one": 2, "two": 3}
    assert corpus.num_tokens == 4
    assert corpus.train.tokens.tolist() == [[2, 3], [0, 2], [3, 2], [0, 3]]
    assert corpus.train.labels.tolist() == [1, 0, 1, 0]
    assert corpus.test.tokens.tolist() == [[1, 2]]
    assert corpus.test.labels.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tone\nonly\n", r"line 2 must be label<TAB>text, got \['only'\]"),
        ("a\t \n", r"line 1 must be label<TAB>text, got \['a', ' '\]"),
        ("a\tone\n" * 4, "must have at least 5 lines, got 4"),
    ],
)
def test_bad_files(tmp_path, text, message):
    """An error names the file and the line."""
    path = tmp_path / "texts.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"texts.tsv: {message}"):
        inputs.read_texts(path, max_words=10)

"""`tf.contrib.learn.preprocessing.VocabularyProcessor`: numbers of words."""

import pickle

import pytest

from model_deploy.tf1 import names
from model_deploy.tf1.contrib.written import preprocessing

pytestmark = pytest.mark.one_mode

_TEXTS = ["the cat's on the mat", "a well-known CamelCase NASA", "the mat"]


def test_words_have_numbers_in_their_order():
    """Words are numbered as they come, from 1; texts are cut, or filled up with zeros."""
    learn = names.find("tensorflow.contrib.learn")
    processor = learn.preprocessing.VocabularyProcessor(4)
    rows = [row.tolist() for row in processor.fit_transform(iter(_TEXTS))]
    assert rows == [[1, 2, 3, 1], [5, 6, 7, 8], [1, 4, 0, 0]]
    assert len(processor.vocabulary_) == 10
    assert list(processor.reverse(rows[1:2])) == ["a well-known Camel Case"]
    assert [row.tolist() for row in processor.transform(["mat NASA dog"])] == [[4, 9, 0, 0]]


def test_texts_that_memory_does_not_hold():
    """Texts that can be gone through twice are read as they are needed, one by one."""
    read = []

    class Texts:
        def __iter__(self):
            for text in _TEXTS:
                read.append(text)
                yield text

    rows = preprocessing.VocabularyProcessor(2).fit_transform(Texts())
    assert read == _TEXTS
    assert next(rows).tolist() == [1, 2]
    assert read == [*_TEXTS, _TEXTS[0]]


def test_rare_words_are_unknown():
    """Words that do not come more often than `min_frequency` are 0, and the others by how often."""
    processor = preprocessing.VocabularyProcessor(5, min_frequency=1)
    rows = [row.tolist() for row in processor.fit_transform(_TEXTS)]
    assert rows == [[1, 0, 0, 1, 2], [0, 0, 0, 0, 0], [1, 2, 0, 0, 0]]
    assert processor.vocabulary_._mapping == {"<UNK>": 0, "the": 1, "mat": 2}


def test_too_common_words_are_unknown():
    """A vocabulary is trimmed at both ends, equal counts in the order of the alphabet."""
    vocabulary = preprocessing.CategoricalVocabulary(support_reverse=False)
    for word in "c c c b a b a d".split():  # noqa: SIM905 - as a text
        vocabulary.add(word)
    vocabulary.trim(1, 3)
    assert vocabulary._mapping == {"<UNK>": 0, "a": 1, "b": 2}
    with pytest.raises(ValueError, match="support_reverse must be True"):
        vocabulary.reverse(1)


def test_a_saved_vocabulary(tmp_path):
    """What is saved is restored, with words of any letters; and is JSON that can be read."""
    path = str(tmp_path / "vocab")
    saved = preprocessing.VocabularyProcessor(3, tokenizer_fn=lambda texts: map(str.split, texts))
    saved.fit(["über 'alles' \"x\" 7"]).save(path)
    found = preprocessing.VocabularyProcessor.restore(path)
    assert found.max_document_length == 3
    assert found.vocabulary_._mapping == saved.vocabulary_._mapping
    assert [row.tolist() for row in found.transform(["über 7 neu"])] == [[1, 4, 0]]
    assert [each.name for each in tmp_path.iterdir()] == ["vocab"]


@pytest.mark.parametrize("content", [pickle.dumps({"words": []}), b"[]", b'{"words": ["a"]}'])
def test_other_files_are_refused(content, tmp_path):
    """A pickle is not read, and neither is another JSON."""
    path = tmp_path / "vocab"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="filename must be a vocabulary that was saved here"):
        preprocessing.VocabularyProcessor.restore(str(path))

"""Converts a file of lines `label<TAB>text` to arrays of tokens and labels."""

import os
import pathlib
from typing import NamedTuple

import numpy as np

PADDING, UNKNOWN = 0, 1  # the first two tokens; words follow
_TEST_EVERY = 5


class Texts(NamedTuple):
    """Tokenized texts, one per row.

    Attributes:
      tokens: int64 [texts, length], padded at the front.
      labels: int64 [texts].
    """

    tokens: np.ndarray
    labels: np.ndarray


class Corpus(NamedTuple):
    """A file of texts: training and test texts, and the meaning of tokens and labels.

    Attributes:
      train: the training texts; rows have the same length as those of `test`.
      test: every fifth text of the file.
      words: the token of each word of the training texts, from 2 on.
      class_names: the labels in the file, in the order of their numbers.
    """

    train: Texts
    test: Texts
    words: dict[str, int]
    class_names: list[str]

    @property
    def num_tokens(self) -> int:
        """Number of tokens, including padding and unknown."""
        return UNKNOWN + 1 + len(self.words)


def read_texts(path: str | os.PathLike[str], max_words: int) -> Corpus:
    """Reads lines `label<TAB>text`; splits texts at white space into words in lower case.

    Words that occur only in test texts are unknown: their token is 1.

    Args:
      path: the file, in UTF-8.
      max_words: maximum number of words per text; later words are dropped.

    Returns:
      The training and test texts: tokens int64 [texts, length] and labels int64 [texts], where
      `length` is that of the longest text, at most `max_words`.

    Raises:
      ValueError: naming the first line without label or text; for fewer than 5 lines.
      OSError: if the file cannot be read.
    """
    lines = [line.split("\t", 1) for line in pathlib.Path(path).read_text("utf-8").splitlines()]
    for number, line in enumerate(lines, start=1):
        if len(line) < 2 or not all(part.strip() for part in line):
            raise ValueError(f"{path}: line {number} must be label<TAB>text, got {line}")
    if len(lines) < _TEST_EVERY:
        raise ValueError(f"{path}: must have at least {_TEST_EVERY} lines, got {len(lines)}")
    class_names, labels = np.unique([label for label, _ in lines], return_inverse=True)
    texts = [text.lower().split()[:max_words] for _, text in lines]
    is_test = np.arange(len(lines)) % _TEST_EVERY == _TEST_EVERY - 1
    known = {word for i in np.flatnonzero(~is_test) for word in texts[i]}
    words = {word: token for token, word in enumerate(sorted(known), start=UNKNOWN + 1)}
    tokens = np.full([len(texts), max(map(len, texts))], PADDING)
    for row, text in zip(tokens, texts, strict=True):
        row[-len(text) :] = [words.get(word, UNKNOWN) for word in text]
    train, test = (Texts(tokens[part], labels[part]) for part in (~is_test, is_test))
    return Corpus(train, test, words, class_names.tolist())

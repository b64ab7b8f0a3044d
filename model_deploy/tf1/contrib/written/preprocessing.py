"""`tf.contrib.learn.preprocessing`: words to numbers, by a vocabulary that texts have made."""

import collections
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.commands import replaced_file

# The words of TensorFlow 1: capitals, the first part of CamelCase, letters with ' and -.
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+")
_FIELDS = ("max_document_length", "min_frequency", "words")


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Numbers of categories, such as words, in the order in which they came; 0 is for all others.

    Args:
      unknown_token: the name of the others.
      support_reverse: whether `reverse` is possible.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._support_reverse = support_reverse
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._reverse_mapping = [unknown_token]
        self._freq: collections.Counter[Any] = collections.Counter()
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    @property
    def categories(self) -> list[Any]:
        """All of them by their numbers, the name of the others first."""
        return list(self._reverse_mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Lets nothing new in, or lets it again."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """The number of a category, a new one where it is new and may come in."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a category."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps what came more often than `min_frequency`, and less often than `max_frequency`.

        The numbers are then in the order of how often, and of the alphabet.
        """
        by_name = sorted(self._freq.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        kept = [
            (category, count)
            for category, count in sorted(by_name, key=lambda item: -item[1])
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._freq = collections.Counter(dict(kept))
        self._reverse_mapping = [self._unknown_token, *(category for category, _ in kept)]
        self._mapping = {category: i for i, category in enumerate(self._reverse_mapping)}

    def reverse(self, class_id: int) -> Any:
        """The category of a number.

        Raises:
          ValueError: if the vocabulary was made without.
        """
        if not self._support_reverse:
            raise ValueError("support_reverse must be True for reverse, got False")
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Texts to rows of the numbers of their words.

    Args:
      max_document_length: how many words of a text count; shorter ones have zeros behind.
      min_frequency: words that do not come more often are unknown.
      vocabulary: a `CategoricalVocabulary`; a new one by default.
      tokenizer_fn: from an iterable of texts to an iterable of their words; `tokenizer` by default.

    Attributes:
      vocabulary_: the vocabulary.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Iterable[str]]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> "VocabularyProcessor":
        """Learns the vocabulary, which then stays as it is."""
        del unused_y
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(
        self, raw_documents: Iterable[str], unused_y: Any = None
    ) -> Iterator[np.ndarray]:
        """Learns the vocabulary, then yields rows as `transform` does.

        What can be gone through twice, such as a file of texts that memory does not hold, is not
        copied.
        """
        is_iterator = isinstance(raw_documents, Iterator)
        documents = list(raw_documents) if is_iterator else raw_documents
        self.fit(documents, unused_y)
        return self.transform(documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """Yields a row for each text, int64 [max_document_length]."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for i, word in enumerate(itertools.islice(words, self.max_document_length)):
                row[i] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of each row, between spaces."""
        for row in documents:
            yield " ".join(str(self.vocabulary_.reverse(int(number))) for number in row)

    def save(self, filename: str) -> None:
        """Saves lengths and words, as JSON: TensorFlow 1 pickled the object.

        Args:
          filename: the file, which appears when it is complete.
        """
        words = self.vocabulary_.categories
        values = (self.max_document_length, self.min_frequency, words)
        with replaced_file(filename) as file:
            json.dump(dict(zip(_FIELDS, values, strict=True)), file)

    @classmethod
    def restore(cls, filename: str) -> "VocabularyProcessor":
        """What `save` has saved, with the usual tokenizer.

        Raises:
          ValueError: if the file is another one, as a pickle of TensorFlow 1.
        """
        with tf.gfile.Open(filename, "rb") as file:
            content = file.read()
        try:
            found = json.loads(content)
            length, min_frequency, words = (found[name] for name in _FIELDS)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"filename must be a vocabulary that was saved here, got {filename!r}; what "
                "TensorFlow 1 pickled is not read, as a pickle can run anything: fit anew"
            ) from error
        made = cls(length, min_frequency, CategoricalVocabulary(words[0]))
        for word in words[1:]:
            made.vocabulary_.get(word)
        made.vocabulary_.freeze()
        return made

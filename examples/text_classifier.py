"""Data parallelism on a text classifier: tokens -> embedding -> LSTM -> linear classifier.

    python examples/text_classifier.py --train_dir=text_run

Each step takes one batch of texts and splits it over the clones.  Synchronous clones add
their gradients up, and the variables change once per step; with `--asynchronous` each clone
changes them as soon as it is done, without waiting for the others.  In both cases gradients of
the embedding hold the rows of the tokens in the batch, and no others.

`--data_file` takes any file of lines `label<TAB>text`; every fifth line is kept for the test.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from train_image_classifier import prepare_tensorflow, without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    import model_deploy
    from model_deploy import slim, training
    from model_deploy.command_line import run_command
    from model_deploy.options import Options, option
    from nets.text_lstm import text_lstm, text_lstm_arg_scope

SENTENCES = pathlib.Path(__file__).parent / "data" / "sentences.tsv"
PADDING, UNKNOWN = 0, 1  # the ids before those of words


@dataclasses.dataclass(frozen=True)
class TextOptions(Options):
    """The settings of a run; each is a flag."""

    train_dir: str = option("text_run", "folder for checkpoints and TensorBoard events")
    data_file: str = option(str(SENTENCES), "lines label<TAB>text")
    num_clones: int = option(2, "parts of each batch, one per device", minimum=1)
    asynchronous: bool = option(False, "let each clone update the variables by itself")
    batch_size: int = option(32, "texts in a step of all clones", minimum=1)
    max_steps: int = option(300, "number of the last step", minimum=1)
    learning_rate: float = option(0.005, "learning rate of Adam", above=0)
    max_words: int = option(40, "words of a text that are read, from its start", minimum=1)

    @property
    def texts_per_update(self) -> int:
        """A synchronous update is that of all clones, an asynchronous one that of one clone."""
        return max(1, self.batch_size // (self.num_clones if self.asynchronous else 1))


class Texts(NamedTuple):
    """Texts as numbers.

    Attributes:
      tokens: int64 [texts, length], padded at the front.
      labels: int64 [texts].
    """

    tokens: Any
    labels: Any


class Corpus(NamedTuple):
    """A file of texts, read: its two parts, and what the numbers stand for."""

    train: Texts
    test: Texts
    words: dict[str, int]
    classes: list[str]


def read_corpus(path: str, max_words: int) -> Corpus:
    """Reads lines `label<TAB>text`; words that only the test has are unknown.

    Raises:
      ValueError: naming the first line that has no label or no text.
    """
    lines = [line.split("\t", 1) for line in pathlib.Path(path).read_text("utf-8").splitlines()]
    for number, line in enumerate(lines, start=1):
        if len(line) < 2 or not all(part.strip() for part in line):
            raise ValueError(f"{path}: line {number} must be label<TAB>text, got {line}")
    if len(lines) < 5:
        raise ValueError(f"{path}: must have at least 5 lines, got {len(lines)}")
    classes = sorted({label for label, _ in lines})
    labels = np.array([classes.index(label) for label, _ in lines])
    texts = [text.lower().split()[:max_words] for _, text in lines]
    is_test = np.arange(len(lines)) % 5 == 4
    known = {word for i in np.flatnonzero(~is_test) for word in texts[i]}
    words = {word: UNKNOWN + i for i, word in enumerate(sorted(known), start=1)}
    tokens = np.full([len(texts), max(map(len, texts))], PADDING)
    for row, text in zip(tokens, texts, strict=True):
        row[-len(text) :] = [words.get(word, UNKNOWN) for word in text]
    train, test = (Texts(tokens[part], labels[part]) for part in (~is_test, is_test))
    return Corpus(train, test, words, classes)


def train_batches(texts: Texts, options: TextOptions) -> list[Texts]:
    """One batch for each clone; all of them change in each step of synchronous training."""
    data = tf.data.Dataset.from_tensor_slices(texts).shuffle(len(texts.labels), seed=1).repeat()
    iterator = tf.data.make_one_shot_iterator(data.batch(options.texts_per_update, True))
    if options.asynchronous:  # each clone takes a batch when it needs one
        return [iterator.get_next() for _ in range(options.num_clones)]
    return model_deploy.split_batch(iterator.get_next(), options.num_clones)


def test_batches(texts: Texts) -> Texts:
    """The test texts, batch by batch."""
    data = tf.data.Dataset.from_tensor_slices(texts).batch(100)
    return tf.data.make_one_shot_iterator(data).get_next()


def network(texts: Texts, corpus: Corpus, is_training: bool) -> Any:
    """Logits [texts, classes]."""
    with slim.arg_scope(text_lstm_arg_scope()):
        logits, _ = text_lstm(
            texts.tokens,
            len(corpus.classes),
            is_training,
            vocabulary_size=UNKNOWN + 1 + len(corpus.words),
            embedding_size=32,
            hidden_size=32,
        )
    return logits


def add_loss(parts: Any, corpus: Corpus) -> None:
    """The `model_fn` of the deployment: called once per clone."""
    texts = next(parts)
    logits = network(texts, corpus, is_training=True)
    tf.losses.sparse_softmax_cross_entropy(texts.labels, logits)


def train(options: TextOptions) -> None:
    """Trains, and prints the accuracy on the test texts."""
    corpus = read_corpus(options.data_file, options.max_words)
    has_gpus = len(tf.config.list_physical_devices("GPU")) >= options.num_clones
    config = model_deploy.DeploymentConfig(options.num_clones, clone_on_cpu=not has_gpus)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        with tf.device(config.inputs_device()):
            parts = train_batches(corpus.train, options)
        model = model_deploy.deploy(
            config,
            add_loss,
            [iter(parts), corpus],
            optimizer=tf.train.AdamOptimizer(options.learning_rate),
            asynchronous=options.asynchronous,
        )
        model_deploy.train(
            model,
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.texts_per_update,
            log_every_n_steps=50,
        )

    found = training.evaluate(
        lambda texts: (network(texts, corpus, is_training=False), texts.labels),
        lambda: test_batches(corpus.test),
        options.train_dir,
    )
    print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    prepare_tensorflow()
    return run_command(argv, TextOptions, train, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))

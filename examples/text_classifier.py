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
from collections.abc import Iterator, Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig, deploy, inputs, split_batch, train, training
    from model_deploy.commands import option, run_command
    from model_deploy.settings import PRECISIONS
    from nets import nets_factory

SENTENCES = pathlib.Path(__file__).parent / "data" / "sentences.tsv"


@dataclasses.dataclass(frozen=True)
class TextOptions(training.LoopOptions):
    """The settings of a run, beside those of the loop; each is a flag."""

    train_dir: str = option("text_run", "folder for checkpoints and TensorBoard events")
    data_file: str = option(str(SENTENCES), "lines label<TAB>text")
    num_clones: int = option(2, "parts of each batch, one per device", minimum=1)
    asynchronous: bool = option(False, "let each clone update the variables by itself")
    batch_size: int = option(32, "texts in a step of all clones", minimum=1)
    max_steps: int = option(300, "number of the last step", minimum=1)
    learning_rate: float = option(0.005, "learning rate of Adam", above=0)
    max_words: int = option(40, "words of a text that are read, from its start", minimum=1)
    precision: str = option("float32", "what matrix products are computed in", choices=PRECISIONS)
    seed: int = option(1, "number that random choices follow from")
    log_every_n_steps: int = option(50, "steps from one line to the next", minimum=1)

    @property
    def texts_per_update(self) -> int:
        """A synchronous update is that of all clones, an asynchronous one that of one clone."""
        return max(1, self.batch_size // (self.num_clones if self.asynchronous else 1))


def train_batches(texts: inputs.Texts, options: TextOptions) -> list[inputs.Texts]:
    """One batch for each clone; all of them change in each step of synchronous training."""
    data = (
        tf.data.Dataset.from_tensor_slices(texts)
        .shuffle(len(texts.labels), seed=options.seed)
        .repeat()
    )
    iterator = tf.data.make_one_shot_iterator(data.batch(options.texts_per_update, True))
    if options.asynchronous:  # each clone takes a batch when it needs one
        return [iterator.get_next() for _ in range(options.num_clones)]
    return split_batch(iterator.get_next(), options.num_clones)


def test_batches(texts: inputs.Texts) -> inputs.Texts:
    """The test texts, batch by batch."""
    data = tf.data.Dataset.from_tensor_slices(texts).batch(100)
    return tf.data.make_one_shot_iterator(data).get_next()


def network(texts: inputs.Texts, corpus: inputs.Corpus, is_training: bool) -> Any:
    """Logits [texts, classes]."""
    lstm = nets_factory.get_network_fn(
        "text_lstm", len(corpus.class_names), is_training=is_training
    )
    logits, _ = lstm(
        texts.tokens, vocabulary_size=corpus.num_tokens, embedding_size=32, hidden_size=32
    )
    return logits


def add_loss(parts: Iterator[inputs.Texts], corpus: inputs.Corpus) -> None:
    """The `model_fn` of the deployment: called once per clone."""
    texts = next(parts)
    logits = network(texts, corpus, is_training=True)
    tf.losses.sparse_softmax_cross_entropy(texts.labels, logits)


def run(options: TextOptions) -> None:
    """Trains, and prints the accuracy on the test texts."""
    corpus = inputs.read_texts(options.data_file, options.max_words)
    # Where there are fewer GPUs, TensorFlow runs the clones on the CPU.
    config = DeploymentConfig(options.num_clones, precision=options.precision)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        with tf.device(config.inputs_device()):
            parts = train_batches(corpus.train, options)
        model = deploy(
            config,
            add_loss,
            [iter(parts), corpus],
            optimizer=tf.train.AdamOptimizer(options.learning_rate),
            asynchronous=options.asynchronous,
        )
        train(
            model,
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.texts_per_update,
            unit="texts",
            **options.part(training.LoopOptions),
        )
    found = training.evaluate(
        lambda texts: (network(texts, corpus, is_training=False), texts.labels),
        lambda: test_batches(corpus.test),
        options.train_dir,
    )
    print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, TextOptions, run, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))

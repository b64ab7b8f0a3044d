"""The table of networks: what they take, how large they are and how much they compute."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from nets import keras_networks, nets_factory
from nets.listing.multiply_adds import multiply_adds
from nets.parts.network import Tokens

HEADER = ("network", "input", "classes", "parameters", "multiply-adds")
# Length of the clips that I3D was designed for, section 2.5 of https://arxiv.org/abs/1705.07750.
_FRAMES = 64
_CLASSES = 1000


class Row(NamedTuple):
    """One network at its default size, for one example; without what only training needs."""

    name: str
    input_shape: tuple[int, ...]
    num_classes: int
    parameters: int
    multiply_adds: int

    def cells(self) -> tuple[str, ...]:
        """Returns the row as text, in the order of `HEADER`."""
        return (
            self.name,
            " x ".join(map(str, self.input_shape)),
            str(self.num_classes),
            f"{self.parameters:,}",
            f"{self.multiply_adds:,}",
        )


def keras_table() -> list[tuple[str, str]]:
    """Returns names and inputs of the networks of `keras.applications`, under a header.

    To build them all takes minutes; `row` has the sizes of one.
    """
    rows = []
    for name in keras_networks.names():
        size = nets_factory.get_network(name).function.inputs.size  # type: ignore[attr-defined]
        rows.append((name, f"{size} x {size} x 3"))
    return [HEADER[:2], *rows]


def default_classes(name: str) -> int:
    """Returns a network's own number of classes if it is for a small dataset, otherwise 1000."""
    parameters = inspect.signature(nets_factory.get_network(name).function).parameters
    default = parameters["num_classes"].default
    return default if isinstance(default, int) and default < 100 else _CLASSES


def build(name: str, num_classes: int) -> tuple[int, ...]:
    """Builds a network for evaluation of one example, in the current graph.

    Returns:
      The shape of the input without the batch.
    """
    inputs = nets_factory.get_network(name).function.inputs  # type: ignore[attr-defined]
    if isinstance(inputs, Tokens):
        shape: tuple[int, ...] = (inputs.size,)
        example = tf.zeros([1, *shape], tf.int64)
    else:
        # LeNet and its like were made for grey digits of 28 x 28.
        channels = 1 if inputs.size == 28 else 3
        frames = [_FRAMES] if inputs.rank == 5 else []
        shape = (*frames, inputs.size, inputs.size, channels)
        example = tf.zeros([1, *shape])
    nets_factory.get_network_fn(name, num_classes)(example)
    return shape


def row(name: str, num_classes: int | None = None) -> Row:
    """Returns the row of one network, with its default number of classes if none is given."""
    num_classes = num_classes or default_classes(name)
    with tf.Graph().as_default() as graph, _countable_loops():
        shape = build(name, num_classes)
        parameters = sum(v.shape.num_elements() for v in tf.trainable_variables())
        return Row(name, shape, num_classes, parameters, multiply_adds(graph))


@contextlib.contextmanager
def _countable_loops() -> Iterator[None]:
    """Builds loops as functions, also in a process after `tf.disable_v2_behavior()`."""
    was_enabled = tf.control_flow_v2_enabled()
    tf.enable_control_flow_v2()
    try:
        yield
    finally:
        if not was_enabled:
            tf.disable_control_flow_v2()


def text_table(rows: Iterable[Sequence[str]]) -> str:
    """Returns rows of text, the first of them a header, as columns for a terminal."""
    rows = [tuple(cells) for cells in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (_aligned(cells, widths, "  ").rstrip() for cells in rows)
    return "\n".join(lines)


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """Returns rows of text, the first of them a header, as a Markdown table."""
    header, *body = [tuple(cells) for cells in rows]
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
    rule = [
        "-" * width if left else "-" * (width - 1) + ":"
        for width, left in zip(widths, _left(len(widths)), strict=True)
    ]
    lines = [header, tuple(rule), *body]
    return "\n".join(f"| {_aligned(cells, widths, ' | ')} |" for cells in lines)


def document(rows: Iterable[Row]) -> str:
    """Returns the text of `docs/nets.md`."""
    table = markdown_table([HEADER, *(row.cells() for row in rows)])
    return f"""# Networks

The networks that come along: all of TF-Slim's image classifiers under the variable names of its
published checkpoints, and some more. `--model_name` takes their names, and
`nets_factory.get_network_fn(name, num_classes)` builds each of them in a program.

The input is that of one example: height x width x channels, with frames first for video, and tokens
for text. Parameters are the trainable ones of the evaluation graph. Multiply-adds are those of
convolutions and matrix products in one evaluation of one example. `python -m nets --markdown >
docs/nets.md` made this page; a test compares its rows with the networks.

{table}

## Those of Keras

The image classifiers of `keras.applications` of the Keras that is installed, without weights; for
those see [keras.md](keras.md). `python -m nets --name keras/ResNet50` prints the size of one.

{markdown_table(keras_table())}

## Generators

Networks that make images, under TF-Slim's names. They are no classifiers, so that `--model_name`
does not take them: a program imports their modules.

- `nets.dcgan`: images of noise, and its discriminator. `examples/dcgan.py` trains both, see
  [examples.md](examples.md#two-networks-against-each-other-dcgan).
- `nets.pix2pix`: images of images, by a network that joins layers of one size, and the
  discriminator of pix2pix, which judges an image piece by piece.
- `nets.cyclegan`: images of images, by the network of residual blocks of CycleGAN.
"""


def _left(columns: int) -> list[bool]:
    """Text stands left (the first two columns), numbers right."""
    return [column < 2 for column in range(columns)]


def _aligned(cells: Sequence[str], widths: Sequence[int], separator: str) -> str:
    return separator.join(
        cell.ljust(width) if left else cell.rjust(width)
        for cell, width, left in zip(cells, widths, _left(len(widths)), strict=True)
    )


def variables(
    name: str,
    num_classes: int,
    naming: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
) -> dict[str, list[Any]]:
    """Returns name -> shape of the variables of a network's evaluation graph.

    Args:
      name: the network.
      num_classes: width of the logits.
      naming: makes a context that gives the variables of layers the names of training.
    """
    with tf.Graph().as_default(), naming():
        build(name, num_classes)
        return {v.op.name: v.shape.as_list() for v in tf.global_variables()}

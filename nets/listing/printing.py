"""Prints the table of networks, and which of them a checkpoint fits."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from nets.listing import fit, report


def print_table(names: Iterable[str], num_classes: int | None, *, with_keras: bool) -> None:
    """Prints a row for each network.

    Args:
      names: names of networks.
      num_classes: width of the logits; None for the default of each.
      with_keras: whether a table of Keras' networks follows.
    """
    rows = (report.row(name, num_classes) for name in names)
    print(report.text_table([report.HEADER, *(row.cells() for row in rows)]))
    if with_keras:
        print(f"\n{report.text_table(report.keras_table())}")


def print_document(names: Iterable[str], num_classes: int | None) -> None:
    """Prints `docs/nets.md`, with a row for each network."""
    print(report.document(report.row(name, num_classes) for name in names), end="")


def print_fit(
    checkpoint: str,
    names: Iterable[str],
    num_classes: int | None,
    naming: Callable[[], AbstractContextManager[None]],
) -> bool:
    """Prints a line per network, and the differing variables of the one that fits best.

    Args:
      checkpoint: path of the checkpoint.
      names: names of networks.
      num_classes: width of the logits; None for the default of each.
      naming: context manager in which variables get their names as in training.

    Returns:
      Whether one fits.

    Raises:
      ValueError: as `fit.read_shapes`.
    """
    shapes = fit.read_shapes(checkpoint)
    fits = {}
    for name in names:
        classes = num_classes or report.default_classes(name)
        network = report.variables(name, classes, naming)
        fits[name] = fit.compare(shapes, network)
        print(f"{name}: {fits[name].summary()}")
    best = min(fits, key=lambda name: sum(map(len, fits[name])))
    if details := fits[best].details():
        print("\n".join(["", f"{best}:", *details]))
    return any(found.fits for found in fits.values())

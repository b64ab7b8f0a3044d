"""`python -m nets`: lists the networks, and says which of them a checkpoint fits."""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Sequence

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig
    from model_deploy.keras_layers import seeing_layers
    from nets import nets_factory
    from nets.listing import fit, report


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what the arguments ask for; returns the exit status, 1 if nothing fits."""
    parser = _parser()
    options = parser.parse_args(arguments)
    # Slim asks for every new variable whether a list holds it. In graph mode variables compare by
    # identity either way, but to say so at once builds the large networks three times as fast.
    tf.disable_tensor_equality()
    names = [options.name] if options.name else nets_factory.network_names()
    if options.checkpoint:
        try:
            shapes = fit.read_shapes(options.checkpoint)
        except ValueError as error:
            parser.error(str(error))
        return _print_fit(shapes, names, options.num_classes)
    rows = (report.row(name, options.num_classes) for name in names)
    if options.markdown:
        print(report.document(rows), end="")
    else:
        print(report.text_table([report.HEADER, *(row.cells() for row in rows)]))
        if not options.name:
            print(f"\n{report.text_table(report.keras_table())}")
    return 0


def _print_fit(shapes: fit.Shapes, names: Iterable[str], num_classes: int | None) -> int:
    """Prints a line per network, and the differing variables of the one that fits best."""
    fits = {}
    for name in names:
        classes = num_classes or report.default_classes(name)
        network = report.variables(name, classes, _naming_as_in_training)
        fits[name] = fit.compare(shapes, network)
        print(f"{name}: {fits[name].summary()}")
    best = min(fits, key=lambda name: sum(map(len, fits[name])))
    if details := fits[best].details():
        print("\n".join(["", f"{best}:", *details]))
    return 0 if any(found.fits for found in fits.values()) else 1


def _naming_as_in_training() -> contextlib.AbstractContextManager[None]:
    return seeing_layers(DeploymentConfig(), 0, "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nets", description="Lists the networks, or checks a checkpoint."
    )
    parser.add_argument(
        "--name",
        choices=nets_factory.all_network_names(),
        metavar="NAME",
        help="only this network",
    )
    parser.add_argument("--checkpoint", help="say whether this checkpoint fits")
    parser.add_argument(
        "--num_classes",
        type=_positive,
        help="width of the logits; by default 1000, or fewer for the networks of small datasets",
    )
    parser.add_argument("--markdown", action="store_true", help="print docs/nets.md")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

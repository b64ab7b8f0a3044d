"""`python -m nets`: lists the networks, and says which of them a checkpoint fits."""

import argparse
import contextlib
import sys
from collections.abc import Sequence

from model_deploy.commands import without_tensorflow_notices
from nets import nets_factory


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what the arguments ask for; returns the exit status, 1 if nothing fits."""
    parser = _parser()
    options = parser.parse_args(arguments)
    with without_tensorflow_notices():  # after help and refusals, as it takes seconds
        import tensorflow.compat.v1 as tf  # noqa: PLC0415

        from nets.listing import printing  # noqa: PLC0415
    # Slim asks for every new variable whether a list holds it. In graph mode variables compare by
    # identity either way, but to say so at once builds the large networks three times as fast.
    tf.disable_tensor_equality()
    names = [options.name] if options.name else nets_factory.network_names()
    if options.checkpoint:
        try:
            fits = printing.print_fit(
                options.checkpoint, names, options.num_classes, _naming_as_in_training
            )
        except ValueError as error:
            parser.error(str(error))
        return 0 if fits else 1
    if options.markdown:
        printing.print_document(names, options.num_classes)
    else:
        printing.print_table(names, options.num_classes, with_keras=not options.name)
    return 0


def _naming_as_in_training() -> contextlib.AbstractContextManager[None]:
    from model_deploy import DeploymentConfig  # noqa: PLC0415 - imports TensorFlow
    from model_deploy.keras_layers import seeing_layers  # noqa: PLC0415

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

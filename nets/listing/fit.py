"""Whether a checkpoint fits a network."""

from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

Shapes = dict[str, list[Any]]


class Fit(NamedTuple):
    """How the variables of a checkpoint differ from those of a network.

    Attributes:
      missing: names that the network has and the checkpoint has not.
      unexpected: names that only the checkpoint has, such as those of an optimizer.
      mis_shaped: name -> shape in the checkpoint and shape in the network, where they differ.
    """

    missing: list[str]
    unexpected: list[str]
    mis_shaped: dict[str, tuple[list[Any], list[Any]]]

    @property
    def fits(self) -> bool:
        """Whether every variable of the network can be restored."""
        return not self.missing and not self.mis_shaped

    def summary(self) -> str:
        """Returns the verdict in one line."""
        counts = (
            f"{len(self.missing)} missing, {len(self.unexpected)} unexpected,"
            f" {len(self.mis_shaped)} mis-shaped"
        )
        return f"{'fits' if self.fits else 'does not fit'}: {counts}"

    def details(self) -> list[str]:
        """Returns a line for every variable that differs."""
        return [
            *(f"missing: {name}" for name in self.missing),
            *(f"unexpected: {name}" for name in self.unexpected),
            *(
                f"mis-shaped: {name} is {found} in the checkpoint, {wanted} in the network"
                for name, (found, wanted) in self.mis_shaped.items()
            ),
        ]


def read_shapes(checkpoint: str) -> Shapes:
    """Returns name -> shape of the variables of a checkpoint.

    Args:
      checkpoint: its path without the extension, or a directory, whose latest one is read.

    Raises:
      ValueError: if there is no readable checkpoint.
    """
    try:
        return dict(tf.train.list_variables(checkpoint))
    except (tf.errors.OpError, ValueError) as error:
        raise ValueError(
            f"checkpoint must be a path of a TensorFlow checkpoint, got {checkpoint!r}"
        ) from error


def compare(checkpoint: Shapes, network: Shapes) -> Fit:
    """Compares the variables of a checkpoint with those of a network, both name -> shape."""
    return Fit(
        missing=[name for name in network if name not in checkpoint],
        unexpected=[name for name in checkpoint if name not in network],
        mis_shaped={
            name: (checkpoint[name], shape)
            for name, shape in network.items()
            if name in checkpoint and checkpoint[name] != shape
        },
    )

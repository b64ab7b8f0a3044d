"""`InProcess`: the sums of `Collectives` among the clones of one process, which meet in its memory.

In a cluster a collective op, also one between devices of a single process, is arranged by worker 0.
Clones that exchange nothing with other processes need no such op.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives.carriers import largest
from model_deploy.collectives.ops import Collectives, PerClone, collectives_of
from model_deploy.config import DeploymentConfig


class InProcess(Collectives):
    """Exchanges tensors between devices of one process by plain ops, on the first device.

    Args:
      devices: devices of this process that take part, all different.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        super().__init__(devices, 0, 1, "in process")

    def sum(self, tensors: PerClone, label: str, scale: float = 1.0) -> PerClone:
        """Sums each element over the devices, times `scale`; see `Collectives.sum`."""
        del label

        def total() -> PerClone:
            added = tf.add_n(list(tensors))
            return added if scale == 1 else added * scale

        return self._of_first(total)

    def max(self, tensors: PerClone, label: str) -> PerClone:
        """Returns each element's maximum over the devices; see `Collectives.max`."""
        del label
        return self._of_first(lambda: largest(tensors))

    def gather(self, tensors: PerClone, label: str, num_rows: PerClone | None = None) -> PerClone:
        """Concatenates the tensors of the devices; see `Collectives.gather`."""
        del label, num_rows
        return self._of_first(lambda: tf.concat(list(tensors), axis=0))

    def first_clones(self) -> Collectives:
        """Returns the first device alone."""
        return InProcess(self._devices[:1])

    def _of_first(self, make: Callable[[], Any]) -> PerClone:
        """Returns for each device the value that `make` makes on the first one."""
        [made] = InProcess(self._devices[:1]).on_devices(lambda _: make())
        return self.on_devices(lambda _: tf.identity(made))


def collectives_in_process(config: DeploymentConfig, purpose: str) -> Collectives:
    """Returns what sums values over the clones of this process.

    Args:
      config: the deployment.
      purpose: distinguishes the sequence from others in the graph.
    """
    if config.num_replicas == 1:
        return collectives_of(config, purpose)
    return InProcess([config.clone_device(i) for i in range(config.num_clones)])

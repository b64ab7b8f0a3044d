"""`CloneSettings`: how the clones of one process are built."""

import dataclasses

from model_deploy.checks import check_bool, check_whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloneSettings:
    """How the clones of one process are built.

    Attributes:
      devices_per_clone: number of devices, one per stage of a clone; with k of them clone i has the
        devices i * k to i * k + k - 1.  `model_fn` places ops on a stage by `with
        tf.device(config.stage_device(current_clone(), stage))`; other ops are on the first device.
      copy_clones: call `model_fn` for the first clone only, and copy its ops and gradients for the
        other clones, which makes building many clones much faster.  `model_fn` must get its
        batches by `next` on iterators among its arguments, and may not depend on other Python
        state; a model that cannot be copied raises `ValueError`.
      accumulate_steps: batches of each clone per update.  Each batch is a *part* of the clone;
        parts run one after the other, in the memory of one, and `model_fn` is called (or
        copied) for each part.
    """

    devices_per_clone: int = 1
    copy_clones: bool = False
    accumulate_steps: int = 1

    def check_clones(self) -> None:
        """Checks each field alone.

        Raises:
          ValueError: for an invalid value, naming the field, the rule and the value.
        """
        check_whole("devices_per_clone", self.devices_per_clone, 1)
        check_bool("copy_clones", self.copy_clones)
        check_whole("accumulate_steps", self.accumulate_steps, 1)

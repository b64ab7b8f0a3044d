"""`CloneSettings`: how the clones of one process are made."""

import dataclasses

from model_deploy.checks import check_bool, check_whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloneSettings:
    """How the clones of one process are made.

    Attributes:
      devices_per_clone: devices over which a clone spreads its stages; clone i owns
        the devices i * k to i * k + k - 1.  `model_fn` places ops on them by
        `with tf.device(config.stage_device(current_clone(), stage))`; an op that it does not
        place is on the first one.
      copy_clones: call `model_fn` for the first clone only, and copy for the others all that
        it built, gradients too.  Building many clones takes much less time.  `model_fn`
        must get its batches by `next` on iterators that are its arguments, and may not
        depend on other Python state; a model that cannot be copied is a `ValueError`.
      accumulate_steps: batches of each clone in an update.  They are *parts* of the clone,
        which run one after the other, so that the memory is that of one; `model_fn` is called
        (or copied) for each part.
    """

    devices_per_clone: int = 1
    copy_clones: bool = False
    accumulate_steps: int = 1

    def check_clones(self) -> None:
        """Checks each field by itself.

        Raises:
          ValueError: for a value that breaks a rule, naming the field, the rule and the value.
        """
        check_whole("devices_per_clone", self.devices_per_clone, 1)
        check_bool("copy_clones", self.copy_clones)
        check_whole("accumulate_steps", self.accumulate_steps, 1)

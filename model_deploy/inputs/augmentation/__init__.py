"""Augmentation on top of the preprocessing families': RandAugment, erasing, mixup and cutmix.

It consists of TensorFlow ops and depends only on each example's seed, (seed, position).
"""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.inputs.augmentation.mixing import Mixing
    from model_deploy.inputs.augmentation.operations import OPERATIONS
    from model_deploy.inputs.augmentation.settings import Augmentation

__all__ = ["OPERATIONS", "Augmentation", "Mixing"]

import_when_used(__name__)

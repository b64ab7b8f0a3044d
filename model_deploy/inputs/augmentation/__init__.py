"""Augmentation beyond the families' own: RandAugment, random erasing, mixup and cutmix.

All of it is TensorFlow's ops and a function of each example's seed, (seed, position).
"""

from model_deploy.inputs.augmentation.mixing import Mixing
from model_deploy.inputs.augmentation.operations import OPERATIONS
from model_deploy.inputs.augmentation.settings import Augmentation

__all__ = ["OPERATIONS", "Augmentation", "Mixing"]

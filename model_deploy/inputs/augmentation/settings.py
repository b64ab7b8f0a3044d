"""Which augmentation there is, how strong it is, and which part of it an image gets by itself."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from model_deploy.commands import Options, option
from model_deploy.inputs.augmentation.erasing import erase
from model_deploy.inputs.augmentation.randaugment import LARGEST_MAGNITUDE, randaugment


@dataclasses.dataclass(frozen=True)
class Augmentation(Options):
    """Augmentation for training, on top of what the preprocessing family does; all off by default.

    RandAugment changes the image that the family has cut and mirrored, before it is normalized;
    erasing comes after that, and mixup and cutmix last, between two examples that are complete.

    Attributes:
      randaugment_layers: operations of RandAugment for each image, one after the other; 0 is none.
      randaugment_magnitude: how strong these are, from 0 to 10; see `augmentation.operations`.
      random_erasing: the probability that a box in the image is set to 0, its mean.
      mixup: both parameters of the Beta distribution of mixup's shares; 0 is no mixup.
      cutmix: both parameters of the Beta distribution of cutmix's areas; 0 is no cutmix.  With
        mixup as well, each example has one of the two, with the same probability.
      crop_padding: how many pixels are on each side of the images of which `cifarnet` and
        `padded_crop` cut parts out: zeros for the one, mirrored ones for the other; None is what
        the family has.  With fewer, images are shifted less, which short runs learn more of.

    Raises:
      ValueError: as `Options`.

    >>> Augmentation(mixup=0.2).mixes
    True
    >>> Augmentation(randaugment_magnitude=11)
    Traceback (most recent call last):
    ValueError: randaugment_magnitude must be at most 10, got 11
    """

    topic: ClassVar[str] = "inputs"

    randaugment_layers: int = option(
        0, "operations of RandAugment on each training image; 0: none", minimum=0
    )
    randaugment_magnitude: float = option(
        9.0, "strength of RandAugment, 0 to 10", minimum=0, maximum=LARGEST_MAGNITUDE
    )
    random_erasing: float = option(
        0.0, "probability that a box of a training image is erased", minimum=0, maximum=1
    )
    mixup: float = option(
        0.0, "alpha of mixup, which blends two training images; 0: none", minimum=0, maximum=1000
    )
    cutmix: float = option(
        0.0,
        "alpha of cutmix, a box of one training image in another; 0: none",
        minimum=0,
        maximum=1000,
    )

    crop_padding: int | None = option(
        None,
        "pixels on each side of images that cifarnet and padded_crop cut; default: 4",
        minimum=0,
    )

    @property
    def mixes(self) -> bool:
        """Whether two examples become one, so that labels become distributions."""
        return bool(self.mixup or self.cutmix)

    def before_normalization(self, seeds: Any) -> Callable[[Any], Any] | None:
        """A function that a family applies to images before it normalizes them; None for no change.

        Args:
          seeds: int64 [n, 2], or [2] for a single image.

        Returns:
          A function from images [n, h, w, c] or [h, w, c], uint8 or float32 from 0 to 255, to
          such of the same shape, uint8.
        """
        if not self.randaugment_layers:
            return None
        return tf.autograph.experimental.do_not_convert(
            functools.partial(
                randaugment,
                seeds=seeds,
                layers=self.randaugment_layers,
                magnitude=self.randaugment_magnitude,
            )
        )

    def after_normalization(self, images: Any, seeds: Any) -> Any:
        """Images with a box erased, or as they are.

        Args:
          images: float32 [n, h, w, c] or [h, w, c], with 0 for their mean.
          seeds: int64 [n, 2] or [2].

        Returns:
          float32 of the same shape.
        """
        if not self.random_erasing:
            return images
        if images.shape.rank == 3:
            return erase(images[tf.newaxis], seeds[tf.newaxis], self.random_erasing)[0]
        return erase(images, seeds, self.random_erasing)

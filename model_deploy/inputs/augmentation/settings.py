"""`Augmentation`: which augmentation to use, and its strength."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

from model_deploy.commands import Options, option
from model_deploy.inputs.augmentation.magnitude import LARGEST_MAGNITUDE


@dataclasses.dataclass(frozen=True)
class Augmentation(Options):
    """Options for augmentation on top of the preprocessing family's own; all off by default.

    RandAugment applies to the image after the family has cropped and mirrored it, before it is
    normalized; erasing follows normalization; mixup and cutmix come last, on pairs of examples.

    Attributes:
      randaugment_layers: number of RandAugment's operations per image; 0 is none.
      randaugment_magnitude: their strength, from 0 to 10; see `augmentation.operations`.
      random_erasing: probability that a box in the image is set to 0, the mean.
      mixup: both parameters of the Beta distribution of mixup's weights; 0 is no mixup.
      cutmix: both parameters of the Beta distribution of cutmix's areas; 0 is no cutmix.  With
        mixup as well, each example has one of the two, with equal probability.
      crop_padding: pixels of padding (`cifarnet`: zeros, `padded_crop`: mirrored) around the
        images that are cropped; None is the family's default.  Less padding shifts images less,
        which is better for short runs.

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
        """Whether pairs of examples are mixed, so that labels become class probabilities."""
        return bool(self.mixup or self.cutmix)

    def before_normalization(self, seeds: Any) -> Callable[[Any], Any] | None:
        """Returns a function for a family to apply before normalization, or None.

        Args:
          seeds: int64 [n, 2], or [2] for a single image.

        Returns:
          A function from images [n, h, w, c] or [h, w, c], uint8 or float32 from 0 to 255, to
          images of the same shape, uint8.
        """
        if not self.randaugment_layers:
            return None
        import tensorflow as tf  # noqa: PLC0415 - options need no TensorFlow

        from model_deploy.inputs.augmentation.randaugment import randaugment  # noqa: PLC0415

        return tf.autograph.experimental.do_not_convert(
            functools.partial(
                randaugment,
                seeds=seeds,
                layers=self.randaugment_layers,
                magnitude=self.randaugment_magnitude,
            )
        )

    def after_normalization(self, images: Any, seeds: Any) -> Any:
        """Erases a random box of each image, if asked for.

        Args:
          images: float32 [n, h, w, c] or [h, w, c], with mean 0.
          seeds: int64 [n, 2] or [2].

        Returns:
          float32 of the same shape.
        """
        if not self.random_erasing:
            return images
        from model_deploy.inputs.augmentation.erasing import erase  # noqa: PLC0415

        if images.shape.rank == 3:
            return erase(images[None], seeds[None], self.random_erasing)[0]
        return erase(images, seeds, self.random_erasing)

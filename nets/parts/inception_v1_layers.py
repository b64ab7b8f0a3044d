"""The layers of Inception v1, for images and for video.

C. Szegedy et al., "Going Deeper with Convolutions", https://arxiv.org/abs/1409.4842, table 1; over
time as J. Carreira, A. Zisserman, "Quo Vadis, Action Recognition?",
https://arxiv.org/abs/1705.07750, figure 3, has them.
"""

from typing import NamedTuple


class Conv(NamedTuple):
    """A convolution: its width, the side of its square kernel, and its stride."""

    width: int
    side: int
    stride: int = 1


class Pool(NamedTuple):
    """A max pooling: kernel and stride over [frames, height, width]; images have no frames."""

    kernel: list[int]
    stride: list[int]


class Mixed(NamedTuple):
    """The widths of an Inception block: the four branches, those two with a 1x1 in front."""

    branch_0: int
    branch_1: tuple[int, int]
    branch_2: tuple[int, int]
    branch_3: int


# By end point.
LAYERS: dict[str, Conv | Pool | Mixed] = {
    "Conv2d_1a_7x7": Conv(64, 7, stride=2),
    "MaxPool_2a_3x3": Pool([1, 3, 3], [1, 2, 2]),
    "Conv2d_2b_1x1": Conv(64, 1),
    "Conv2d_2c_3x3": Conv(192, 3),
    "MaxPool_3a_3x3": Pool([1, 3, 3], [1, 2, 2]),
    "Mixed_3b": Mixed(64, (96, 128), (16, 32), 32),
    "Mixed_3c": Mixed(128, (128, 192), (32, 96), 64),
    "MaxPool_4a_3x3": Pool([3, 3, 3], [2, 2, 2]),
    "Mixed_4b": Mixed(192, (96, 208), (16, 48), 64),
    "Mixed_4c": Mixed(160, (112, 224), (24, 64), 64),
    "Mixed_4d": Mixed(128, (128, 256), (24, 64), 64),
    "Mixed_4e": Mixed(112, (144, 288), (32, 64), 64),
    "Mixed_4f": Mixed(256, (160, 320), (32, 128), 128),
    "MaxPool_5a_2x2": Pool([2, 2, 2], [2, 2, 2]),
    "Mixed_5b": Mixed(256, (160, 320), (32, 128), 128),
    "Mixed_5c": Mixed(384, (192, 384), (48, 128), 128),
}
END_POINTS = tuple(LAYERS)

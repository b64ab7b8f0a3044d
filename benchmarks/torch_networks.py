"""The networks of the benchmarks in PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.sizes import (
    BATCH_SIZE,
    IMAGE_SIZE,
    LEARNING_RATE,
    PADDING,
    ROWS,
    SENTENCES,
    TINY_BATCH_SIZE,
    TINY_CLASSES,
    TINY_INPUTS,
    WEIGHT_DECAY,
    WIDTH,
    WORDS,
)


def step_function(network: str, num_clones: int, data_dir: str | None) -> Callable[[], None]:
    """A function that makes one step of this process."""
    if network == "tiny":
        images = torch.ones(TINY_BATCH_SIZE, TINY_INPUTS)
        batch = images, torch.zeros(TINY_BATCH_SIZE, dtype=torch.int64)
        return _step_function(nn.Linear(TINY_INPUTS, TINY_CLASSES), lambda: batch, [])
    if network == "embedding":
        shape = (SENTENCES // num_clones, WORDS)
        return _step_function(
            nn.Embedding(ROWS, WIDTH, sparse=True),
            lambda: (torch.randint(ROWS, shape), torch.ones(*shape, WIDTH)),
            [],
            nn.MSELoss(),
        )
    data = Images(data_dir, BATCH_SIZE // num_clones)
    model = cifarnet(data.channels)
    decayed = [layer.weight for layer in model if isinstance(layer, nn.Linear)][:2]
    return _step_function(model, data.next_batch, decayed)


def _step_function(
    model: Any,
    next_batch: Callable[[], tuple[Any, Any]],
    decayed: list[Any],
    loss_function: Any = None,
) -> Callable[[], None]:
    parallel = nn.parallel.DistributedDataParallel(model)
    chosen = {id(weight) for weight in decayed}
    others = [each for each in model.parameters() if id(each) not in chosen]
    groups = [{"params": others}]
    if decayed:
        groups.append({"params": decayed, "weight_decay": WEIGHT_DECAY})
    optimizer = torch.optim.SGD(groups, lr=LEARNING_RATE)
    loss_function = loss_function or nn.CrossEntropyLoss()

    def step() -> None:
        images, labels = next_batch()
        optimizer.zero_grad()
        loss_function(parallel(images), labels).backward()
        optimizer.step()

    return step


def cifarnet(channels: int) -> Any:
    """The network of `nets.cifarnet`."""

    def normalization() -> Any:
        # PyTorch divides alpha by the size, TensorFlow does not.
        return nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)

    return nn.Sequential(
        nn.Conv2d(channels, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        normalization(),
        nn.Conv2d(64, 64, 5, padding=2),
        nn.ReLU(),
        normalization(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (IMAGE_SIZE // 4) ** 2, 384),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(384, 192),
        nn.ReLU(),
        nn.Linear(192, 10),
    )


class Images:
    """Batches of images in memory, augmented as a whole."""

    def __init__(self, data_dir: str | None, batch_size: int) -> None:
        from benchmarks.images import read_arrays  # noqa: PLC0415 - imports TensorFlow

        images, labels = read_arrays(data_dir)
        padding = [(0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)]
        padded = np.pad(images, padding).transpose(0, 3, 1, 2)
        self._images = torch.from_numpy(np.ascontiguousarray(padded))
        self._labels = torch.from_numpy(labels)
        self._batch_size = batch_size
        self.channels = images.shape[-1]

    def next_batch(self) -> tuple[Any, Any]:
        """Images float32 [batch, channels, 32, 32] and labels int64 [batch]."""
        count = self._batch_size
        chosen = torch.randint(len(self._labels), [count])
        images = self._crop_and_mirror(chosen).float()
        brightness = (torch.rand(count, 1, 1, 1) * 2 - 1) * 63
        contrast = 0.2 + torch.rand(count, 1, 1, 1) * 1.6
        images = images + brightness
        means = images.mean((2, 3), keepdim=True)
        images = (images - means) * contrast + means
        deviation, mean = torch.std_mean(images, (1, 2, 3), keepdim=True)
        return (images - mean) / deviation.clamp(min=images[0].numel() ** -0.5), self._labels[
            chosen
        ]

    def _crop_and_mirror(self, chosen: Any) -> Any:
        """uint8; slices of single images, which is several times faster than one gather."""
        count, room = len(chosen), self._images.shape[-1] - IMAGE_SIZE + 1
        corners = torch.randint(room, [count, 2]).tolist()
        images = torch.stack(
            [
                self._images[index, :, row : row + IMAGE_SIZE, column : column + IMAGE_SIZE]
                for index, (row, column) in zip(chosen.tolist(), corners, strict=True)
            ]
        )
        return torch.where(torch.rand(count, 1, 1, 1) < 0.5, images, images.flip(3))

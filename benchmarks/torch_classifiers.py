"""Classifiers in PyTorch, layer by layer those of `nets`, in a process of their own.

Where TensorFlow pads images below and on the right only, these pad them on all sides; the sizes
are the same.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from benchmarks import torch_networks
from benchmarks.child import Requests
from benchmarks.classifiers import LEARNING_RATE, Work, measure, num_threads


def serve(requests: Requests, **arguments: Any) -> None:
    """Trains what a `Work` of these arguments says; answers "images/s" and "parameters"."""
    work = Work(**arguments)
    torch.set_num_threads(num_threads())
    # As TensorFlow does; numbers close to 0 would be slow.
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = build(work).to(memory_format=torch.channels_last)
    step = step_function(model, work)
    step()
    parameters = count_parameters(model)
    requests.serve(lambda: {"parameters": parameters, **measure(step, work)})


def step_function(model: Any, work: Work) -> Callable[[], float]:
    """A function that makes a step on a constant batch and returns its loss."""
    images = torch.rand(work.batch_size, 3, work.image_size, work.image_size)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(work.num_classes, [work.batch_size])
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, fused=True)
    in_16_bits = work.precision == "bfloat16"

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_16_bits):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def build(work: Work) -> Any:
    """The network of `work`, in training."""
    return NETWORKS[work.network](work.num_classes)


def count_parameters(model: Any) -> int:
    """Of all that is trained."""
    return sum(each.numel() for each in model.parameters())


class Residual(nn.Module):
    """A unit of ResNet v1; the stride is that of its 3x3 convolution."""

    def __init__(self, inputs: int, depth: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * depth
        self.residual = nn.Sequential(
            _conv(inputs, depth, 1),
            _conv(depth, depth, 3, stride=stride),
            _conv(depth, outputs, 1, activation=None),
        )
        # An input of the same depth is not projected; it is strided in networks of TF-Slim only.
        projected = inputs != outputs
        self.shortcut = _conv(inputs, outputs, 1, stride=stride) if projected else nn.Identity()
        self.stride = 1 if projected else stride

    def forward(self, net: Any) -> Any:
        shortcut = self.shortcut(net[:, :, :: self.stride, :: self.stride])
        return nn.functional.relu(self.residual(net) + shortcut, inplace=True)


class Concat(nn.Module):
    """Branches on one input, their channels one after the other."""

    def __init__(self, *branches: Any) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, net: Any) -> Any:
        return torch.cat([branch(net) for branch in self.branches], 1)


def resnet_v1_50(num_classes: int) -> Any:
    """ResNet-50 with the stride in the last unit of a block, as in `nets.resnet_v1`."""
    layers = [_conv(3, 64, 7, stride=2), nn.MaxPool2d(3, 2, padding=1)]
    channels = 64
    for depth, num_units, stride in ((64, 3, 2), (128, 4, 2), (256, 6, 2), (512, 3, 1)):
        for unit in range(1, num_units + 1):
            layers.append(Residual(channels, depth, stride if unit == num_units else 1))
            channels = 4 * depth
    return nn.Sequential(*layers, *_head(channels, num_classes, dropout=0.0))


def mobilenet_v1(num_classes: int) -> Any:
    """MobileNet v1, as in `nets.mobilenet_v1`."""
    normal: dict[str, Any] = {"epsilon": 0.001, "activation": nn.ReLU6}
    layers = [_conv(3, 32, 3, stride=2, **normal)]
    depths = [32, 64, 128, 128, 256, 256, *6 * [512], 1024, 1024]
    strides = [1, 2, 1, 2, 1, 2, *5 * [1], 2, 1]
    for (inputs, outputs), stride in zip(itertools.pairwise(depths), strides, strict=True):
        layers.append(_conv(inputs, inputs, 3, stride=stride, groups=inputs, **normal))
        layers.append(_conv(inputs, outputs, 1, **normal))
    return nn.Sequential(*layers, *_head(1024, num_classes, dropout=0.001))


def inception_v3(num_classes: int) -> Any:
    """Inception v3 without its auxiliary head, as in `nets.inception_v3`."""
    return nn.Sequential(
        _scaleless(3, 32, 3, stride=2, padding=0),
        _scaleless(32, 32, 3, padding=0),
        _scaleless(32, 64, 3),
        nn.MaxPool2d(3, 2),
        _scaleless(64, 80, 1),
        _scaleless(80, 192, 3, padding=0),
        nn.MaxPool2d(3, 2),
        *(_mixed_5(inputs, pooled) for inputs, pooled in ((192, 32), (256, 64), (288, 64))),
        _mixed_6a(),
        *(_mixed_6(inner) for inner in (128, 160, 160, 192)),
        _mixed_7a(),
        *(_mixed_7(inputs) for inputs in (1280, 2048)),
        *_head(2048, num_classes, dropout=0.2),
    )


def _mixed_5(inputs: int, pooled: int) -> Any:
    return Concat(
        _scaleless(inputs, 64, 1),
        _chain(inputs, (48, 1), (64, 5)),
        _chain(inputs, (64, 1), (96, 3), (96, 3)),
        nn.Sequential(_average(), _scaleless(inputs, pooled, 1)),
    )


def _mixed_6a() -> Any:
    halving = {"stride": 2, "padding": 0}
    return Concat(
        _scaleless(288, 384, 3, **halving),
        nn.Sequential(*_chain(288, (64, 1), (96, 3)), _scaleless(96, 96, 3, **halving)),
        nn.MaxPool2d(3, 2),
    )


def _mixed_6(inner: int) -> Any:
    wide, high = (1, 7), (7, 1)
    return Concat(
        _scaleless(768, 192, 1),
        _chain(768, (inner, 1), (inner, wide), (192, high)),
        _chain(768, (inner, 1), (inner, high), (inner, wide), (inner, high), (192, wide)),
        nn.Sequential(_average(), _scaleless(768, 192, 1)),
    )


def _mixed_7a() -> Any:
    halving = {"stride": 2, "padding": 0}
    return Concat(
        nn.Sequential(_scaleless(768, 192, 1), _scaleless(192, 320, 3, **halving)),
        nn.Sequential(
            *_chain(768, (192, 1), (192, (1, 7)), (192, (7, 1))),
            _scaleless(192, 192, 3, **halving),
        ),
        nn.MaxPool2d(3, 2),
    )


def _mixed_7(inputs: int) -> Any:
    def split() -> Any:
        return Concat(_scaleless(384, 384, (1, 3)), _scaleless(384, 384, (3, 1)))

    return Concat(
        _scaleless(inputs, 320, 1),
        nn.Sequential(_scaleless(inputs, 384, 1), split()),
        nn.Sequential(*_chain(inputs, (448, 1), (384, 3)), split()),
        nn.Sequential(_average(), _scaleless(inputs, 192, 1)),
    )


def _conv(
    inputs: int,
    outputs: int,
    kernel: int | tuple[int, int],
    *,
    stride: int = 1,
    padding: int | None = None,
    groups: int = 1,
    epsilon: float = 1e-5,
    scale: bool = True,
    activation: Any = nn.ReLU,
) -> Any:
    """A convolution and its batch normalization; the padding keeps the size by default."""
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    margins = (sides[0] // 2, sides[1] // 2) if padding is None else padding
    normalization = nn.BatchNorm2d(outputs, eps=epsilon)
    if not scale:
        normalization.register_parameter("weight", None)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, sides, stride, margins, groups=groups, bias=False),
        normalization,
        *([activation(inplace=True)] if activation else []),
    )


def _scaleless(inputs: int, outputs: int, kernel: int | tuple[int, int], **keywords: Any) -> Any:
    """As Inception has them: the normalization adds an offset and does not multiply."""
    return _conv(inputs, outputs, kernel, epsilon=0.001, scale=False, **keywords)


def _chain(inputs: int, *convolutions: tuple[int, int | tuple[int, int]]) -> Any:
    """Convolutions of (outputs, kernel), one after the other."""
    depths = [inputs, *(outputs for outputs, _ in convolutions)]
    kernels = [kernel for _, kernel in convolutions]
    pairs = zip(itertools.pairwise(depths), kernels, strict=True)
    return nn.Sequential(*(_scaleless(before, after, kernel) for (before, after), kernel in pairs))


def _average() -> Any:
    return nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)


def _head(channels: int, num_classes: int, dropout: float) -> Iterable[Any]:
    return (
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(channels, num_classes),
    )


NETWORKS: dict[str, Callable[[int], Any]] = {
    "resnet_v1_50": resnet_v1_50,
    "inception_v3": inception_v3,
    "mobilenet_v1": mobilenet_v1,
    "cifarnet": lambda num_classes: torch_networks.cifarnet(3),
}

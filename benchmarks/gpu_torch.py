"""PyTorch on a GPU, in a process of its own: the networks of `torch_classifiers`, and VGG-16."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.child import Requests
from benchmarks.gpu_work import LEARNING_RATE, NUM_CLASSES, GpuWork, measure
from benchmarks.torch_classifiers import NETWORKS

_WIDTHS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def serve(requests: Requests, **arguments: Any) -> None:
    """Trains what a `GpuWork` of these arguments says; answers its rate and memory."""
    work = GpuWork(**arguments)
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = work.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = work.precision == "tf32"
    step = step_function(work)
    requests.serve(lambda: measure(step, work))


def step_function(work: GpuWork) -> Callable[[], float]:
    """A function that makes a step on a constant batch and returns its loss."""
    device = "cpu" if work.on_cpu else "cuda"
    build = {**NETWORKS, "vgg_16": lambda classes: vgg_16(classes, work.image_size)}[work.network]
    model = build(NUM_CLASSES).to(device, memory_format=torch.channels_last)
    images = torch.rand(work.batch_size, 3, work.image_size, work.image_size, device=device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(NUM_CLASSES, [work.batch_size], device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, fused=True)
    forward = torch.compile(model) if work.compiled else model
    dtype = torch.bfloat16 if work.in_float32 else getattr(torch, work.precision)
    scaler = torch.amp.GradScaler(device, enabled=work.precision == "float16")

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype, enabled=not work.in_float32):
            loss = nn.functional.cross_entropy(forward(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    return step


def vgg_16(num_classes: int, image_size: int) -> Any:
    """VGG-16, as in `nets.vgg`: its fully connected layers are convolutions."""
    return nn.Sequential(*_vgg_layers(num_classes, image_size // 32))


def _vgg_layers(num_classes: int, side: int) -> Iterator[Any]:
    inputs = 3
    for width, count in _WIDTHS:
        for _ in range(count):
            yield nn.Conv2d(inputs, width, 3, padding=1)
            yield nn.ReLU(inplace=True)
            inputs = width
        yield nn.MaxPool2d(2)
    for outputs, kernel in ((4096, side), (4096, 1)):
        yield nn.Conv2d(inputs, outputs, kernel)
        yield nn.ReLU(inplace=True)
        yield nn.Dropout(0.5)
        inputs = outputs
    yield nn.Conv2d(inputs, num_classes, 1)
    yield nn.Flatten()

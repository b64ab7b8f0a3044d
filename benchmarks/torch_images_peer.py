"""PyTorch's `DataLoader` on JPEGs, with Pillow: what inception's preprocessing does to them."""

import itertools
import math
import pathlib
import random
import time
from typing import Any

from benchmarks.child import Requests, use_cores

MODULE = "benchmarks.torch_images_peer"
BATCH_SIZE, SIDE = 32, 224


def serve(requests: Requests, cores: int, secs: float, folder: str) -> None:
    """A process that measures images per second, with a worker for each core."""
    import torch  # noqa: PLC0415 - not installed everywhere

    use_cores(cores)
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        _images(torch, sorted(map(str, pathlib.Path(folder).rglob("*.jpg")))),
        batch_size=BATCH_SIZE,
        shuffle=True,
        num_workers=cores,
        drop_last=True,
        persistent_workers=True,
    )
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    next(batches)

    def measure() -> dict[str, float]:
        for _ in range(10):
            next(batches)
        images, start = 0, time.perf_counter()
        while time.perf_counter() - start < secs:
            next(batches)
            images += BATCH_SIZE
        return {"images/s": images / (time.perf_counter() - start)}

    requests.serve(measure)


def _images(torch: Any, paths: list[str]) -> Any:
    """The dataset: float32 [3, 224, 224] and a label for each file."""
    import numpy as np  # noqa: PLC0415
    from PIL import Image, ImageEnhance  # noqa: PLC0415

    def part(image: Any) -> tuple[int, int, int, int]:
        """A random box: 5 to 100% of the image, from 3:4 to 4:3; left, top, right, bottom."""
        width, height = image.size
        for _ in range(100):
            area = random.uniform(0.05, 1) * width * height
            ratio = random.uniform(3 / 4, 4 / 3)
            across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < across <= width and 0 < down <= height:
                left, top = random.randint(0, width - across), random.randint(0, height - down)
                return left, top, left + across, top + down
        return 0, 0, width, height

    def other_hue(image: Any) -> Any:
        values = np.array(image.convert("HSV"))
        values[..., 0] += np.uint8(round(random.uniform(-0.2, 0.2) * 255) % 256)
        return Image.fromarray(values, "HSV").convert("RGB")

    def changed(image: Any) -> Any:
        steps = [
            lambda image: ImageEnhance.Brightness(image).enhance(random.uniform(7 / 8, 9 / 8)),
            lambda image: ImageEnhance.Color(image).enhance(random.uniform(0.5, 1.5)),
            lambda image: ImageEnhance.Contrast(image).enhance(random.uniform(0.5, 1.5)),
            other_hue,
        ]
        for step in random.sample(steps, len(steps)):
            image = step(image)
        return image

    class Images(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        """JPEGs by number."""

        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            with Image.open(paths[index]) as file:
                image = file.convert("RGB")
            image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, part(image))
            if random.random() < 0.5:
                image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            values = torch.from_numpy(np.array(changed(image))).permute(2, 0, 1)
            return values.float() / 127.5 - 1, 0

    return Images()

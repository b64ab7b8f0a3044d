"""DLRM in PyTorch: `EmbeddingBag(sparse=True)` with `SparseAdam`, the other layers with Adam."""

import os
import time
from typing import Any

import numpy as np

from benchmarks import dlrm_work
from benchmarks.child import Requests
from examples import dlrm


def serve(requests: Requests, batch_size: int, steps: int, num_threads: int | None = None) -> None:
    """Trains `steps` steps per request; answers "examples/s"."""
    import torch  # noqa: PLC0415 - optional; who starts the process has none of it

    torch.set_num_threads(num_threads or len(os.sched_getaffinity(0)))
    torch.manual_seed(1)
    step = _step_function(torch, batch_size)

    def measure() -> dict[str, float]:
        began = time.perf_counter()
        for _ in range(steps):
            step()
        return {"examples/s": steps * batch_size / (time.perf_counter() - began)}

    step()
    requests.serve(measure)


def _step_function(torch: Any, batch_size: int) -> Any:
    """A function that makes a step, as Facebook's program does."""
    nn, made = torch.nn, dlrm_work.clicks(batch_size)
    tables = nn.ModuleList(
        nn.EmbeddingBag(count, dlrm_work.WIDTH, mode="sum", sparse=True)
        for count in dlrm.CARDINALITIES
    )
    bottom = nn.Sequential(
        *_layers(nn, dlrm.NUM_NUMBERS, (*dlrm_work.BOTTOM, dlrm_work.WIDTH)), nn.ReLU()
    )
    top = nn.Sequential(*_layers(nn, dlrm_work.num_pairs() + dlrm_work.WIDTH, (*dlrm_work.TOP, 1)))
    rows, columns = torch.tril_indices(len(tables) + 1, len(tables) + 1, -1)
    offsets, loss = torch.arange(batch_size), nn.BCEWithLogitsLoss()
    optimizers = (
        torch.optim.SparseAdam([*tables.parameters()], lr=dlrm_work.LEARNING_RATE),
        torch.optim.Adam([*bottom.parameters(), *top.parameters()], lr=dlrm_work.LEARNING_RATE),
    )
    numbers, labels = torch.tensor(np.log1p(made.numbers)), torch.tensor(made.labels)
    # Each column in one piece.
    ids = torch.tensor(np.ascontiguousarray(made.ids.transpose(0, 2, 1)))
    count = 0

    def step() -> None:
        nonlocal count
        batch, count = count % dlrm_work.NUM_BATCHES, count + 1
        for optimizer in optimizers:
            optimizer.zero_grad()
        dense = bottom(numbers[batch])
        found = [table(column, offsets) for table, column in zip(tables, ids[batch], strict=True)]
        vectors = torch.stack([dense, *found], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        logits = top(torch.cat([dense, products[:, rows, columns]], 1))[:, 0]
        loss(logits, labels[batch]).backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def _layers(nn: Any, inputs: int, units: tuple[int, ...]) -> list[Any]:
    """Fully connected layers with ReLU in between."""
    made: list[Any] = []
    for shape in dlrm_work.mlp_shapes(inputs, units):
        made += [nn.Linear(*shape), nn.ReLU()]
    return made[:-1]

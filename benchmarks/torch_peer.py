"""PyTorch `DistributedDataParallel` over gloo: one process per clone."""

import contextlib
import importlib.util
import os
import pathlib
import tempfile
import time
from typing import Any

from benchmarks.child import Child, Requests, start_child
from benchmarks.frame import Absent, Measure

MODULE = "benchmarks.torch_peer"
ABSENT = Absent("PyTorch is not installed")


def is_installed() -> bool:
    """Whether PyTorch can be imported; only its processes import it."""
    return importlib.util.find_spec("torch") is not None


def start(stack: contextlib.ExitStack, num_clones: int, **arguments: Any) -> Measure | Absent:
    """The measure of `num_clones` processes, closed by the stack; or why there is none."""
    if not is_installed():
        return ABSENT
    children = start_processes(stack, num_clones, **arguments)
    for child in children:
        child.wait_until_ready()

    def measure() -> dict[str, float]:
        for child in children:
            child.send()
        measured = [child.receive() for child in children]
        return measured[0]  # they wait for each other in every step

    return measure


def start_processes(stack: contextlib.ExitStack, num_clones: int, **arguments: Any) -> list[Child]:
    """The processes of one group; they find each other by a file."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    meeting = pathlib.Path(folder, "meeting").as_uri()
    return [
        stack.enter_context(
            Child(MODULE, "serve", rank=rank, num_clones=num_clones, meeting=meeting, **arguments)
        )
        for rank in range(num_clones)
    ]


def serve(
    requests: Requests,
    *,
    rank: int,
    num_clones: int,
    meeting: str,
    network: str,
    steps: int,
    data_dir: str | None = None,
) -> None:
    """Trains `steps` steps per request; answers "steps/s"."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch  # noqa: PLC0415 - optional; who starts the processes has none of it

    from benchmarks import torch_networks  # noqa: PLC0415 - as above

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // num_clones))
    torch.manual_seed(rank)
    torch.distributed.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=num_clones
    )
    step = torch_networks.step_function(network, num_clones, data_dir)

    def measure() -> dict[str, float]:
        step()  # the processes start together
        began = time.perf_counter()
        for _ in range(steps):
            step()
        return {"steps/s": steps / (time.perf_counter() - began)}

    step()
    requests.serve(measure)


def start_input(stack: contextlib.ExitStack, **arguments: Any) -> Measure | Absent:
    """The measure of batches without training, by a process that the stack closes."""
    if not is_installed():
        return ABSENT
    return start_child(stack, MODULE, "serve_input", **arguments)


def serve_input(requests: Requests, batch_size: int, secs: float, data_dir: str | None) -> None:
    """Makes augmented batches for `secs` seconds per request; answers "images/s"."""
    from benchmarks import torch_networks  # noqa: PLC0415 - as above

    images = torch_networks.Images(data_dir, batch_size)

    def measure() -> dict[str, float]:
        batches, began = 0, time.perf_counter()
        while time.perf_counter() - began < secs:
            images.next_batch()
            batches += 1
        return {"images/s": batches * batch_size / (time.perf_counter() - began)}

    requests.serve(measure)

"""Error messages for a device that is out of memory, or a GPU that cannot be used."""

import contextlib
import csv
import subprocess
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

# NVIDIA's tool, which comes with the driver.
_TOOL = "nvidia-smi"
_TIMEOUT_SECS = 10
# Words in the messages of failed allocations; gRPC's error for a too long message has none of them.
_ALLOCATION = ("OOM when allocating", "out of memory", "Out of memory", "failed to allocate")
_CUDA = ("CUDA", "cuda", "GPU")


class Holder(NamedTuple):
    """A process that holds memory of a GPU.

    Attributes:
      gpu: number and name of the GPU, such as `0 (NVIDIA H100)`.
      pid: number of the process, as the driver reports it.
      name: command of the process.
      megabytes: the memory that it holds, as the driver reports it: a number or words.
    """

    gpu: str
    pid: str
    name: str
    megabytes: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name}) holds {self.megabytes} MiB of GPU {self.gpu}"


def gpu_holders() -> list[Holder]:
    """Returns the processes that hold GPU memory, this one included, by `nvidia-smi`.

    Empty if `nvidia-smi` is missing or cannot see processes, as in some containers.
    """
    gpus = {uuid: f"{index} ({name})" for index, uuid, name in _query("gpu", "index,uuid,name", 3)}
    columns = "gpu_uuid,pid,process_name,used_gpu_memory"
    return [
        Holder(gpus.get(uuid, uuid), pid, name, used)
        for uuid, pid, name, used in _query("compute-apps", columns, 4)
    ]


def _query(what: str, columns: str, count: int) -> Iterator[list[str]]:
    """Yields the rows of a query of `nvidia-smi`, each with `count` columns; none if it fails."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(
            [_TOOL, f"--query-{what}={columns}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_SECS,
        )
        rows = csv.reader(found.stdout.splitlines(), skipinitialspace=True)
        yield from (row for row in rows if len(row) == count)


@contextlib.contextmanager
def device_errors_explained(batch_size: int | None = None, own_pid: int = 0) -> Iterator[None]:
    """Turns TensorFlow's errors about devices in a `with` block into errors that say what to do.

    Args:
      batch_size: examples per batch of a clone, if known.
      own_pid: number of this process, which is left out of the list of processes that hold GPUs.

    Raises:
      MemoryError: if a device has no memory left for a tensor.
      OSError: if a GPU cannot be used at all.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        line = _line_with(_ALLOCATION, error.message)
        if line is None:
            raise
        raise MemoryError(_describe_memory_error(line, batch_size, own_pid)) from error
    except tf.errors.InternalError as error:
        line = _line_with(_CUDA, error.message)
        if line is None:
            raise
        raise OSError(f"a GPU could not be used: {line}{_other_holders(own_pid)}") from error


def _describe_memory_error(line: str, batch_size: int | None, own_pid: int) -> str:
    batch = "a batch" if batch_size is None else f"a batch of {batch_size} for each clone"
    return (
        f"{batch} does not fit into memory: {line}; try a smaller batch_size, "
        "more accumulate_steps of smaller batches, which make the same update, or "
        f"precision=bfloat16{_other_holders(own_pid)}"
    )


def _other_holders(own_pid: int) -> str:
    """Returns the other processes that hold GPUs in words; '' if none are known."""
    others = [str(each) for each in gpu_holders() if each.pid != str(own_pid)]
    return f"; {', '.join(others)}" if others else ""


def _line_with(words: Sequence[str], message: str) -> str | None:
    """Returns the first line that contains one of `words`; the first line alone may say little."""
    lines = message.strip().splitlines()
    return next((line.strip() for line in lines if any(each in line for each in words)), None)

"""The GPUs of a machine that a process sees: divides `CUDA_VISIBLE_DEVICES` over processes.

Works without TensorFlow, which takes all visible GPUs when its first session opens.
"""

import subprocess
from collections.abc import Mapping, Sequence

NO_GPU = "-1"
_TIMEOUT_SECS = 10


def listed(environ: Mapping[str, str]) -> list[str] | None:
    """Returns the GPUs that `CUDA_VISIBLE_DEVICES` names; None if it is not set.

    As CUDA does, it reads numbers or names, up to the first invalid one.

    >>> listed({"CUDA_VISIBLE_DEVICES": "2,GPU-8f1a,-1,3"})
    ['2', 'GPU-8f1a']
    """
    text = environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    found: list[str] = []
    for name in map(str.strip, text.split(",")):
        if not name.isdecimal() and not name.startswith(("GPU-", "MIG-")):
            break
        found.append(name)
    return found


def on_this_machine() -> list[str] | None:
    """Returns the numbers of the machine's GPUs, by `nvidia-smi`; None without it."""
    try:
        found = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_SECS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.split()


def share(gpus: Sequence[str], index: int, count: int) -> str:
    """Returns the GPUs of one of `count` processes, as a value of `CUDA_VISIBLE_DEVICES`.

    All processes get the same number; with fewer GPUs than processes, several share one.

    >>> [share(["0", "1", "2", "3", "4"], i, 2) for i in range(2)]
    ['0,1', '2,3']
    >>> [share(["0", "1"], i, 3) for i in range(3)]
    ['0', '1', '0']
    """
    if not gpus:
        return NO_GPU
    each = len(gpus) // count
    if not each:
        return gpus[index % len(gpus)]
    return ",".join(gpus[index * each : (index + 1) * each])

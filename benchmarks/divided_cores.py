"""Workers of one machine that divide its cores, beside workers that each may use all of them.

    python -m benchmarks.divided_cores [--rounds=5]

The launcher's `--divide_cores`, with `train_image_classifier` on synthetic images.
"""

import contextlib
import functools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.frame import Absent, Benchmark, Measure, Settings, run_command

RATE = "images/s of each worker"
CONTENDERS: dict[str, list[str]] = {"all cores": [], "divided cores": ["--divide_cores"]}
NUM_WORKERS = 2
ALL_REDUCE, SERVERS = "all-reduce", "asynchronous, 1 parameter server"
# How a run is launched; network, images of a batch, and global steps, in a full benchmark.
CASES = (
    (ALL_REDUCE, "lenet", 1, 2000),
    (ALL_REDUCE, "cifarnet", 32, 200),
    (ALL_REDUCE, "resnet_v1_50", 8, 20),
    (SERVERS, "lenet", 1, 4000),
    (SERVERS, "cifarnet", 32, 400),
)
_FLAGS = {ALL_REDUCE: ([], ["--all_reduce"]), SERVERS: (["--num_ps=1"], [])}
_LOGS = 10


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One for each network and way to train."""
    for case in CASES[:1] if settings.quick else CASES:
        yield _benchmark(settings, *case)


def _benchmark(
    settings: Settings, way: str, network: str, batch_size: int, num_steps: int
) -> Benchmark:
    steps = settings.amount(num_steps, quick=2 * _LOGS)
    of_launcher, of_training = _FLAGS[way]
    training = [
        "--dataset_name=synthetic",
        f"--model_name={network}",
        f"--batch_size={batch_size}",
        f"--max_number_of_steps={steps}",
        f"--log_every_n_steps={steps // _LOGS}",
        "--clone_on_cpu",
        *of_training,
    ]

    def start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            name: functools.partial(_measure, [*of_launcher, *own], training)
            for name, own in CONTENDERS.items()
        }

    return Benchmark(
        title=f"Divided cores: {network}, {way}",
        does=(
            f"{NUM_WORKERS} workers, {batch_size} image(s) a step; the median of the rates that "
            "the chief shows in the last half of a run."
        ),
        quantities=(RATE,),
        reference="all cores",
        start=start,
    )


def _measure(of_launcher: Sequence[str], training: Sequence[str]) -> dict[str, float]:
    launch = [sys.executable, "-m", "model_deploy.launch", f"--num_workers={NUM_WORKERS}"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "train_image_classifier", f"--train_dir={folder}/run"]
        subprocess.run(
            [*launch, *of_launcher, f"--log_dir={folder}", "--", *command, *training],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
    rates = [found["images_per_sec"] for found in map(json.loads, lines) if "loss" in found]
    return {RATE: statistics.median(rates[len(rates) // 2 :])}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")

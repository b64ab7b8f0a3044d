"""What it is worth to prepare large photographs before they are trained on.

    python -m benchmarks.inputs_prepared [--rounds=5]

JPEGs of 1,000 x 750 are read as they are, and after conversions with `--max_side` and `--raw`.
"""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.inputs_files import PER_CPU, RATE, contenders, make_photographs, our_batches
from model_deploy import inputs

tf1 = tf.compat.v1
ORIGINALS, FAST = "originals", "originals, --fast_decode"
REDUCED, LESS, RAW = "--max_side=256", "--max_side=342", "--raw --image_size=256"
SETTINGS: dict[str, dict[str, Any]] = {
    ORIGINALS: {},
    REDUCED: {"max_side": 256},
    LESS: {"max_side": 342},
    RAW: {"raw": True, "image_size": 256},
}
LEAST = {FAST: 1.2, REDUCED: 1.6, RAW: 2}


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """The same photographs, prepared and as they are."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return _start(settings, stack)

    yield Benchmark(
        title="Prepared photographs",
        does="Batches of 32 JPEGs of 1,000 x 750 with the preprocessing of inception, at 224.",
        quantities=(RATE, PER_CPU),
        reference=ORIGINALS,
        start=start,
        goals=tuple(
            Goal(quantity, name, ORIGINALS, times)
            for quantity in (RATE, PER_CPU)
            for name, times in LEAST.items()
        ),
    )


def _start(settings: Settings, stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    make_photographs(folder / "folder", settings.amount(512, 64), height=750, width=1000)
    images = inputs.get_dataset("folder", "train", folder / "folder", test_percent=0)
    datasets = {}
    for number, (name, how) in enumerate(SETTINGS.items()):
        records = folder / str(number)
        inputs.convert_dataset(images, records, num_shards=2, progress=False, **how)
        datasets[name] = inputs.get_dataset("tfrecord", "train", records)
    options: dict[str, Any] = {"batch_size": 32, "image_size": 224, "preprocessing": "inception"}
    return contenders(
        stack,
        settings,
        32,
        {
            ORIGINALS: lambda: our_batches(datasets[ORIGINALS], **options),
            FAST: lambda: our_batches(datasets[ORIGINALS], fast_decode=True, **options),
            REDUCED: lambda: our_batches(datasets[REDUCED], **options),
            LESS: lambda: our_batches(datasets[LESS], **options),
            RAW: lambda: our_batches(datasets[RAW], **options),
        },
    )


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")

"""Images per second, and memory, of training on GPUs, against Keras and PyTorch.

    python -m benchmarks.gpu [--rounds=3]

resnet_v1_50, inception_v3 (without its auxiliary head), mobilenet_v1 and vgg_16 at 224 pixels in
batches of 64 and 256: in float32, TF32, bfloat16 and float16, with and without XLA, on constant
images and on photographs, in a bare loop and by `train`, on one GPU and on all.  Without a GPU
nothing is measured; with --quick logical CPUs show that all of it runs.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from benchmarks import torch_peer
from benchmarks.child import measure_in_new_process
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.gpu_work import MEMORY, RATE, GpuWork, gpu_name
from model_deploy.processes import visible_gpus

NETWORKS = ("resnet_v1_50", "inception_v3", "mobilenet_v1", "vgg_16")
BATCH_SIZES = (64, 256)
PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
# On CPUs the others are the first again, or too slow.
ON_CPU = ("float32", "bfloat16")
IMAGE_SIZE, STEPS, NUM_PHOTOGRAPHS = 224, 100, 2000
# inception_v3 takes no smaller images; VGG-16 halves them five times.
QUICK_IMAGE_SIZE, QUICK_STEPS, QUICK_PHOTOGRAPHS = 96, 2, 16
OURS, KERAS, TORCH = "deploy", "Keras fit", "PyTorch"
MODULES = {
    OURS: "benchmarks.gpu_deployed",
    KERAS: "benchmarks.gpu_keras",
    TORCH: "benchmarks.gpu_torch",
}
NO_GPU = Absent("no GPU is visible; --quick runs all of it on logical CPUs")
_MEASURED_IN = "bfloat16"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """A table for each network and batch size; in a quick run, of one network."""
    gpus = num_gpus()
    on_cpu = not gpus and settings.quick
    if not gpus and not on_cpu:
        yield Benchmark(
            title="Training on GPUs",
            does="Here no GPU was found: nothing was measured.",
            quantities=(RATE,),
            reference=OURS,
            start=lambda _: {OURS: NO_GPU},
        )
        return
    networks = ("mobilenet_v1",) if settings.quick else NETWORKS
    for network in networks:
        for batch_size in (2,) if settings.quick else BATCH_SIZES:
            work = GpuWork(
                network,
                "float32",
                settings.amount(IMAGE_SIZE, QUICK_IMAGE_SIZE),
                batch_size,
                settings.amount(STEPS, QUICK_STEPS),
                on_cpu=on_cpu,
            )
            yield _benchmark(settings, work, gpus)


def num_gpus() -> int:
    """How many GPUs are visible; found without a library that would take them."""
    listed = visible_gpus.listed(os.environ)
    there = visible_gpus.on_this_machine() or []
    return len(there) if listed is None else min(len(listed), len(there))


def _benchmark(settings: Settings, work: GpuWork, gpus: int) -> Benchmark:
    where = f"on {gpu_name()}" if gpus else "on logical CPUs"
    return Benchmark(
        title=f"{work.network} on GPUs, batch {work.batch_size}",
        does=(
            f"{work.batch_size} images of {work.image_size} x {work.image_size} per GPU and step, "
            f"{where}, each contender in a new process per round: `deploy` and a loop over its "
            "train op, or `train`; Keras's `fit`, compiled by XLA; PyTorch in `channels_last` with "
            "`autocast` and `torch.compile`. Memory is that of the first GPU as the driver counts "
            "it."
        ),
        quantities=(RATE, MEMORY),
        reference=f"{OURS}, float32",
        start=functools.partial(_start, settings, work, gpus),
        goals=tuple(_goals()),
    )


def _goals() -> Iterator[Goal]:
    for precision in ("bfloat16", "float16"):
        ours = f"{OURS}, {precision}, compiled"
        yield Goal(RATE, ours, f"{KERAS}, {precision}, compiled", 1.0)
        yield Goal(RATE, ours, f"{TORCH}, {precision}, compiled", 0.9)
    bare = f"{OURS}, {_MEASURED_IN}"
    yield Goal(RATE, f"{bare}, by train", bare, 1 / 1.02)
    yield Goal(RATE, f"{bare}, photographs", bare, 0.97)


def contenders(work: GpuWork, gpus: int, data_dir: str) -> dict[str, tuple[str, GpuWork]]:
    """Library and work of each contender, by its name.

    Args:
      work: in float32 on one GPU.
      gpus: how many GPUs there are.
      data_dir: folder with photographs.
    """
    found: dict[str, tuple[str, GpuWork]] = {}

    def add(library: str, *words: str, **changes: object) -> None:
        found[", ".join([library, *words])] = (library, dataclasses.replace(work, **changes))

    precisions = ON_CPU if work.on_cpu else PRECISIONS
    for precision in precisions:
        add(OURS, precision, precision=precision)
        add(OURS, precision, "compiled", precision=precision, compiled=True)
    add(OURS, _MEASURED_IN, "by train", precision=_MEASURED_IN, by_train=True)
    add(OURS, _MEASURED_IN, "photographs", precision=_MEASURED_IN, data_dir=data_dir)
    for number in _numbers_of_clones(gpus or 2 * work.on_cpu):
        for aggregate_on in ("cpu", "gpu", "all_reduce"):
            words = (_MEASURED_IN, f"{number} clones", f"sums: {aggregate_on}")
            add(
                OURS,
                *words,
                precision=_MEASURED_IN,
                num_clones=number,
                aggregate_on=aggregate_on,
            )
    for library in (KERAS, TORCH):
        for precision in precisions:
            add(library, precision, "compiled", precision=precision, compiled=True)
    add(TORCH, _MEASURED_IN, precision=_MEASURED_IN)
    return found


def _numbers_of_clones(gpus: int) -> list[int]:
    """2, 4, 8, ..., and all."""
    powers = [2**i for i in range(1, gpus.bit_length()) if 2**i < gpus]
    return [*powers, gpus] if gpus > 1 else []


def _start(
    settings: Settings, work: GpuWork, gpus: int, stack: contextlib.ExitStack
) -> Mapping[str, Measure | Absent]:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    runs = contenders(work, gpus, str(folder / "records"))
    _make_records(folder, settings.amount(NUM_PHOTOGRAPHS, QUICK_PHOTOGRAPHS))
    return {name: _measure(library, each) for name, (library, each) in runs.items()}


def _measure(library: str, work: GpuWork) -> Measure | Absent:
    if library == TORCH and not torch_peer.is_installed():
        return torch_peer.ABSENT
    if work.on_cpu and library != OURS and work.compiled:
        # That takes minutes on CPUs; `torch.compile` needs a C++ compiler there, too.
        work = dataclasses.replace(work, compiled=False)
    arguments = dataclasses.asdict(work)
    return lambda: measure_in_new_process(MODULES[library], "serve", **arguments)


def _make_records(folder: pathlib.Path, number: int) -> None:
    """Photographs as TFRecords in `folder`/records."""
    # TensorFlow is imported only where something is measured.
    from benchmarks.inputs_files import make_photographs  # noqa: PLC0415
    from model_deploy import inputs  # noqa: PLC0415

    make_photographs(folder / "folder", number)
    images = inputs.get_dataset("folder", "train", folder / "folder", test_percent=0)
    inputs.convert_dataset(images, folder / "records", num_shards=2, progress=False)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")

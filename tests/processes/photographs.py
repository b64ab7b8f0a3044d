"""A long training on large photographs, whose memory, descriptors and threads are watched.

    python -m tests.processes.photographs --steps=10000 [--folder=DIR]

`train_image_classifier` reads JPEGs of 12 and 24 megapixels, 40 in all, as the archive of flowers
has them, by `recipes/flowers_mobilenet_v2.yaml` with a small network and batches of 2.  Every few
seconds `/proc` and the folder of the run are read.  The program prints how much each grows in an
hour, and ends with 1 where that is more than its bound, or the run ends badly.
"""

import argparse
import sys
import time
from pathlib import Path

from benchmarks.inputs_files import make_photographs
from tests.processes.growth import Samples, of_folder, of_process, table
from tests.processes.harness import ROOT, Processes, folder_of

# Height and width of the photographs of each kind of flower.
SIZES = {
    "daisy": (3000, 4000),
    "dandelion": (4000, 3000),
    "roses": (3000, 4000),
    "sunflowers": (4000, 6000),
    "tulips": (3024, 4032),
}
NUM_EACH = 8
FLAGS = (
    "--config=recipes/flowers_mobilenet_v2.yaml",
    "--checkpoint_path=",
    "--checkpoint_exclude_scopes=",
    "--model_name=mobilenet_v1_025",
    "--train_image_size=96",
    "--global_batch_size=2",
    "--clone_on_cpu",
)
SAMPLE_SECS = 5.0


def write_photographs(folder):
    """Writes the photographs as the extracted archive has them."""
    for kind, (height, width) in SIZES.items():
        made = folder / "made" / kind
        make_photographs(made, NUM_EACH, height, width)
        (folder / "flower_photos").mkdir(exist_ok=True)
        (made / "photographs").rename(folder / "flower_photos" / kind)


def train(folder, steps):
    """Trains for so many steps; returns the series of the process and of its folder."""
    if not (folder / "flower_photos").is_dir():
        write_photographs(folder)
    program = [sys.executable, str(ROOT / "train_image_classifier.py"), *FLAGS]
    program += [f"--dataset_dir={folder}", f"--train_dir={folder / 'run'}"]
    program += [f"--max_number_of_steps={steps}", f"--eval_every_n_steps={max(1, steps // 20)}"]
    samples = Samples(folder / "samples.jsonl")
    with Processes(folder) as processes:
        process = processes.start("train", program, guarded=False, forked=False)
        process.wait_for_line(r"^step \d+/")
        start = time.monotonic()
        while process.is_running:
            found = {"train": of_process(process.pid), "folder": of_folder(folder / "run")}
            samples.add(time.monotonic() - start, found)
            time.sleep(SAMPLE_SECS)
        assert process.wait() == 0, process.log[-3000:]
    return samples.series()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000, help="of 2 photographs each")
    parser.add_argument("--folder", type=Path, default=None, help="for all files; kept")
    options = parser.parse_args()
    with folder_of(options.folder) as folder:
        series = train(folder, options.steps)
    print(table(series))
    sys.exit(int(not all(each.holds for each in series)))


if __name__ == "__main__":
    main()

"""Accuracy on CIFAR-10 of local steps and of gradients of low rank, beside all-reduce.

    python -m benchmarks.local_steps_accuracy --data_dir=<CIFAR-10> [--steps=2000] [--seeds=3]

Four workers on this machine train CifarNet by recipes/cifar10_cifarnet.yaml, on the same number of
examples: 128 a step over all workers.  By default 2,000 steps (5 epochs) in place of its 100,000.
What was measured is kept in `benchmarks/data`, with date and machine; a run that is there is not
made again.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from benchmarks.kept import read_rows, stamped, write_rows

_ROOT = pathlib.Path(__file__).parents[1]
DATA = _ROOT / "benchmarks" / "data" / "local_steps_accuracy.json"
NUM_WORKERS, BATCH_SIZE = 4, 128
REFERENCE = "all-reduce"
CONTENDERS = {
    REFERENCE: [],
    "20 local steps, plain mean": ["--local_steps=20"],
    "20 local steps, Nesterov": [
        "--local_steps=20",
        "--outer_learning_rate=0.7",
        "--outer_momentum=0.9",
    ],
    "rank 4": ["--gradient_rank=4"],
}


def accuracy_of(contender: str, seed: int, steps: int, data_dir: str) -> float:
    """Trains once; returns the accuracy on the test images at the last step.

    Raises:
      CalledProcessError: if the training fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        launch = ["-m", "model_deploy.launch", f"--num_workers={NUM_WORKERS}", "--"]
        train = [
            sys.executable,
            "train_image_classifier.py",
            "--config=recipes/cifar10_cifarnet.yaml",
            f"--dataset_dir={data_dir}",
            f"--train_dir={folder}/run",
            "--all_reduce",
            "--num_clones=1",
            "--clone_on_cpu",
            f"--global_batch_size={BATCH_SIZE // NUM_WORKERS}",
            f"--max_number_of_steps={steps}",
            f"--eval_every_n_steps={steps}",
            f"--seed={seed}",
            *CONTENDERS[contender],
        ]
        subprocess.run([sys.executable, *launch, *train], cwd=_ROOT, check=True)
        lines = pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines()
    found = [row["accuracy"] for row in map(json.loads, lines) if "accuracy" in row]
    return float(found[-1])


def main() -> None:
    """Makes the runs that are missing, and prints means and differences in points."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data_dir", required=True, help="folder with CIFAR-10")
    parser.add_argument("--steps", type=int, default=2000, help="a multiple of 20")
    parser.add_argument("--seeds", type=int, default=3, help="how many runs of each")
    flags = parser.parse_args()
    found: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for seed in range(1, flags.seeds + 1):
        for name in CONTENDERS:
            key = {"contender": name, "seed": seed, "steps": flags.steps}
            rows = read_rows(DATA)
            made = [row["accuracy"] for row in rows if key.items() <= row.items()]
            if not made:
                made = [accuracy_of(name, seed, flags.steps, flags.data_dir)]
                write_rows([*rows, stamped({**key, "accuracy": made[0]})], DATA)
            found[name].append(made[0])
            print(f"{name}, seed {seed}: {made[0]:.4f}", flush=True)
    for name, values in found.items():
        pairs = zip(values, found[REFERENCE], strict=True)
        points = 100 * statistics.mean(value - other for value, other in pairs)
        print(f"{name}: mean {statistics.mean(values):.4f}, {points:+.2f} points")


if __name__ == "__main__":
    main()

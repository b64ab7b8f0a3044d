"""Trains with flags drawn at random: whatever a flag does, others keep what they promise.

    python -m tests.processes.random_flags FOLDER SEED...

For each seed it draws a network, a dataset and some flags.  A run that is refused says why in one
line.  Another one ends with an accuracy and no warning, and equals, to the last bit of all
variables, a run that ends in the middle, goes on and saves each step.  The files of a run that does
not do so stay in the folder.
"""

import random
import re
import shutil
import sys
from pathlib import Path

import numpy as np

from tests.checkpoint_values import checkpoint_values
from tests.processes.harness import ROOT, Processes

STEPS = 6
_MODELS = ("lenet", "lenet", "cifarnet", "cifarnet", "mnist_mlp", "resnet_9_small")
_MOST_FLAGS = 8
_WARNINGS = re.compile(r"Traceback|WARNING:tensorflow|Warning:")
# Of each flag what it may be; True is for `--flag`, and False for `--noflag`.
_ALL_REDUCE, _EVALUATED = {"all_reduce": True}, {"eval_every_n_steps": "2"}
_LOCAL = {**_ALL_REDUCE, "local_steps": "2"}
VALUES = {
    "num_clones": ("1", "3", "4"),
    "copy_clones": (True, False),
    "all_reduce": (True,),
    "rotate_steps": (True,),
    "accumulate_steps": ("2", "3"),
    "precision": ("bfloat16", "float16"),
    "loss_scale": ("dynamic", "128"),
    "xla": (True,),
    "sync_batch_norm": (True,),
    "data_format": ("NHWC", "NCHW"),
    "local_steps": ("2", "4"),
    "outer_momentum": ("0.5",),
    "outer_parts": ("2",),
    "outer_overlap": ("1",),
    "copies_check_every_n_steps": ("1", "2"),
    "verify_every_n_steps": ("2", "3"),
    "on_corruption": ("end",),
    "num_readers": ("1", "4"),
    "num_preprocessing_threads": ("1", "3"),
    "use_grayscale": (True,),
    "batch_size": ("1", "3"),
    "preprocessing_name": ("cifarnet", "lenet", "inception", "vgg", "padded_crop"),
    "randaugment_layers": ("2",),
    "random_erasing": ("0.5",),
    "mixup": ("0.2",),
    "cutmix": ("1.0",),
    "shuffle_block": ("4",),
    "weight_decay": ("0", "0.01"),
    "label_smoothing": ("0.1",),
    "moving_average_decay": ("0.9",),
    "optimizer": ("adam", "adamw", "ftrl", "lamb", "lars", "lazy_adam", "row_adam", "sgd"),
    "clip_norm": ("0.5", "1e-3"),
    "learning_rate_decay_type": ("fixed", "polynomial", "cosine", "one_cycle"),
    "warmup_epochs": ("0.1",),
    "learning_rate_scaling": ("linear", "sqrt"),
    "log_every_n_steps": ("1", "3"),
    "save_summaries_steps": ("2",),
    "check_numerics": (True,),
    "profile_steps": ("2,3",),
    "deterministic": (True,),
    "keep_checkpoints": ("1",),
    "save_in_background": (False,),
    "eval_every_n_steps": ("2", "3"),
    "eval_mirrored": (True,),
    "stop_metric": ("log_loss",),
    "describe": (True,),
    "seed": ("7",),
}
# What most runs with a flag need besides: drawn alone, they would only be refused.
_NEEDED = {
    "rotate_steps": _ALL_REDUCE,
    "local_steps": _ALL_REDUCE,
    "outer_momentum": _LOCAL,
    "outer_parts": _LOCAL,
    "outer_overlap": _LOCAL,
    "copies_check_every_n_steps": _ALL_REDUCE,
    "on_corruption": {"verify_every_n_steps": "2"},
    "stop_metric": _EVALUATED,
    # By default it lasts as long as the run.
    "learning_rate_decay_type": {"schedule_epochs": "1"},
}


def draw(seed):
    """Flags by name, of the network and the dataset too."""
    generator = random.Random(seed)
    flags = {
        "model_name": generator.choice(_MODELS),
        "dataset_name": generator.choice(("digits", "synthetic")),
        "batch_size": "4",
        "num_clones": "2",
    }
    for name in generator.sample(list(VALUES), generator.randint(2, _MOST_FLAGS)):
        flags[name] = generator.choice(VALUES[name])
        flags |= {key: flags.get(key, value) for key, value in _NEEDED.get(name, {}).items()}
    if "all_reduce" in flags:
        flags.pop("copy_clones", None)
    return flags


def words(flags):
    """Flags as the command takes them."""
    return [
        f"--{name}={value}" if isinstance(value, str) else f"--{'' if value else 'no'}{name}"
        for name, value in flags.items()
    ]


def outcome(processes, folder, flags):
    """What becomes of the runs: "as promised", or why they are refused.

    Raises:
      AssertionError: with what a run does not keep.
    """
    once, twice = folder / "once", folder / "twice"
    run = _trained(processes, once, flags, STEPS)
    if run.wait() != 0:
        *_, last = run.log.strip().splitlines()
        assert last.startswith("error: "), last
        assert "Traceback" not in run.log
        return f"refused, {last}"
    for steps, more in ((STEPS // 2, {}), (STEPS, {"save_interval_steps": "1"})):
        run_on = _trained(processes, twice, flags | more, steps)
        assert run_on.wait() == 0, run_on.log.strip().splitlines()[-1]
    warning = _WARNINGS.search(run.log)
    assert warning is None, warning[0]
    assert f"accuracy at step {STEPS}: " in run.log, "no accuracy"
    _assert_equal(checkpoint_values(once), checkpoint_values(twice))
    return "as promised"


def _trained(processes, train_dir, flags, steps):
    command = [sys.executable, str(ROOT / "train_image_classifier.py"), *words(flags)]
    place = [f"--train_dir={train_dir}", f"--max_number_of_steps={steps}"]
    return processes.start(f"{train_dir.name}-{steps}", [*command, *place])


def _assert_equal(one, other):
    assert one.keys() == other.keys(), f"other names: {sorted(one.keys() ^ other.keys())}"
    different = [name for name in sorted(one) if not np.array_equal(one[name], other[name])]
    assert not different, f"{len(different)} of {len(one)} values differ, first {different[0]}"


def check(folder, seed):
    """Makes the runs of a seed in a folder of their own; `outcome`, after which it is gone."""
    folder = Path(folder) / str(seed)
    folder.mkdir(parents=True)
    with Processes(folder) as processes:
        found = outcome(processes, folder, draw(seed))
    shutil.rmtree(folder)
    return found


def main(folder, *seeds):
    """Prints a line for each seed; returns the exit status."""
    status = 0
    for seed in map(int, seeds):
        try:
            found = check(folder, seed)
        except AssertionError as error:
            found, status = f"WRONG, {error}", 1
        print(f"{seed}: {found}: {' '.join(words(draw(seed)))}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Files of datasets in the format of TF-Slim: finds them, and reads the names of classes."""

import glob
import os
import re

from model_deploy import file_systems

_SHARD = re.compile(r"[-_](\d+)-of-(\d+)(\.tfrecord)?$")


def numbered_classes(num_classes: int) -> tuple[str, ...]:
    """Returns names for unnamed classes: `class_0`, `class_1`, ..."""
    return tuple(f"class_{label}" for label in range(num_classes))


def find_shards(folder: str, name: str, split: str) -> list[str]:
    """Returns the files of a split, sorted by name.

    Raises:
      ValueError: if there are none, or if some are missing according to the file names.
    """
    split = glob.escape(split)  # `fnmatch` has the same syntax
    patterns = [f"{name}_{split}*.tfrecord", f"{split}-*-of-*"]
    paths: set[str] = set()
    for pattern in patterns:
        names = file_systems.names_in(folder, pattern)
        paths.update(os.path.join(folder, each) for each in names if not each.startswith("."))
    if not paths:
        raise ValueError(
            f"data_dir must have files {' or '.join(patterns)}, got {folder!r} with none"
        )
    shards = [match for match in map(_SHARD.search, sorted(paths)) if match]
    for total in {int(match[2]) for match in shards}:
        present = {int(match[1]) for match in shards if int(match[2]) == total}
        missing = sorted(set(range(total)) - present)
        if missing:
            raise ValueError(
                f"data_dir {folder!r} must have all {total} files of split {split!r}, "
                f"got none with number {missing[0]}"
            )
    return sorted(paths)


def read_class_names(folder: str) -> tuple[str, ...]:
    """Reads the names of the classes from `labels.txt`, in the order of the labels.

    Raises:
      ValueError: if there is no such file, or it does not name labels 0, 1, 2, ...
    """
    path = os.path.join(folder, "labels.txt")
    try:
        content = file_systems.read_text(path)
        lines = [line.strip() for line in content.split("\n") if line.strip()]
    except FileNotFoundError as error:
        raise ValueError(
            f"{path!r} must name the classes, or num_classes must be given: there is no such file"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path!r} must be readable text, got {error}") from error
    names: dict[int, str] = {}
    for number, line in enumerate(lines, start=1):
        label, separator, name = line.partition(":")
        if not separator or not label.isdecimal():
            raise ValueError(f"{path}: line {number} must be 'label:name', got {line!r}")
        names[int(label)] = name
    if not names or sorted(names) != list(range(len(lines))):
        raise ValueError(f"{path}: labels must be 0, 1, 2, ..., got {sorted(names)}")
    return tuple(names[label] for label in range(len(names)))

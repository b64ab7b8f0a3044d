"""The manifest of a checkpoint: sizes and checksums of its files, its step, what it holds.

It is written last.  Of the index, which has TensorFlow's CRC32C of each tensor's bytes, it has the
checksum; so it pins the data too, without a second look at gigabytes: TensorFlow computed these
sums from memory, before the bytes went to a disk.
"""

import math
import os
import re
import time
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints.files import CHANGES_NAME, CHECKPOINT_NAME
from model_deploy.commands import read_checked, tell, write_checked

MANIFEST = ".manifest"
INDEX = ".index"
_DATA = re.compile(r"\.data-\d{5}-of-\d{5}$")


class Manifest(NamedTuple):
    """What a checkpoint was when it was complete.

    Attributes:
      step: its global step.
      made: when it was written, seconds since 1970.
      sizes: bytes of each file, by the end of its name: `.index`, `.data-00000-of-00001`.
      index_crc32: CRC-32 of the index file, which has TensorFlow's CRC32C of each tensor.
      holds: counts of what is in it, see `contents_of`.
      facts: what else the writer noted, such as the metric of the best checkpoint.
    """

    step: int
    made: float
    sizes: dict[str, int]
    index_crc32: int
    holds: dict[str, int]
    facts: dict[str, Any]


def write_manifest(checkpoint: str, step: int, facts: Mapping[str, Any] | None = None) -> None:
    """Writes the manifest of a complete checkpoint, and removes those of deleted checkpoints.

    A manifest that cannot be written is a warning: the checkpoint itself is whole.

    Args:
      checkpoint: path of the checkpoint.
      step: its global step.
      facts: plain values to note beside it.
    """
    try:
        index = file_systems.read_bytes(f"{checkpoint}{INDEX}")
        sizes = {
            path.removeprefix(checkpoint): file_systems.facts_of(path).size
            for path in files_of(checkpoint)
        }
        manifest = Manifest(
            step=step,
            made=time.time(),
            sizes=sizes,
            index_crc32=zlib.crc32(index),
            holds=contents_of(checkpoint),
            facts=dict(facts or {}),
        )
        write_checked(f"{checkpoint}{MANIFEST}", manifest._asdict())
        _remove_left_over(os.path.dirname(checkpoint))
    except (OSError, tf.errors.OpError) as error:
        tell(f"warning: {checkpoint} has no manifest: {error}")


def remove_manifest(checkpoint: str) -> None:
    """Removes the manifest of a checkpoint that is about to be written again."""
    file_systems.remove(f"{checkpoint}{MANIFEST}")


def read_manifest(checkpoint: str) -> Manifest | None:
    """Reads the manifest of a checkpoint; None if it has none, as those of other programs.

    Raises:
      ValueError: naming the manifest, if it is damaged.
      OSError: if it cannot be read.
    """
    path = f"{checkpoint}{MANIFEST}"
    try:
        return Manifest(**read_checked(path))
    except FileNotFoundError:
        return None
    except TypeError as error:
        raise ValueError(
            f"{path} must have the fields {', '.join(Manifest._fields)}: {error}"
        ) from error


def with_manifests(folder: str, kind: str = CHECKPOINT_NAME) -> list[str]:
    """Returns the checkpoints in a folder that have a manifest, in no order.

    A manifest of which neither index nor data is there is one of a deleted checkpoint.

    Args:
      folder: the folder.
      kind: first part of their names; by default that of whole checkpoints.
    """
    return [path for path in _named_by_manifests(folder, kind) if files_of(path)]


def files_of(checkpoint: str) -> list[str]:
    """Returns the paths of the index and the data of a checkpoint, of those that are there."""
    found = file_systems.paths_starting_with(f"{checkpoint}.")
    return [
        path
        for path in found
        if path == f"{checkpoint}{INDEX}" or _DATA.fullmatch(path.removeprefix(checkpoint))
    ]


def contents_of(checkpoint: str) -> dict[str, int]:
    """Counts what a checkpoint holds, by its index alone.

    Slots of optimizers and moving averages are named below the variable that they belong to, as in
    `fc/weights/Momentum`.

    Returns:
      `variables`, `values` (numbers in them), `slots` and `tables` (growing ones).

    Raises:
      tf.errors.OpError: if the index is damaged or missing.
    """
    shapes = tf.train.NewCheckpointReader(checkpoint).get_variable_to_shape_map()
    slots = [name for name in shapes if os.path.dirname(name) in shapes]
    own = shapes.keys() - set(slots)
    count = sum(math.prod(shapes[name]) for name in own)
    tables = sum(name.endswith("/index/ids") for name in shapes)
    return {"variables": len(own), "values": count, "slots": len(slots), "tables": tables}


def _remove_left_over(folder: str) -> None:
    for kind in (CHECKPOINT_NAME, CHANGES_NAME):
        for path in _named_by_manifests(folder, kind):
            if not files_of(path):
                remove_manifest(path)


def _named_by_manifests(folder: str, kind: str) -> list[str]:
    names = file_systems.names_in(folder, f"{kind}-*{MANIFEST}")
    return [os.path.join(folder, name.removesuffix(MANIFEST)) for name in names]

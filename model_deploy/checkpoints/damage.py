"""What is wrong with a checkpoint: at once by its manifest, or in full by reading all of it."""

import os
import re
import zlib
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints.files import is_checkpoint
from model_deploy.checkpoints.manifest import INDEX, Manifest, files_of, read_manifest
from model_deploy.checkpoints.storage import OF_OTHERS
from model_deploy.commands import line_of

# What is raised for files that are not as they were written: by TensorFlow's readers `IndexError`
# for a short one, by its savers `ValueError` for one that is gone.
UNREADABLE = (tf.errors.OpError, IndexError, ValueError)


class DamagedCheckpointError(ValueError):
    """A checkpoint that was named is damaged."""


class Damage(NamedTuple):
    """What is wrong with a checkpoint.

    Attributes:
      checkpoint: path of the checkpoint.
      file: path of the file that is damaged or missing.
      wrong: the rest of the sentence that begins with the file.
    """

    checkpoint: str
    file: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.file} {self.wrong}"


def quick_damage(checkpoint: str) -> Damage | None:
    """Looks at the sizes of all files and the checksum of the index; None if nothing is wrong.

    Of a checkpoint without manifest, or whose manifest is damaged, TensorFlow must be able to read
    the index, which has checksums of its own, and all data files must be there.

    Args:
      checkpoint: path of the checkpoint, in TensorFlow's new or old format.
    """
    manifest = manifest_of(checkpoint)
    if manifest is not None:
        return _unlike(checkpoint, manifest)
    if not is_checkpoint(checkpoint):
        return Damage(checkpoint, f"{checkpoint}{INDEX}", "is missing")
    try:
        tf.train.NewCheckpointReader(checkpoint)
    except UNREADABLE as error:
        index = f"{checkpoint}{INDEX}"
        return Damage(
            checkpoint,
            index if file_systems.is_file(index) else checkpoint,
            f"cannot be read ({line_of(error)})",
        )
    return _missing_data(checkpoint)


def full_damage(checkpoint: str) -> Damage | None:
    """Looks as `quick_damage` does, then reads all tensors, which TensorFlow checks by their sums.

    Args:
      checkpoint: path of the checkpoint.
    """
    found = quick_damage(checkpoint)
    if found is not None:
        return found
    reader = tf.train.NewCheckpointReader(checkpoint)
    for name in reader.get_variable_to_shape_map():
        try:
            reader.get_tensor(name)
        except UNREADABLE as error:
            line = line_of(error)
            why = "its checksum differs" if "Checksum does not match" in line else line
            return Damage(checkpoint, _data_file(checkpoint, line), f"is damaged in {name} ({why})")
    return None


def damage_behind(checkpoint: str, error: Exception) -> Damage | None:
    """Returns what is wrong with a checkpoint that could not be restored; None if nothing is.

    A `ValueError` is mostly about another model, so that the data are not read after it; and a lost
    connection is not the checkpoint's fault.
    """
    if isinstance(error, OF_OTHERS):
        return None
    return (quick_damage if isinstance(error, ValueError) else full_damage)(checkpoint)


def manifest_of(checkpoint: str) -> Manifest | None:
    """Returns a checkpoint's manifest; None without one, or if it is damaged."""
    try:
        return read_manifest(checkpoint)
    except ValueError:
        return None


def note_on_manifest(checkpoint: str) -> str:
    """Returns one line if a checkpoint's manifest is damaged, or missing beside others'; or ''."""
    instead = "is checked by TensorFlow's own sums"
    try:
        if read_manifest(checkpoint) is not None:
            return ""
    except ValueError as error:
        return f"{error}: {checkpoint} {instead}"
    folder, name = os.path.split(checkpoint)
    kind = name.rpartition("-")[0]
    if kind and file_systems.names_in(folder, f"{kind}-*.manifest"):
        return f"{checkpoint}.manifest is missing: {checkpoint} {instead}"
    return ""


def _unlike(checkpoint: str, manifest: Manifest) -> Damage | None:
    """Returns the first difference between the files of a checkpoint and its manifest."""
    for end, size in manifest.sizes.items():
        path = f"{checkpoint}{end}"
        try:
            found = file_systems.facts_of(path).size
        except FileNotFoundError:
            return Damage(checkpoint, path, "is missing")
        if found != size:
            return Damage(checkpoint, path, f"has {found:,} bytes instead of {size:,}")
    index = f"{checkpoint}{INDEX}"
    if zlib.crc32(file_systems.read_bytes(index)) != manifest.index_crc32:
        return Damage(checkpoint, index, "has not the checksum in its manifest")
    return None


def _missing_data(checkpoint: str) -> Damage | None:
    """Returns which of the data files is missing that the names of the others number."""
    ends = [path.removeprefix(checkpoint) for path in files_of(checkpoint)]
    data = [end for end in ends if end != INDEX]
    if not ends:
        return None  # of TensorFlow's old format, a single file
    count = int(data[0].rpartition("-")[2]) if data else 1
    for number in range(count):
        end = f".data-{number:05d}-of-{count:05d}"
        if end not in data:
            return Damage(checkpoint, f"{checkpoint}{end}", "is missing")
    return None


def _data_file(checkpoint: str, message: str) -> str:
    """Returns the data file that an error of TensorFlow is about: it names its number, if any."""
    data = [path for path in files_of(checkpoint) if not path.endswith(INDEX)]
    number = re.search(r"shard (\d+)", message)
    if number and int(number.group(1)) < len(data):
        return data[int(number.group(1))]
    return data[0] if len(data) == 1 else checkpoint

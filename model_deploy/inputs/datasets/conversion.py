"""Writes a dataset as sharded TFRecords in the format of TF-Slim.

Each shard is written under a temporary name and renamed when it is complete, so a conversion that
is killed leaves no incomplete file that looks complete.
"""

import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from model_deploy import file_systems
from model_deploy.commands import make_folder, replaced_file
from model_deploy.inputs.datasets import dataset as dataset_lib
from model_deploy.inputs.datasets import preparation
from model_deploy.inputs.files import slim_files, tfrecords
from model_deploy.inputs.reading import chunks

_AHEAD = 64  # records that are prepared ahead of writing
_EITHER_HEADER = 47  # `wbits` of zlib: a header of GZIP or ZLIB


def convert(
    dataset: dataset_lib.Dataset,
    output_dir: str | os.PathLike[str],
    *,
    name: str | None = None,
    num_shards: int = 1,
    max_side: int | None = None,
    quality: int | None = None,
    raw: bool = False,
    image_size: int | tuple[int, int] | None = None,
    progress: bool = True,
) -> list[str]:
    """Writes one split; continues where an earlier call with the same arguments stopped.

    Images in memory are written as PNG; encoded images are checked and copied, unless `max_side` or
    `raw` is given.

    Args:
      dataset: the split.
      output_dir: the folder for `<name>_<split>_<shard>-of-<shards>.tfrecord` and `labels.txt`.
      name: by default that of the dataset.
      num_shards: number of files.
      max_side: images with a side of more pixels are reduced to so many, by area and in their
        proportions, and written as JPEG; other images are copied.
      quality: quality of reduced JPEGs, 1 to 100; by default 95.
      raw: writes images of one size as raw bytes, uint8 [height, width, channels], which need no
        decoding.  The largest central part with the proportions of `image_size` is scaled.
      image_size: side of raw images, or (height, width); by default the images' size, if it is
        the same for all.
      progress: whether to show a progress bar.

    Returns:
      The paths of the shards.

    Raises:
      ValueError: if the number of shards is not from 1 to the number of examples, or the folder
        has shards of another conversion; for a number out of range, or a setting without the one
        that it requires.
      CorruptRecordError: if an example cannot be read.
      OSError: if the folder cannot be written.
    """
    if not 1 <= num_shards <= dataset.num_examples:
        raise ValueError(
            f"num_shards must be from 1 to the {dataset.num_examples} examples, got {num_shards}"
        )
    prepared = preparation.Preparation(max_side, quality, raw, image_size)
    read = prepared.reader(dataset)
    folder = pathlib.Path(output_dir)
    make_folder("output_dir", folder)
    stem = f"{name or dataset.name}_{dataset.split}"
    facts = _facts(dataset, num_shards) | prepared.facts(dataset)
    _check_same_conversion(folder / f".{stem}.json", facts)
    labels = "".join(f"{label}:{each}\n" for label, each in enumerate(dataset.class_names))
    _write_whole(folder / "labels.txt", labels.encode())
    bounds = np.linspace(0, dataset.num_examples, num_shards + 1).astype(int).tolist()
    paths = []
    with (
        concurrent.futures.ThreadPoolExecutor(chunks.usable_cores()) as pool,
        tqdm(total=dataset.num_examples, unit="image", desc=stem, disable=not progress) as bar,
    ):
        for shard, (begin, end) in enumerate(itertools.pairwise(bounds)):
            path = folder / f"{stem}_{shard:05d}-of-{num_shards:05d}.tfrecord"
            paths.append(str(path))
            if path.exists():
                bar.update(end - begin)
            else:
                _write_shard(path, _in_order(pool, read, range(begin, end)), bar)
    return paths


def uncompress(
    data_dir: str | os.PathLike[str],
    split: str,
    output_dir: str | os.PathLike[str],
    *,
    progress: bool = True,
) -> list[str]:
    """Writes compressed TFRecord files uncompressed, so that records can be read in any order.

    Args:
      data_dir: the folder of the files, and of `labels.txt` if there is one.
      split: the split, whose files are found as by the dataset `tfrecord`.
      output_dir: the folder for files of the same names; existing files are kept.
      progress: whether to show a progress bar.

    Returns:
      The paths of the files.

    Raises:
      ValueError: if there are no files, or one is not compressed or cannot be read.
      OSError: if the folder cannot be written.
    """
    folder = dataset_lib.required_folder("tfrecord", data_dir)
    make_folder("output_dir", output_dir)
    labels = os.path.join(folder, "labels.txt")
    if file_systems.is_file(labels):
        _write_whole(os.path.join(output_dir, "labels.txt"), file_systems.read_bytes(labels))
    paths = []
    for source in tqdm(
        slim_files.find_shards(folder, "*", split), desc=split, disable=not progress
    ):
        paths.append(os.path.join(output_dir, os.path.basename(source)))
        if file_systems.is_file(paths[-1]):
            continue
        part = f"{paths[-1]}.part"
        with file_systems.as_os_errors(), file_systems.open_file(part, "wb") as file:
            for piece in _uncompressed(source):
                file.write(piece)
        file_systems.replace(part, paths[-1])
    return paths


def _uncompressed(path: str) -> Iterator[bytes]:
    """Yields the uncompressed content of a GZIP or ZLIB file in pieces.

    Raises:
      ValueError: if the file is of another kind, or truncated.
    """
    decompressor = zlib.decompressobj(_EITHER_HEADER)
    with file_systems.as_os_errors(), file_systems.open_file(path, "rb") as file:
        if not tfrecords.is_compressed(file.read(2)):
            raise ValueError(f"{path}: must be compressed by GZIP or ZLIB, and is not")
        file.seek(0)
        try:
            while piece := file.read(2**20):
                while piece:
                    yield decompressor.decompress(piece)
                    piece = decompressor.unused_data
                    if decompressor.eof and piece:  # another compressed part follows
                        decompressor = zlib.decompressobj(_EITHER_HEADER)
        except zlib.error as error:
            raise ValueError(f"{path}: must be whole, got {error}") from error
    if not decompressor.eof:
        raise ValueError(f"{path}: must be whole, got a file that is truncated")


def _facts(dataset: dataset_lib.Dataset, num_shards: int) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "num_examples": dataset.num_examples,
        "class_names": list(dataset.class_names),
        "num_shards": num_shards,
    }


def _check_same_conversion(manifest: pathlib.Path, facts: dict[str, Any]) -> None:
    """Checks the settings in the folder's manifest, or writes them for later calls."""
    if manifest.exists():
        try:
            found = json.loads(manifest.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{manifest} must be JSON, got {error}") from error
        if found != facts:
            different = next(key for key in facts | found if found.get(key) != facts.get(key))
            raise ValueError(
                f"output_dir {str(manifest.parent)!r} must be empty or have the same conversion, "
                f"got {different} {found.get(different)!r} instead of {facts.get(different)!r}"
            )
    else:
        _write_whole(manifest, json.dumps(facts).encode())


def _write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    with replaced_file(path, "wb") as file:
        file.write(content)


def _write_shard(path: pathlib.Path, made: Iterable[bytes], bar: tqdm) -> None:
    """Writes a shard under a temporary name, flushes it to disk and renames it."""
    part = path.with_name(f"{path.name}.part")  # matches no pattern of a dataset
    with tf.io.TFRecordWriter(str(part)) as writer:
        for record in made:
            writer.write(record)
            bar.update()
    # Even after a power cut the name must not exist without the content.
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)


def _in_order(
    pool: concurrent.futures.Executor, read: Callable[[int], bytes], indices: Iterable[int]
) -> Iterator[bytes]:
    """Yields the results of `read` in order, computed in parallel and a limited number ahead."""
    waiting: collections.deque[concurrent.futures.Future[bytes]] = collections.deque()
    for index in indices:
        waiting.append(pool.submit(read, index))
        if len(waiting) > _AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()

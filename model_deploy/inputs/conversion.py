"""Writes a dataset as sharded TFRecords in the format of TF-Slim.

Each shard is written under another name and renamed when it is complete, so a
conversion that was killed leaves no file that reads as complete.
"""

import itertools
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from model_deploy import file_systems
from model_deploy.commands import make_folder, replaced_file
from model_deploy.inputs import dataset as dataset_lib
from model_deploy.inputs import decoding, slim_files, sources, tfrecords

tf1 = tf.compat.v1

_EITHER_HEADER = 47  # for zlib: that of GZIP or of ZLIB, whichever is there


def convert(
    dataset: dataset_lib.Dataset,
    output_dir: str | os.PathLike[str],
    *,
    name: str | None = None,
    num_shards: int = 1,
    progress: bool = True,
) -> list[str]:
    """Writes one split; goes on where an earlier call with the same arguments stopped.

    Images in memory are written as PNG, encoded ones as they are, after a test that
    they decode.

    Args:
      dataset: the split.
      output_dir: the folder for `<name>_<split>_<shard>-of-<shards>.tfrecord` and `labels.txt`.
      name: by default that of the dataset.
      num_shards: how many files.
      progress: whether to show a progress bar.

    Returns:
      The paths of the shards.

    Raises:
      ValueError: if the number of shards is not from 1 to that of the examples, or the
        folder has shards of another conversion.
      CorruptRecordError: if an example cannot be read.
      OSError: if the folder cannot be written.
    """
    if not 1 <= num_shards <= dataset.num_examples:
        raise ValueError(
            f"num_shards must be from 1 to the {dataset.num_examples} examples, got {num_shards}"
        )
    folder = pathlib.Path(output_dir)
    make_folder("output_dir", folder)
    stem = f"{name or dataset.name}_{dataset.split}"
    _check_same_conversion(folder / f".{stem}.json", dataset, num_shards)
    labels = "".join(f"{label}:{each}\n" for label, each in enumerate(dataset.class_names))
    _write_atomically(folder / "labels.txt", labels.encode())
    read = _reader(dataset)
    bounds = np.linspace(0, dataset.num_examples, num_shards + 1).astype(int).tolist()
    paths = []
    with tqdm(total=dataset.num_examples, unit="image", desc=stem, disable=not progress) as bar:
        for shard, (begin, end) in enumerate(itertools.pairwise(bounds)):
            path = folder / f"{stem}_{shard:05d}-of-{num_shards:05d}.tfrecord"
            paths.append(str(path))
            if path.exists():
                bar.update(end - begin)
            else:
                _write_shard(path, range(begin, end), read, bar)
    return paths


def uncompress(
    data_dir: str | os.PathLike[str],
    split: str,
    output_dir: str | os.PathLike[str],
    *,
    progress: bool = True,
) -> list[str]:
    """Writes compressed TFRecord files as such that can be read in any order.

    Args:
      data_dir: the folder of the files, and of `labels.txt` if there is one.
      split: the files are those that the dataset `tfrecord` would read.
      output_dir: the folder for files of the same names; those that are there are left alone.
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
        with replaced_file(os.path.join(output_dir, "labels.txt"), "wb") as file:
            file.write(file_systems.read_bytes(labels))
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
    """The content of a file that GZIP or ZLIB has compressed, in pieces.

    Raises:
      ValueError: if it is neither, or not whole.
    """
    if not tfrecords.compression_of(path):
        raise ValueError(f"{path}: must be compressed by GZIP or ZLIB, and is not")
    decompressor = zlib.decompressobj(_EITHER_HEADER)
    with file_systems.as_os_errors(), file_systems.open_file(path, "rb") as file:
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


def _check_same_conversion(
    manifest: pathlib.Path, dataset: dataset_lib.Dataset, num_shards: int
) -> None:
    facts = {
        "dataset": dataset.name,
        "num_examples": dataset.num_examples,
        "class_names": list(dataset.class_names),
        "num_shards": num_shards,
    }
    if manifest.exists():
        found = json.loads(manifest.read_text(encoding="utf-8"))
        if found != facts:
            different = next(key for key in facts if found.get(key) != facts[key])
            raise ValueError(
                f"output_dir {str(manifest.parent)!r} must be empty or have the same conversion, "
                f"got {different} {found.get(different)!r} instead of {facts[different]!r}"
            )
    else:
        _write_atomically(manifest, json.dumps(facts).encode())


def _write_atomically(path: pathlib.Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


def _write_shard(
    path: pathlib.Path, indices: Sequence[int], read: Callable[[int], bytes], bar: tqdm
) -> None:
    part = path.with_name(f"{path.name}.part")  # matches no pattern of a dataset
    with tf.io.TFRecordWriter(str(part)) as writer:
        for index in indices:
            writer.write(read(index))
            bar.update()
    # After a power cut, too, the name must not be there without the content.
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)


def _reader(dataset: dataset_lib.Dataset) -> Callable[[int], bytes]:
    """A function from the number of an example to its record."""
    source = dataset.source
    if isinstance(source, sources.ArraySource):
        images, labels = source.arrays
        encode = _png_encoder()
        return lambda index: _record(
            encode(images[index]), b"png", int(labels[index]), images.shape[1:]
        )
    decode = decoding.Decoder(0)

    def read(index: int) -> bytes:
        contents, label = source.read(index)
        image, _ = decoding.read_image(source, index, decode)
        kind = b"png" if contents.startswith(b"\x89PNG") else b"jpeg"
        return _record(contents, kind, label, image.shape)

    return read


def _png_encoder() -> Callable[[np.ndarray], bytes]:
    with tf.Graph().as_default() as graph:
        image = tf1.placeholder(tf.uint8, [None, None, None])
        encoded = tf.io.encode_png(image)
        session = tf1.Session(graph=graph, config=tf1.ConfigProto(device_count={"GPU": 0}))
        return session.make_callable(encoded, [image])


def _record(contents: bytes, kind: bytes, label: int, shape: Sequence[int]) -> bytes:
    def numbers(value: int) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    def text(value: bytes) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    features = {
        "image/encoded": text(contents),
        "image/format": text(kind),
        "image/class/label": numbers(label),
        "image/height": numbers(shape[0]),
        "image/width": numbers(shape[1]),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

"""Downloads official datasets, checks their SHA-256 sums and extracts them.

`pooch` gives a file its name only when it is complete and its sum, if known, is right.
"""

import dataclasses
import os
import pathlib
import re
import tempfile
import urllib.parse
from collections.abc import Mapping

from absl import logging

from model_deploy.commands import make_folder
from model_deploy.inputs.files import archives

_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FLOWERS = "https://storage.googleapis.com/download.tensorflow.org/example_images/"
_TIMEOUT_SECS = 60


@dataclasses.dataclass(frozen=True)
class Download:
    """The location of a dataset's files.

    Attributes:
      sums: URL -> SHA-256 sum, or None if unknown here, so that the user must give it.
      is_archive: whether the file is a tar archive.
    """

    sums: Mapping[str, str | None]
    is_archive: bool


DOWNLOADS = {
    "mnist": Download(
        {
            f"{_MNIST}train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            f"{_MNIST}train-labels-idx1-ubyte.gz": (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            f"{_MNIST}t10k-images-idx3-ubyte.gz": (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            f"{_MNIST}t10k-labels-idx1-ubyte.gz": (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
        is_archive=False,
    ),
    "cifar10": Download(
        {
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz": (
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
            )
        },
        is_archive=True,
    ),
    "flowers": Download(
        # No sum is published.
        {f"{_FLOWERS}flower_photos.tgz": None},
        is_archive=True,
    ),
}


def download_dataset(
    name: str,
    data_dir: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    base_url: str | None = None,
    progress: bool = True,
) -> None:
    """Downloads a dataset into a folder, unless its files exist already.

    Args:
      name: a key of `DOWNLOADS`.
      data_dir: the folder; archives are extracted into it.
      sha256: sum of the file, for a dataset of one file; by default the known one.
      base_url: URL of a mirror's folder to download from.
      progress: whether to show a progress bar.

    Raises:
      ValueError: for an unknown name, a missing or invalid sum, a download that fails, is cut off
        or has another sum, and an unsafe archive.
      OSError: if the folder cannot be made.
    """
    if name not in DOWNLOADS:
        raise ValueError(f"dataset must be one of {', '.join(DOWNLOADS)}, got {name!r}")
    sums = _sums(name, sha256)
    folder = pathlib.Path(data_dir)
    make_folder("data_dir", folder)
    for url, known in sums.items():
        file_name = url.rsplit("/", 1)[-1]
        source = url if base_url is None else f"{base_url.rstrip('/')}/{file_name}"
        path = _fetch(source, known, folder, file_name, progress)
        if DOWNLOADS[name].is_archive:
            archives.extract(path, folder)


def _sums(name: str, sha256: str | None) -> dict[str, str]:
    """Returns URL -> SHA-256 sum.

    Raises:
      ValueError: if a sum is unknown, invalid, or given for several files.
    """
    known = dict(DOWNLOADS[name].sums)
    if sha256 is not None:
        if not re.fullmatch("[0-9a-fA-F]{64}", sha256):
            raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
        if len(known) != 1:
            raise ValueError(f"sha256 must be for one file, got dataset {name!r} of {len(known)}")
        known = dict.fromkeys(known, sha256.lower())
    sums = {}
    for url, value in known.items():
        if value is None:
            raise ValueError(
                f"sha256 must be given for {url}, whose sum is not known here, got None"
            )
        sums[url] = value
    return sums


def _fetch(url: str, sha256: str, folder: pathlib.Path, name: str, progress: bool) -> str:
    # Imported here: it imports `requests`, which takes a while.
    import pooch  # noqa: PLC0415
    import requests  # noqa: PLC0415

    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=_TIMEOUT_SECS)
    try:
        return pooch.retrieve(
            url, f"sha256:{sha256}", fname=name, path=folder, downloader=downloader
        )
    except (requests.RequestException, ValueError, OSError) as error:
        raise ValueError(f"download of {url} must succeed with its sum, got {error}") from error


def download_file(
    url: str,
    folder: str | os.PathLike[str],
    *,
    timeout_secs: float = _TIMEOUT_SECS,
    progress: bool = True,
) -> str:
    """Downloads a file without a known sum, and says so; replaces a file of the same name.

    Args:
      url: HTTP or HTTPS; the last part of its path is the name of the file.
      folder: where the file goes.
      timeout_secs: maximum time without data from the server.
      progress: whether to show a progress bar.

    Returns:
      The path of the file.

    Raises:
      ValueError: if the URL names no file, or the download fails or is cut off.
      OSError: if the folder cannot be made.
    """
    # Imported here as in `_fetch`.
    import pooch  # noqa: PLC0415
    import requests  # noqa: PLC0415

    parts = urllib.parse.urlsplit(url)
    name = parts.path.rsplit("/", 1)[-1]
    if parts.scheme not in ("http", "https") or name in ("", ".", ".."):
        raise ValueError(f"url must be that of a file, by http or https, got {url!r}")
    target = pathlib.Path(folder)
    make_folder("folder", target)
    fetch = pooch.HTTPDownloader(progressbar=progress, timeout=timeout_secs)
    path = target / name
    with tempfile.TemporaryDirectory(prefix=".downloading-", dir=target) as temporary:
        part = pathlib.Path(temporary) / "part"
        try:
            fetch(url, str(part), None)
        except (requests.RequestException, OSError) as error:
            raise ValueError(f"download of {url} must succeed, got {error}") from error
        digest = pooch.file_hash(str(part), alg="sha256")
        part.replace(path)
    logging.warning(
        "%s: %d bytes from %s, not checked, as no sum of them is known; their SHA-256 is %s",
        *(path, path.stat().st_size, url, digest),
    )
    return str(path)

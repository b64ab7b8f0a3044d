"""Parquet files: opened by `pyarrow`, an extra, on any file system; and what their columns are."""

import contextlib
import io
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from model_deploy import file_systems
from model_deploy.inputs.tables import parquet_rows
from model_deploy.inputs.tables.columns import Column


class _RemoteFile(io.RawIOBase):
    """A file of TensorFlow's with the methods that Arrow takes.

    Args:
      file: an open `tf.io.gfile.GFile`.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._size = file, file.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._file.seek(start + offset)
        return start + offset

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def pyarrow_parquet() -> ModuleType:
    """Returns the module `pyarrow.parquet`.

    Raises:
      ImportError: if it is not installed; the message says how to install it.
    """
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(
            "ParquetDataset takes the package pyarrow: pip install 'model_deploy[parquet]' brings "
            "it",
            name="pyarrow",
        ) from error
    return pyarrow.parquet


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """Opens a Parquet file.

    Raises:
      ValueError: if it cannot be read.
    """
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        with (
            file_systems.as_os_errors(),
            file_systems.open_file(path, "rb") as source,
            pyarrow_parquet().ParquetFile(
                source if file_systems.is_local(path) else _RemoteFile(source)
            ) as file,
        ):
            yield file
    except (OSError, ArrowException) as error:
        raise ValueError(f"file of a table must be readable, got {path!r}: {error}") from error


def columns_of(path: str, schema: Any) -> dict[str, Column]:
    """Returns all columns of a file.

    Raises:
      ValueError: naming a column of a type that is not supported.
    """
    return {
        field.name: Column(kind.removeprefix("list of "), is_list=kind.startswith("list"))
        for field in schema
        for kind in [_known_kind(path, field)]
    }


def check_schema(path: str, schema: Any, columns: dict[str, Column]) -> None:
    """Checks that a file has columns of the wanted kinds; whole numbers may become float32."""
    for name, column in columns.items():
        if name not in schema.names:
            raise ValueError(
                f"columns must be among those of {path!r}, {', '.join(schema.names)}, got {name!r}"
            )
        field = schema.field(name)
        kind = _known_kind(path, field)
        if column.kind not in (kind, kind.replace("int64", "float32")):
            raise ValueError(
                f"column {name!r} must be {kind}, the type {field.type} of {path!r}, "
                f"got {column.kind}"
            )


def _known_kind(path: str, field: Any) -> str:
    kind = parquet_rows.kind_of(field.type)
    if kind is None:
        raise ValueError(
            f"column {field.name!r} of {path!r} must have numbers, texts, or lists of them, "
            f"got {field.type}"
        )
    return kind

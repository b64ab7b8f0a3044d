"""Replaces files as a whole, so that a reader never sees a partial one."""

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from model_deploy import file_systems


@contextlib.contextmanager
def replaced_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[Any]:
    """Opens a new file that replaces `path` when the `with` block ends.

    After an error (a full disk, say) the old file is unchanged, and the new one removed.

    Args:
      path: the file to replace or create, on any file system.
      mode: "w" for text (UTF-8, lines end as written), or "wb".
    """
    if not file_systems.is_local(path):
        # In memory first: TensorFlow's file objects lack much of Python's interface.
        content = io.BytesIO() if "b" in mode else io.StringIO(newline="")
        yield content
        part = f"{os.fspath(path)}.{os.getpid()}.part"
        with file_systems.as_os_errors(), file_systems.open_file(part, mode) as file:
            file.write(content.getvalue())
        file_systems.replace(part, path)
        return
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "")
    folder = os.path.dirname(os.fspath(path)) or "."
    name = f".{os.path.basename(path)}."
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=name)
    try:
        with os.fdopen(handle, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp makes files that only their owner can read
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

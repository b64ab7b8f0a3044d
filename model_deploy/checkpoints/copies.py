"""`Copies`: all that a checkpoint has, copied in memory at the end of a step."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.checkpoints.free_memory import free_memory
from model_deploy.commands import tell

# Copies of fewer bytes are not worth a line.
_LARGE = 16 << 20


class Copies:
    """Values that are copied between two steps, and written from the copies during the next ones.

    Each task copies the values that it has, in the memory of its host; those on a GPU come to the
    CPU.  TensorFlow lets the copy of a resource variable share the memory of the variable until an
    op changes the variable, and the op then takes other memory.  Reference variables are changed
    in place, so their values are copied at once.

    Args:
      saved: variables and objects for a saver.
      new_saver: makes a `tf.train.Saver` of such objects.
      purpose: different from that of other copies in the graph.
      here: device of this process, '' without a cluster.

    Attributes:
      saver: writes the copies; restores nothing.
      size: bytes of all copies of known shapes.
      size_elsewhere: of these the bytes in other processes.
      is_whole: whether `size` counts all copies.
    """

    def __init__(
        self,
        saved: Sequence[Any],
        new_saver: Callable[[Sequence[Any]], Any],
        purpose: str,
        here: str = "",
    ) -> None:
        self._taken: list[Any] = []
        self._freed: list[Any] = []
        self.size, self.size_elsewhere, self.is_whole = 0, 0, True
        self._here = _task(here)
        self._purpose = purpose
        self._said: bool | None = None  # whether they fit, as it was said last
        copied = []
        with tf.name_scope(f"copies_{purpose}"):
            for saveable in internals.saveables(saved):
                reads = [self._copy(spec) for spec in saveable.specs]
                copied.append(internals.saved_from(saveable, reads))
            self._take, self._free = tf.group(*self._taken), tf.group(*self._freed)
            self.saver = new_saver(copied)

    def fit(self) -> bool:
        """Whether this process has memory for the copies; says how much, when that changes."""
        needed, free = self.size - self.size_elsewhere, free_memory()
        fits = free is None or needed <= free
        if not fits and self._said is not False:
            tell(
                f"no copies for {self._purpose} checkpoints, which stop the steps: they take "
                f"{_megabytes(needed)} of memory, and {_megabytes(free or 0)} are free"
            )
        elif fits and self._said is not True and self.size >= _LARGE:
            tell(self._describe())
        self._said = fits
        return fits

    def _describe(self) -> str:
        line = f"{self._purpose} checkpoints are copied in memory: {_megabytes(self.size)}"
        if not self.is_whole:
            line += ", and rows of tables that grow"
        if self.size_elsewhere:
            line += f", of it {_megabytes(self.size_elsewhere)} on parameter servers, where nobody "
            line += "asks what is free"
        return line

    def take(self, session: Any) -> None:
        """Copies the present values."""
        session.run(self._take)

    def free(self, session: Any) -> None:
        """Frees the memory of the copies, if there are any."""
        session.run(self._free)

    def _copy(self, spec: Any) -> Any:
        """Returns the tensor that reads the copy of a value."""
        tensor = spec.tensor
        host = _host(tensor.device)
        self._count(tensor, host)
        with tf.device(host):
            # The name is that of the copy before, whose memory is freed even after a lost session.
            copy = tf.raw_ops.VarHandleOp(
                dtype=tensor.dtype.base_dtype,
                shape=tensor.shape,
                shared_name=f"copies_{self._purpose}/{spec.name}/{spec.slice_spec}",
            )
            value = tf.raw_ops.DeepCopy(x=tensor) if _is_changed_in_place(tensor) else tensor
            self._taken.append(tf.raw_ops.AssignVariableOp(resource=copy, value=value))
            self._freed.append(
                tf.raw_ops.DestroyResourceOp(resource=copy, ignore_lookup_error=True)
            )
            return tf.raw_ops.ReadVariableOp(resource=copy, dtype=tensor.dtype.base_dtype)

    def _count(self, tensor: Any, host: str) -> None:
        if not tensor.shape.is_fully_defined():
            self.is_whole = False
            return
        size = tensor.shape.num_elements() * tensor.dtype.size
        self.size += size
        if _task(host)[0] and _task(host) != self._here:
            self.size_elsewhere += size


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _host(device: str) -> str:
    """Returns the CPU of the task that has a device."""
    spec = tf.DeviceSpec.from_string(device).replace(device_type="CPU", device_index=0)
    return str(spec.to_string())


def _task(device: str) -> tuple[str | None, int | None]:
    spec = tf.DeviceSpec.from_string(device)
    return spec.job, spec.task


def _is_changed_in_place(tensor: Any) -> bool:
    """Whether a tensor may share the memory of a reference variable."""
    return any(
        internals.is_reference(output)
        for op in graph_walk.ancestors([tensor.op])
        for output in op.outputs
    )

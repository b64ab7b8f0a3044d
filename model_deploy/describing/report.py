"""The placement report: which ops are on which device, and what is sent between devices."""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, placement
from model_deploy.commands import aligned
from model_deploy.deployment import DeployedModel
from model_deploy.describing.notes import describe_settings
from model_deploy.op_types import changes_variable
from model_deploy.parts import noted_parts, parts_by_clone, stages_by_device
from model_deploy.rewrites import describe_compilation

ANY_DEVICE = "(any)"
_INPUT_TYPES = re.compile(r"Iterator|Dataset|QueueDequeue")
_COLLECTIVE_TYPES = re.compile(r"^Collective(Reduce|Gather|BcastSend)")


@dataclasses.dataclass(frozen=True)
class DeviceRow:
    """The ops and variables of one device.

    Attributes:
      device: name of the device in the graph; `(any)` where TensorFlow chooses.
      ops: number of ops on the device.
      variables: number of variables among the ops.
      variable_bytes: bytes of the variables; a variable of unknown shape counts 0.
      stages: `clone 0 stage 1`, or several, if clones have several devices and this is
        one of them; else ''.
      clones: numbers of the clones on the device, in the report of a model; else ().
      input_ops: number of ops that read or pass on batches.
      updates: number of ops that update variables; in the report of a graph also initializers.
      collective_bytes: bytes of known shape that collective ops on the device send to others.
    """

    device: str
    ops: int
    variables: int
    variable_bytes: int
    stages: str = ""
    clones: tuple[int, ...] = ()
    input_ops: int = 0
    updates: int = 0
    collective_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class TransferRow:
    """The tensors sent from one device to another in one step.

    Attributes:
      source: sending device.
      target: receiving device.
      tensors: how many tensors are sent.
      known_bytes: bytes of the tensors with a known shape.
      unknown: number of tensors whose shape is known only when the graph runs.
    """

    source: str
    target: str
    tensors: int
    known_bytes: int
    unknown: int


@dataclasses.dataclass(frozen=True)
class PlacementReport:
    """Devices and transfers in the order of their names; `str` formats them as a table.

    Attributes:
      devices: one row per device.
      transfers: one row per pair of devices that tensors are sent between.
      accumulation: in words, how many batches make a step, if clones take more than one; else ''.
      compilation: in words, how many ops of the clones XLA compiles, if it does; else ''.
      batch_norm: in words, over how many clones batch norms take their moments, if that is more
        than one; else ''.
      wire: in words, which values are rounded between processes, if any; else ''.
      precision: in words, how many ops of a model compute in 16 bits, if any do; else ''.
      layout: in words, how many ops of a model compute with channels first, if that is asked for;
        else ''.
    """

    devices: tuple[DeviceRow, ...]
    transfers: tuple[TransferRow, ...]
    accumulation: str = ""
    compilation: str = ""
    batch_norm: str = ""
    wire: str = ""
    precision: str = ""
    layout: str = ""

    def __str__(self) -> str:
        devices = [_cells("device", "ops", "variables", "bytes")]
        for row in self.devices:
            name = f"{row.device} ({row.stages})" if row.stages else row.device
            devices.append(_cells(name, row.ops, row.variables, row.variable_bytes))
        transfers = [_cells("from -> to, per step", "tensors", "bytes", "of unknown size")]
        for sent in self.transfers:
            name = f"{sent.source} -> {sent.target}"
            transfers.append(_cells(name, sent.tensors, sent.known_bytes, sent.unknown))
        if not self.transfers:
            transfers.append(_cells("nothing crosses between devices", 0, 0, 0))
        notes = (
            self.accumulation,
            self.precision,
            self.layout,
            self.batch_norm,
            self.compilation,
            self.wire,
        )
        lines = [note for note in notes if note]
        table = aligned([*devices, *transfers])
        for header in (len(devices), 0):
            table.insert(header + 1, "-" * len(table[header]))
        table.insert(len(devices) + 1, "")
        return "\n".join([*lines, "", *table] if lines else table)


def describe(graph_or_model: tf.Graph | DeployedModel) -> PlacementReport:
    """Reports where the ops of a graph, or of one step of a model, are placed.

    Devices are those named in the graph; an op without a device counts where the variable or op
    is that it is colocated with.  For a model only ops that its train op (or else its total loss)
    needs are counted, and lines of text describe its settings, see `PlacementReport`.

    Args:
      graph_or_model: a graph, or what `deploy` returned.

    Raises:
      ValueError: if the argument is of another kind.
    """
    settings: dict[str, Any] = {}
    clones: dict[str, list[int]] = {}
    if isinstance(graph_or_model, tf.Graph):
        ops = graph_or_model.get_operations()
        stages = stages_by_device(noted_parts(graph_or_model))
        settings = {"compilation": describe_compilation(ops)}
    elif isinstance(graph_or_model, DeployedModel):
        end = graph_or_model.train_op
        end = graph_or_model.total_loss if end is None else end
        parts = [clone.part for clone in graph_or_model.clones if clone.part is not None]
        stages = stages_by_device(parts)
        clones = _clones_by_device(graph_or_model)
        ops = sorted(
            graph_walk.ancestors([end.op], control_inputs=True), key=lambda op: str(op.name)
        )
        settings = describe_settings(graph_or_model, ops)
    else:
        raise ValueError(
            "graph_or_model must be a tf.Graph or a DeployedModel, "
            f"got {type(graph_or_model).__name__}"
        )
    devices = _devices_of(ops)
    rows = _device_rows(ops, devices, stages, clones), _transfer_rows(ops, devices)
    return PlacementReport(*rows, **settings)


def _devices_of(ops: Iterable[Any]) -> dict[str, str]:
    """Returns the device of each op by name, following resources and colocation."""
    devices: dict[str, str] = {}

    def device_of(op: Any) -> str:
        if op.name not in devices:
            devices[op.name] = op.device or ANY_DEVICE  # set first, as a loop may lead back here
            tied_to = _tied_to(op)
            if tied_to is not None:
                devices[op.name] = device_of(tied_to)
        return devices[op.name]

    for op in ops:
        device_of(op)
    return devices


def _tied_to(op: Any) -> Any:
    """Returns the op beside which TensorFlow must place `op`, or None."""
    for tensor in op.inputs:
        if tensor.dtype.base_dtype == tf.resource or internals.is_reference(tensor):
            return tensor.op
    if not op.device:
        groups = [group.decode() for group in op.colocation_groups()]
        names = [group.removeprefix("loc:@") for group in groups]
        return next((op.graph.get_operation_by_name(n) for n in names if n != op.name), None)
    return None


def _clones_by_device(model: DeployedModel) -> dict[str, list[int]]:
    """Returns the numbers of the clones on each device."""
    found = defaultdict(list)
    for number, places in enumerate(parts_by_clone(model.clones)):
        found[model.clones[places[0]].device].append(number)
    return found


def _device_rows(
    ops: Iterable[Any],
    devices: dict[str, str],
    stages: dict[str, str],
    clones: dict[str, list[int]],
) -> tuple[DeviceRow, ...]:
    on_device = defaultdict(list)
    for op in ops:
        on_device[devices[op.name]].append(op)
    rows = []
    for device, placed in sorted(on_device.items()):
        variables = [op for op in placed if placement.is_variable_op(op)]
        size = sum(map(placement.variable_bytes, variables))
        row = DeviceRow(
            device,
            len(placed),
            len(variables),
            size,
            stages=stages.get(device, ""),
            clones=tuple(clones.get(device, ())),
            input_ops=sum(bool(_INPUT_TYPES.search(op.type)) for op in placed),
            updates=sum(changes_variable(op.type) for op in placed),
            collective_bytes=sum(map(_collective_bytes, placed)),
        )
        rows.append(row)
    return tuple(rows)


def _collective_bytes(op: Any) -> int:
    """Returns the bytes that a collective op sends; 0 for other ops and unknown shapes."""
    if not _COLLECTIVE_TYPES.search(op.type):
        return 0
    return placement.tensor_bytes(op.inputs[0].shape, op.inputs[0].dtype) or 0


def _transfer_rows(ops: Iterable[Any], devices: dict[str, str]) -> tuple[TransferRow, ...]:
    sent: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for op in ops:
        for tensor in op.inputs:
            source, target = devices[tensor.op.name], devices[op.name]
            if source != target and ANY_DEVICE not in (source, target):
                sent[source, target][tensor.name] = tensor
    rows = []
    for (source, target), tensors in sorted(sent.items()):
        sizes = [placement.tensor_bytes(t.shape, t.dtype) for t in tensors.values()]
        known = [size for size in sizes if size is not None]
        rows.append(TransferRow(source, target, len(sizes), sum(known), len(sizes) - len(known)))
    return tuple(rows)


def _cells(name: str, *values: int | str) -> tuple[str, ...]:
    return (name, *(f"{value:,}" if isinstance(value, int) else value for value in values))

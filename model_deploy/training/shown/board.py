"""TensorBoard events of a run, besides the graph's summaries: numbers, options, pictures."""

import math
import re
import time
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from google.protobuf import struct_pb2

from model_deploy.checkpoints import Storage
from model_deploy.training.shown.events import EventsFile
from model_deploy.training.shown.progress import METRIC

# Key in metrics.jsonl -> tag.
_TAGS = {
    "loss": "losses/total",
    "loss_scale": "losses/scale",
    "left_out": "losses/updates_left_out",
    "learning_rate": "rates/learning_rate",
    "images_per_sec": "throughput/{unit}_per_sec",
    "secs_per_batch": "throughput/secs_per_batch",
    "waiting": "throughput/share_waiting_for_data",
    "staleness_median": "throughput/staleness_median",
    "staleness_max": "throughput/staleness_max",
}
_OTHER_CLONES = re.compile(r"clone_[1-9]\d*(_\d+)?/")
# Protocol buffer key of field 3 of the plugin's message, `session_start_info`.
_START_INFO_KEY = b"\x1a"


class Board:
    """The TensorBoard events of a run; the file is made when the first event is written.

    Args:
      train_dir: folder of the events.
      unit: name of the examples, in place of images.
      suffix: suffix of the file name.
      storage: the run's, told of events that cannot be written.
    """

    def __init__(
        self,
        train_dir: str,
        unit: str = "images",
        suffix: str = "",
        *,
        storage: Storage | None = None,
    ) -> None:
        self._unit = unit
        self._events = EventsFile(train_dir, suffix, storage or Storage())

    def add_log(self, entry: Mapping[str, Any]) -> None:
        """Writes the numbers of a log entry, under grouped tags."""
        known = {tag: entry[key] for key, tag in _TAGS.items() if key in entry}
        known |= {
            f"training/{key.removeprefix(METRIC)}": each
            for key, each in entry.items()
            if key.startswith(METRIC)
        }
        self._add_scalars(
            entry["step"],
            {tag.format(unit=self._unit): each for tag, each in known.items()},
        )

    def add_evaluation(self, step: int, found: Mapping[str, float]) -> None:
        """Writes the metrics of an evaluation."""
        self._add_scalars(step, {f"evaluation/{name}": each for name, each in found.items()})

    def add_summary(self, summary: bytes, step: int) -> None:
        """Writes the result of a summary op."""
        self._add(step, *tf.Summary.FromString(summary).value)

    def add_graph(self, graph: Any) -> None:
        """Writes the graph without the clones after the first, which look alike."""
        shown = graph_of_one_clone(graph.as_graph_def())
        self._events.add(tf.Event(wall_time=time.time(), graph_def=shown.SerializeToString()))

    def add_shares(self, step: int, shares: Mapping[str, Mapping[str, float]]) -> None:
        """Writes the parts of each worker's time, by worker and part, each between 0 and 1."""
        values = {
            f"share_of_{part}/{worker}": share
            for worker, parts in shares.items()
            for part, share in parts.items()
        }
        if values:
            self._add_scalars(step, values)

    def add_picture(self, tag: str, png: bytes, step: int) -> None:
        """Writes an image, of any size, as PNG."""
        image = tf.Summary.Image(encoded_image_string=png)
        self._add(step, tf.Summary.Value(tag=tag, image=image))

    def add_settings(self, settings: Mapping[str, Any]) -> None:
        """Writes the options of a run, as text and for TensorBoard's table of runs (HParams).

        Args:
          settings: numbers, strings and bools by name; None is left out of the table.
        """
        rows = "\n".join(f"| {name} | {value} |" for name, value in settings.items())
        table = f"| option | value |\n|---|---|\n{rows}"
        text = tf.make_tensor_proto(table.encode())
        self._add(
            0,
            tf.Summary.Value(tag="options", tensor=text, metadata=_metadata("text")),
            tf.Summary.Value(
                tag="_hparams_/session_start_info",
                tensor=tf.make_tensor_proto([0.0]),  # a dummy value: the content is in the metadata
                metadata=_metadata("hparams", _start_info(settings)),
            ),
        )

    def close(self) -> None:
        """Writes remaining events and closes the file."""
        self._events.close()

    def _add_scalars(self, step: int, values: Mapping[str, float]) -> None:
        known = {tag: value for tag, value in values.items() if math.isfinite(value)}
        self._add(
            step,
            *(tf.Summary.Value(tag=tag, simple_value=value) for tag, value in known.items()),
        )

    def _add(self, step: int, *values: Any) -> None:
        summary = tf.Summary(value=values)
        self._events.add(tf.Event(wall_time=time.time(), step=step, summary=summary))


def graph_of_one_clone(graph: Any) -> Any:
    """Returns a `GraphDef` without functions and without the ops of clones after the first.

    For display only: ops that used the removed ones lack inputs.
    """
    nodes = [node for node in graph.node if not _OTHER_CLONES.match(node.name)]
    names = {node.name for node in nodes}
    found = tf.GraphDef(versions=graph.versions)
    for node in nodes:
        copy = found.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(
            each for each in node.input if each.removeprefix("^").partition(":")[0] in names
        )
    return found


def _metadata(plugin: str, content: bytes = b"") -> Any:
    data = tf.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return tf.SummaryMetadata(plugin_data=data)


def _start_info(settings: Mapping[str, Any]) -> bytes:
    """Returns the message that tells TensorBoard's HParams plugin the options of a run.

    Its field 1 is encoded like `google.protobuf.Struct`, so the package tensorboard, which defines
    the message, is not needed.
    """
    kinds = (bool, int, float, str)
    values = {name: each for name, each in settings.items() if isinstance(each, kinds)}
    info = struct_pb2.Struct()
    info.update(values)
    content = info.SerializeToString(deterministic=True)
    return _START_INFO_KEY + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Encodes an integer of at least 0 as a protocol-buffer varint."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])

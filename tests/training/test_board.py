"""What TensorBoard gets of a run besides the summaries of its graph."""

import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import struct_pb2

from model_deploy.training.shown import board as board_lib
from model_deploy.training.shown.board import Board
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


def _events(folder):
    [path] = folder.glob("events.out.tfevents.*")
    return list(tf.train.summary_iterator(str(path)))


def _values(folder):
    return {
        (value.tag, event.step): value for event in _events(folder) for value in event.summary.value
    }


def test_numbers_and_graph(tmp_path):
    """Loss, rate, speed and scores are under tags that TensorBoard shows in groups. Of the graph
    the first clone is there and the second is not; no input is missing.
    """
    run_halving(
        tmp_path,
        3,
        log_every_n_steps=1,
        learning_rate=0.5,
        unit="texts",
        evaluate=lambda path: {"accuracy": 0.25},
        eval_every_n_steps=3,
    )
    values = {key: value.simple_value for key, value in _values(tmp_path).items()}
    assert [values["losses/total", step] for step in (1, 2, 3)] == [1 / 2, 1 / 8, 1 / 32]
    assert values["rates/learning_rate", 2] == 0.5
    assert values["throughput/texts_per_sec", 3] > 0
    assert values["throughput/secs_per_batch", 3] > 0
    assert values["evaluation/accuracy", 3] == 0.25
    # What is not known is not there, and what was there before is.  A slow run may know its shares.
    tags = [tag for tag, _ in values if not tag.startswith("share_of_")]
    assert not [tag for tag in tags if "waiting" in tag or "scale" in tag]
    assert values["total_loss_1", 3] == 1 / 32
    [content] = [event.graph_def for event in _events(tmp_path) if event.graph_def]
    nodes = tf.GraphDef.FromString(content).node
    names = {node.name for node in nodes}
    assert any(name.startswith("clone_0/") for name in names)
    assert not any(name.startswith("clone_1/") for name in names)
    inputs = {each.lstrip("^").split(":")[0] for node in nodes for each in node.input}
    assert inputs <= names


def test_settings_and_pictures(tmp_path):
    """Settings are a table as text, and what the HParams plugin reads at the start of a run. A
    picture is kept as it is.
    """
    board = Board(str(tmp_path))
    settings = {"rate": 0.5, "model": "lenet", "fast": True, "steps": 300, "seed": None}
    board.add_settings(settings)
    board.add_picture("evaluation/confusion_matrix", b"png", 7)
    board.close()
    values = {tag: value for (tag, _), value in _values(tmp_path).items()}
    assert values["evaluation/confusion_matrix"].image.encoded_image_string == b"png"
    assert values["options"].metadata.plugin_data.plugin_name == "text"
    [table] = values["options"].tensor.string_val
    assert b"| rate | 0.5 |\n| model | lenet |" in table
    data = values["_hparams_/session_start_info"].metadata.plugin_data
    assert data.plugin_name == "hparams"
    # Field 3, a message; its length in two bytes or one.
    assert data.content[0] == 3 << 3 | 2
    start = struct_pb2.Struct.FromString(data.content[2:])
    assert dict(start) == {"rate": 0.5, "model": "lenet", "fast": True, "steps": 300.0}
    assert len(data.content) == 2 + data.content[1]


def test_hparams_are_read_by_tensorboard():
    """The plugin's own message, where the package is installed, has the same values."""
    plugin = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    settings = {f"option_{i}": "x" * i for i in range(30)}
    content = board_lib._start_info(settings)
    found = plugin.HParamsPluginData.FromString(content).session_start_info.hparams
    assert {name: value.string_value for name, value in found.items()} == settings


def test_varint():
    """Seven bits a byte, the lowest first; the example of the format's documentation is 300."""
    found = [board_lib._varint(number) for number in (0, 127, 128, 300)]
    assert found == [b"\x00", b"\x7f", b"\x80\x01", b"\xac\x02"]

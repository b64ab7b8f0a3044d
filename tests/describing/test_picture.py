"""The picture of a deployment shows what its report says."""

import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    DeviceRow,
    PlacementReport,
    TransferRow,
    deploy,
    describe,
    draw_deployment,
)
from tests import harness

pytestmark = pytest.mark.one_mode

CPU, GPU0, GPU1 = "/device:CPU:0", "/device:GPU:0", "/device:GPU:1"
DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def _draw(report, folder):
    return ET.parse(draw_deployment(report, folder / "deployment.svg")).getroot()


def _texts(picture):
    return [text.text for text in picture.iter(f"{SVG}text")]


def _arrows(picture):
    return [path for path in picture.iter(f"{SVG}path") if path.get("marker-end")]


def _model(**settings):
    """A model whose images, float32 [8, 5], come from a pipeline, with weights [5, 3]."""
    config = DeploymentConfig(**settings)
    with tf.device(config.inputs_device()):
        dataset = tf.data.Dataset.from_tensors(tf.ones([8, 5])).repeat()
        images = tf.data.make_one_shot_iterator(dataset)

    def model_fn():
        weights = tf.get_variable("weights", [5, 3], initializer=tf.zeros_initializer())
        tf.losses.add_loss(tf.reduce_sum(tf.matmul(images.get_next(), weights)))

    return deploy(config, model_fn, optimizer=harness.sgd())


def test_one_process(tmp_path):
    """Inputs and updates are counted on the CPU, each clone on its device. Each GPU gets its 160
    bytes of images and 60 of weights, and returns gradient and loss.
    """
    report = describe(_model(num_clones=2))
    rows = {row.device: row for row in report.devices}
    assert (rows[GPU0].clones, rows[GPU1].clones) == ((0,), (1,))
    assert rows[CPU].clones == ()
    # Two devices take turns on one pipeline of three ops: its tensors, `repeat`, the iterator.
    assert rows[CPU].input_ops >= 2 + 1
    assert rows[GPU0].input_ops == rows[GPU0].updates == 0
    # Of the weights and of the global step, if the train op counts it.
    assert rows[CPU].updates in (1, 2)
    picture = _draw(report, tmp_path)
    texts = _texts(picture)
    assert {"this process", "inputs", "clone 0", "clone 1"} <= set(texts)
    assert texts.count(f"{8 * 5 * 4 + 5 * 3 * 4} B") == 2
    assert texts.count(f"{5 * 3 * 4 + 4} B") == 2
    assert [arrow.get("class") for arrow in _arrows(picture)] == ["value"] * 2 + ["gradient"] * 2


def test_several_processes(tmp_path):
    """Each process has a frame of its own; what goes to the servers stands beside an arrow, and
    sums of all-reduce stand in the devices.
    """
    report = describe(_model(num_clones=2, num_ps_tasks=1, num_replicas=2))
    picture = _draw(report, tmp_path)
    assert {"ps 0", "worker 0"} <= set(_texts(picture))
    frames = [each for each in picture.iter(f"{SVG}rect") if each.get("class") == "process"]
    assert len(frames) == 2
    assert len(_arrows(picture)) == len(report.transfers)
    # Copies of the weights lie on the GPUs, which sum 60 bytes of gradients by collective ops.
    with tf.Graph().as_default():
        report = describe(_model(num_clones=2, all_reduce=True))
    rows = {row.device: row for row in report.devices}
    assert rows[GPU0].collective_bytes == rows[GPU1].collective_bytes >= 5 * 3 * 4
    assert rows[GPU0].updates == rows[GPU1].updates > 0
    words = f"all-reduce of {rows[GPU0].collective_bytes} B"
    assert _texts(_draw(report, tmp_path)).count(words) == 2


@pytest.mark.usefixtures("variable_kind")
def test_what_counts_as_an_update(graph):
    """Ops that change a variable count, by whatever way; `tf.scatter_nd` makes a new tensor."""
    with tf.device(CPU):
        variable = tf.get_variable("v", [3, 2], initializer=tf.zeros_initializer())
        before = sum(row.updates for row in describe(graph).devices)
        tf.scatter_nd([[0]], [1.0], [3])
        assert sum(row.updates for row in describe(graph).devices) == before == 1  # initialized
        tf.assign_add(variable, tf.ones([3, 2]))
        tf.scatter_update(variable, [0], tf.ones([1, 2]))
        gradient = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
        optimizer = tf.train.AdagradOptimizer(0.1)
        optimizer.apply_gradients([(gradient, variable)])
    after = sum(row.updates for row in describe(graph).devices)
    assert after == before + 2 + 1 + 1  # and the optimizer's slot is initialized


def test_unknown_sizes(graph, tmp_path):
    """Tensors whose shape is not known are counted, and beside them the bytes of the others. All
    ops of a graph count, those of unknown place included.
    """
    images = tf.placeholder(tf.float32, [None, 2])
    with tf.device(CPU):
        doubled, one = images * 2.0, tf.constant(1.0)
    with tf.device(GPU0):
        _ = doubled + one
    report = describe(graph)
    assert sum(row.ops for row in report.devices) == len(graph.get_operations())
    assert report.devices[0] == DeviceRow("(any)", 1, 0, 0)
    assert report.transfers == (TransferRow(CPU, GPU0, 2, 4, 1),)
    texts = _texts(_draw(report, tmp_path))
    at = texts.index("4 B")
    assert texts[at + 1] == "1 of unknown size"
    assert "1 ops go where TensorFlow puts them" in texts


SERVER, FAR = "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:GPU:0"
EDGES = {
    "down": ([CPU, GPU0], (CPU, GPU0), "value"),
    "up": ([CPU, GPU0], (GPU0, CPU), "gradient"),
    "right": ([GPU0, GPU1], (GPU0, GPU1), "call"),
    "left": ([GPU0, GPU1], (GPU1, GPU0), "call"),
    "past a row": ([SERVER, "/job:worker/task:0/device:CPU:0", FAR], (SERVER, FAR), None),
}


@pytest.mark.parametrize(("devices", "ends", "kind"), EDGES.values(), ids=EDGES)
def test_each_transfer_is_shown(tmp_path, devices, ends, kind):
    """A transfer is an arrow between its boxes, or else a line of text; the words say it, too."""
    rows = tuple(DeviceRow(device, 1, 0, 0) for device in devices)
    picture = _draw(PlacementReport(rows, (TransferRow(*ends, 1, 2500, 0),)), tmp_path)
    assert [arrow.get("class") for arrow in _arrows(picture)] == [kind] * (kind is not None)
    words = f"{ends[0]} to {ends[1]}: 2.5 kB"
    assert ("2.5 kB" if kind else words) in _texts(picture)
    assert words in picture.findtext(f"{SVG}desc")


def test_everything_is_in_the_frame(tmp_path):
    """Eight GPUs that all send to their neighbours stay inside of the picture."""
    devices = [CPU, *(f"/device:GPU:{i}" for i in range(8))]
    edges = [TransferRow(CPU, gpu, 3, 10**9, 2) for gpu in devices[1:]]
    pairs = zip(devices[1:], devices[2:] + devices[1:2], strict=True)
    edges += [TransferRow(source, target, 1, 0, 1) for source, target in pairs]
    rows = tuple(DeviceRow(device, 5, 2, 8, clones=(i,)) for i, device in enumerate(devices))
    picture = _draw(PlacementReport(rows, tuple(edges)), tmp_path)
    width, height = map(float, picture.get("viewBox").split()[2:])
    for item in picture.iter():
        if item.get("x") is not None:
            assert 0 <= float(item.get("x")) + float(item.get("width", 0)) <= width
            assert 0 <= float(item.get("y")) + float(item.get("height", 0)) <= height
    for arrow in _arrows(picture):
        for letter, numbers in re.findall(r"([MHV])([\d. ]+)", arrow.get("d")):
            limit = {"M": (width, height), "H": (width,), "V": (height,)}[letter]
            places = map(float, numbers.split())
            assert all(0 <= at <= most for at, most in zip(places, limit, strict=True))
    assert len(_arrows(picture)) == len(edges)


@pytest.mark.parametrize(
    ("device", "name", "message"),
    [
        (CPU, "a.png", r"path must end in \.svg, got .*a\.png"),
        ("(any)", "a.svg", r"report must have a device, got 1 row\(s\) without one"),
    ],
)
def test_what_cannot_be_drawn(tmp_path, device, name, message):
    """What cannot be drawn is refused, and leaves no file."""
    with pytest.raises(ValueError, match=message):
        draw_deployment(PlacementReport((DeviceRow(device, 1, 0, 0),), ()), tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_the_picture_of_the_docs(tmp_path, monkeypatch, capsys):
    """The program in docs/deployment.md draws the picture there, but for the number of ops."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "deployment.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    [program] = [each for each in programs if "draw_deployment" in each]
    exec(compile(program, "program", "exec"), {})
    assert capsys.readouterr().out == "deployment.svg\n"

    def without_ops(path):  # which TensorFlow's versions build differently
        return re.sub(r">(\w+:\d+): [\d,]+ ops<", r">\1<", path.read_text())

    drawn = without_ops(tmp_path / "deployment.svg")
    assert drawn == without_ops(DOCS / "images" / "deployment.svg")
    # LeNet has 3,274,634 parameters; a batch is 32 images of 784 numbers, and labels.
    images, labels, parameters = 32 * 784 * 4, 32 * 8, 3_274_634 * 4
    for size in (images + labels + parameters, parameters + 4):
        assert drawn.count(f">{size / 1e6:.1f} MB<") == 2

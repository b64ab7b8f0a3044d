"""Notebooks whose cells are programs of TensorFlow 1."""

import os
import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = [pytest.mark.slow, pytest.mark.one_mode]
ROOT = pathlib.Path(__file__).parents[2]


def run_cells(folder, *cells):
    """Runs cells in a new kernel; returns what each wrote to standard output and error."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    client = nbclient.NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    client.execute(env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)})
    return ["".join(o.get("text", "") for o in c.outputs) for c in notebook.cells], [
        [o.get("ename") for o in c.outputs if o.output_type == "error"] for c in notebook.cells
    ]


def test_cells_are_a_program_of_tensorflow_1(tmp_path):
    """Cells get old names and our packages, other modules do not, and a gone name is one line."""
    texts, errors = run_cells(
        tmp_path,
        "%load_ext model_deploy.tf1",
        "%tensorflow_version 1.x",
        "import tensorflow as tf\nslim = tf.contrib.slim\nfrom nets import lenet",
        "x = tf.placeholder(tf.float32, [None, 28, 28, 1])\n"
        "logits, _ = lenet.lenet(x)\n"
        "print(tf.trainable_variables()[0].op.name, logits.shape.as_list())",
        "import sys; print(hasattr(sys.modules['tensorflow'], 'contrib'))",
        "tf.contrib.no_such_part",
    )
    assert texts[1].startswith("%tensorflow_version 1.x changes nothing")
    assert texts[3] == "LeNet/conv1/weights [None, 10]\n"
    assert texts[4] == "False\n"
    assert errors[:5] == [[]] * 5
    assert "error: " in texts[5]
    assert "Traceback" not in texts[5]


def test_a_run_shows_a_bar(tmp_path):
    """A run in a cell redraws one line, to the last step."""
    texts, errors = run_cells(
        tmp_path,
        "from model_deploy.training.shown.progress import Progress\n"
        "from model_deploy.training.steps.report import StepReport\n"
        "with Progress(0, 3, 8) as progress:\n"
        "    for step in (1, 2, 3):\n"
        "        report = StepReport(step, 0.5, 0.1, 0.0, -1, 0, ())\n"
        "        progress.add(report)\n"
        "        progress.show(report)\n",
    )
    assert errors == [[]]
    assert "3/3" in texts[0]
    assert "loss 0.5000" in texts[0]
    assert texts[0].count("\n") <= 1

"""Notebooks whose cells are programs of TensorFlow 1."""

import os
import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = [pytest.mark.slow, pytest.mark.one_mode]
ROOT = pathlib.Path(__file__).parents[2]


def run_cells(folder, cells):
    """Runs cells in a new kernel; returns what each wrote, and the names of its errors."""
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


_CELLS = [
    # A run in a cell redraws one line, to the last step.
    "from model_deploy.training.shown.progress import Progress\n"
    "from model_deploy.training.steps.report import StepReport\n"
    "with Progress(0, 3, 8) as progress:\n"
    "    for step in (1, 2, 3):\n"
    "        report = StepReport(step, 0.5, 0.1, 0.0, -1, 0, ())\n"
    "        progress.add(report)\n"
    "        progress.show(report)\n",
    "%load_ext model_deploy.tf1",
    "%tensorflow_version 1.x",
    "import tensorflow as tf\nslim = tf.contrib.slim\nfrom nets import lenet",
    "x = tf.placeholder(tf.float32, [None, 28, 28, 1])\n"
    "logits, _ = lenet.lenet(x)\n"
    "print(tf.trainable_variables()[0].op.name, logits.shape.as_list())",
    "import sys; print(hasattr(sys.modules['tensorflow'], 'contrib'))",
    "tf.contrib.no_such_part",
]


def test_cells_are_a_program_of_tensorflow_1(tmp_path):
    """Cells get old names and our packages, other modules do not, and a gone name is one line; a
    run shows a bar.
    """
    (bar, _, version, _, layer, others, gone), errors = run_cells(tmp_path, _CELLS)
    assert errors[:-1] == [[]] * 6
    assert "3/3" in bar
    assert "loss 0.5000" in bar
    assert bar.count("\n") <= 1
    assert version.startswith("%tensorflow_version 1.x changes nothing")
    assert layer == "LeNet/conv1/weights [None, 10]\n"
    assert others == "False\n"
    assert "error: " in gone
    assert "Traceback" not in gone

"""Runs whose every file is on a file system of TensorFlow's: `ram://`, which is in memory."""

import json
import uuid

import pytest
import tensorflow.compat.v1 as tf

import eval_image_classifier
import export_image_classifier
import train_image_classifier
from model_deploy import file_systems
from model_deploy.runs import read_metrics
from tests.inputs import files


@pytest.fixture
def remote():
    """A new folder of TensorFlow's file system in memory."""
    folder = f"ram://{uuid.uuid4().hex}"
    tf.io.gfile.makedirs(folder)
    return folder


def run(program, *arguments):
    """Runs a command in this process, in a graph of its own."""
    with tf.Graph().as_default():
        assert program.main([program.__name__, *arguments]) == 0


def train(folder, steps, *arguments):
    """Trains up to a step, with a checkpoint every two."""
    flags = [f"--train_dir={folder}", f"--max_number_of_steps={steps}", "--save_interval_steps=2"]
    run(train_image_classifier, *flags, "--log_every_n_steps=1", "--batch_size=8", *arguments)


def losses(folder):
    """The loss of each step in `metrics.jsonl`."""
    return {each["step"]: each["loss"] for each in read_metrics(folder) if "loss" in each}


@pytest.mark.slow
@pytest.mark.one_mode
def test_run_is_trained_resumed_evaluated_and_exported(remote, tmp_path):
    """Everything that a run writes and reads may be elsewhere; resumed, it makes the same steps."""
    files.write_examples(tmp_path / "data", [30, 34], image_shape=(28, 28, 3), split="train")
    files.write_examples(tmp_path / "data", [20], image_shape=(28, 28, 3), split="test")
    for path in (tmp_path / "data").iterdir():
        with tf.io.gfile.GFile(f"{remote}/data/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    data = ["--dataset_name=tfrecord", "--model_name=lenet", f"--dataset_dir={remote}/data"]
    train(tmp_path / "whole", 6, *data)
    train(f"{remote}/run", 4, *data)
    train(f"{remote}/run", 6, *data)
    assert losses(f"{remote}/run") == losses(tmp_path / "whole")
    assert sorted(losses(f"{remote}/run")) == [1, 2, 3, 4, 5, 6]
    names = file_systems.names_in(f"{remote}/run")
    assert {"checkpoint", "model.ckpt-6.index", "metrics.jsonl", "options.yaml"} <= set(names)
    assert any(name.startswith("events.out.tfevents") for name in names)

    run(eval_image_classifier, f"--train_dir={remote}/run")
    result = json.loads(file_systems.read_text(f"{remote}/run/eval_test/evaluation.json"))
    assert (result["global_step"], result["examples"]) == (6, 20)

    run(
        export_image_classifier,
        *(f"--train_dir={remote}/run", f"--output_dir={remote}/model"),
        f"--output_file={remote}/frozen/graph.pb",
    )
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.load(session, ["serve"], f"{remote}/model")
    assert "serving_default" in loaded.signature_def
    assert file_systems.facts_of(f"{remote}/frozen/graph.pb").size > 10_000


@pytest.mark.slow
@pytest.mark.one_mode
def test_checkpoint_is_fine_tuned(remote):
    """`--checkpoint_path` may name a folder or a checkpoint elsewhere."""
    train(f"{remote}/first", 2)
    for place in ("first", "first/model.ckpt-2"):
        target = f"{remote}/{place.replace('/', '_')}_tuned"
        train(target, 2, f"--checkpoint_path={remote}/{place}")
        assert sorted(losses(target)) == [1, 2]
    tf.io.gfile.remove(f"{remote}/first/checkpoint")  # as a move that was cut off may leave it
    train(f"{remote}/first", 3)
    assert sorted(losses(f"{remote}/first")) == [1, 2, 3]

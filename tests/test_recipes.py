"""Each packaged recipe is one that its command takes, and trains."""

import functools
import importlib.util
import math
import re
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf
import yaml

import train_image_classifier as script
from model_deploy import slim, training
from model_deploy.commands import parse_options
from model_deploy.inputs.datasets import dataset
from model_deploy.runs import read_metrics
from nets import nets_factory
from tests.nets import few_blocks, graphs

ROOT = Path(__file__).parents[1]
RECIPES = {path.name: path for path in sorted((ROOT / "model_deploy" / "recipes").iterdir())}
TEXTS = ("text_lstm.yaml",)
IMAGES = [name for name in RECIPES if name not in TEXTS]
PAGE = (ROOT / "docs" / "recipes.md").read_text()


def _settings(name):
    return yaml.safe_load(RECIPES[name].read_text())


def _text_classifier():
    """The example, which is in no package."""
    path = ROOT / "examples" / "text_classifier.py"
    spec = importlib.util.spec_from_file_location("text_classifier_of_recipes", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_lists_all_recipes():
    """The table names each file, with its network; the comments of each say what is known."""
    rows = dict(re.findall(r"^\| `(\w+\.yaml)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows.keys() == RECIPES.keys()
    for name, network in rows.items():
        assert _settings(name).get("model_name", "text_lstm") == network
        assert re.search(r"^# (The settings .*)?Accuracy: \w", RECIPES[name].read_text(), re.M)
        assert f"--config=recipes/{name}" in RECIPES[name].read_text()


@pytest.mark.parametrize("name", IMAGES)
def test_settings_are_options(name, tmp_path, monkeypatch):
    """From any folder a recipe gives just its settings, each one that the command has; so has it
    all of the commands in the recipe's comments.
    """
    monkeypatch.chdir(tmp_path)
    found = parse_options(["train", f"--config=recipes/{name}"], script.TrainOptions)
    for field, value in _settings(name).items():
        assert getattr(found, field) == value
    assert found.dataset_name in dataset.dataset_names()
    commands = re.findall(r"^# +(train_image_classifier .*)$", RECIPES[name].read_text(), re.M)
    assert commands
    for command in commands:
        options = parse_options(command.split(), script.TrainOptions)
        assert options.model_name == found.model_name


def test_epochs_of_the_recipes():
    """Steps are the epochs that the comments say: of 1,281,167 images by 256, and 3,320 by 32."""
    imagenet = _settings("imagenet_resnet_v1_50.yaml")
    update = imagenet["num_clones"] * imagenet["batch_size"]
    assert update == imagenet["learning_rate_batch_size"] == 256
    assert imagenet["max_number_of_steps"] == 90 * (1_281_167 // update)
    assert imagenet["eval_every_n_steps"] == 5 * (1_281_167 // update)
    flowers = _settings("flowers_mobilenet_v2.yaml")
    assert flowers["max_number_of_steps"] == 10 * (3320 // flowers["global_batch_size"])
    cifarnet = _settings("cifar10_cifarnet.yaml")
    examples = cifarnet["max_number_of_steps"] * cifarnet["global_batch_size"]
    assert examples == 256 * 50_000
    resnet = _settings("cifar10.yaml")
    examples = resnet["max_number_of_steps"] * resnet["global_batch_size"]
    assert round(examples / 50_000) == 28


def _write_checkpoint(settings, image_size):
    """A checkpoint of the network with ImageNet's 1,001 classes, where the recipe looks for it."""
    with tf.Graph().as_default() as graph, graphs.session(graph) as session:
        network = nets_factory.get_network_fn(settings["model_name"], 1001, is_training=True)
        network(tf.zeros([2, image_size, image_size, 3]))
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(slim.get_model_variables())
        saver.save(session, settings["checkpoint_path"])


# Smaller than the networks want, so that the steps are quick; and what the data set is not.
OVERRIDES = {
    "cifar10.yaml": (32, ["--global_batch_size=4"]),
    "cifar10_cifarnet.yaml": (32, ["--global_batch_size=2", "--num_clones=1"]),
    "flowers_inception_v3.yaml": (128, ["--global_batch_size=2", "--num_clones=1"]),
    "flowers_mobilenet_v2.yaml": (64, ["--global_batch_size=2", "--num_clones=1"]),
    "imagenet_resnet_v1_50.yaml": (64, ["--batch_size=2", "--num_clones=1", "--labels_offset=0"]),
}


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("name", IMAGES)
def test_trains_on_images(name, tmp_path, monkeypatch, capsys):
    """From a folder of the user's, four steps of small batches give losses, and a checkpoint."""
    monkeypatch.chdir(tmp_path)
    # Few images: the run ends with an evaluation of all of them.
    few = functools.partial(dataset._BUILDERS["synthetic"], num_examples=8)
    monkeypatch.setitem(dataset._BUILDERS, "synthetic", few)
    few_blocks.shorten(monkeypatch)
    few_blocks.shorten_mobilenet_v2(monkeypatch)
    settings, (size, overrides) = _settings(name), OVERRIDES[name]
    if "checkpoint_path" in settings:
        _write_checkpoint(settings, size)
    command = [
        "train_image_classifier",
        f"--config=recipes/{name}",
        "--train_dir=run",
        "--dataset_name=synthetic",
        f"--train_image_size={size}",
        "--clone_on_cpu",
        "--max_number_of_steps=4",
        "--log_every_n_steps=1",
        *overrides,
    ]
    assert script.main(command) == 0, capsys.readouterr().err
    assert f"settings of the packaged recipes/{name}" in capsys.readouterr().out.splitlines()
    losses = [each["loss"] for each in read_metrics("run") if "loss" in each]
    assert len(losses) == 4
    assert all(loss is not None and math.isfinite(loss) for loss in losses)
    assert Path("run/model.ckpt-4.index").exists()
    written = yaml.safe_load(Path("run/options.yaml").read_text())
    given = {flag.lstrip("-").split("=")[0] for flag in command[2:]}
    for field, value in settings.items():
        assert field in given or str(written[field]) == str(value), field


@pytest.mark.slow
@pytest.mark.one_mode
def test_trains_on_texts(tmp_path, monkeypatch, capsys):
    """The recipe for texts reaches the accuracy that its comments say, on the example's data."""
    monkeypatch.chdir(tmp_path)
    example = _text_classifier()
    command = ["text_classifier", "--config=recipes/text_lstm.yaml", "--train_dir=run"]
    assert example.main(command) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    found = re.search(r"^test accuracy at step 300: ([\d.]+)$", out, re.MULTILINE)
    assert float(found[1]) >= 0.97  # TensorFlow's versions differ in how they add up


@pytest.mark.slow
@pytest.mark.one_mode
def test_the_page_s_command(tmp_path, monkeypatch, capsys):
    """The command in docs/recipes.md trains, on as many clones as the machine gives."""
    monkeypatch.chdir(tmp_path)
    [line] = re.findall(r"```bash\n(.*?)\n```", PAGE, re.DOTALL)
    assert script.main(line.split()) == 0, capsys.readouterr().err
    assert len(training.checkpoints_in("tried_run")) == 1

"""The export command: its outputs elsewhere, and its flags."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import export_image_classifier as script
import train_image_classifier
from model_deploy import inputs, training
from model_deploy.commands import command_line
from nets import nets_factory
from tests.inputs.files import encode

# Of values up to 1, and of the largest value beyond: a float32 has about 7 digits.
TOLERANCE = 1e-6

# What anyone does with a SavedModel: TensorFlow, eager, and nothing of this project.
LOAD = """
import sys
import numpy as np
import tensorflow as tf

assert tf.executing_eagerly()
for folder in sys.argv[1:]:
    loaded = tf.saved_model.load(f"{folder}/model")
    requests = np.load(f"{folder}/requests.npz")
    for key in requests.files:
        name = "serving_default" if key == "images" else key
        answers = loaded.signatures[name](**{key: tf.constant(requests[key])})
        answers = {name: np.array(value) for name, value in answers.items()}
        if "labels" in answers:
            answers["labels"] = answers["labels"].astype(str)
        np.savez(f"{folder}/{key}.npz", **answers)
assert not [name for name in sys.modules if name.split(".")[0] in ("model_deploy", "tf_slim")]
"""


def _blocks(language):
    text = (Path(script.__file__).parent / "docs" / "export.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _run_documented_commands(folder):
    commands = {
        "train_image_classifier": train_image_classifier.main,
        "export_image_classifier": script.main,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in "".join(_blocks("bash")).splitlines():
            arguments = shlex.split(line)
            assert commands[arguments[0]](arguments) == 0
        exec(compile(_blocks("python")[0], "export.md", "exec"), {})
        assert os.path.exists("from_python/saved_model.pb")


def _run(capsys, *arguments):
    code = script.main(["export_image_classifier", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _main(*arguments):
    assert script.main(["export_image_classifier", *map(str, arguments)]) == 0


def _random_checkpoint(path, model_name, shape, num_classes):
    """A checkpoint with weights that keep the size of what goes through the layers."""
    random = np.random.RandomState(1)
    with tf.Graph().as_default(), tf.Session() as session:
        network_fn = nets_factory.get_network_fn(model_name, num_classes)
        images = tf.placeholder(tf.float32, [None, *shape[1:]])
        logits, _ = network_fn(images)
        session.run(tf.global_variables_initializer())
        for variable in tf.trainable_variables():
            if variable.shape.rank > 1:
                *sizes, last = variable.shape.as_list()
                fan_in = np.prod(sizes if last > 1 else sizes[:-1])  # 1 in depthwise filters
                values = random.normal(0, np.sqrt(2 / fan_in), [*sizes, last])
                variable.load(values.astype(np.float32), session)
        saver = tf.train.Saver(save_relative_paths=True)
        saver.save(session, str(path), write_meta_graph=False)
        requests = random.uniform(-1, 1, shape).astype(np.float32)
        return requests, session.run(logits, {images: requests})


def _digits(train_dir):
    """What the evaluation computes of a run: prepared images, raw ones, and the logits."""
    arguments = ["", f"--train_dir={train_dir}", "--output_dir=none"]
    options = command_line.parse_options(arguments, script.ExportOptions, saved_in="train_dir")
    assert options.moving_average_decay is not None
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = training.get_dataset(options, "test")
        classifier = training.Classifier.of(options, dataset, nets_factory.get_network_fn)
        batch = next(inputs.eval_batches(dataset, **classifier.input_options))
        logits, _ = classifier.network_fn(is_training=False)(batch["image"])
        saver = tf.train.Saver(training.averages_to_restore())
        saver.restore(session, tf.train.latest_checkpoint(options.train_dir))
        session.run(tf.tables_initializer())
        images, logits = session.run([batch["image"], logits])
    return images, dataset.source.arrays[0][: len(images)], logits


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Exports that TensorFlow alone has loaded: their folders, and the logits of a session.

    The commands and programs of docs/export.md have run, too.
    """
    root = tmp_path_factory.mktemp("exported")
    _run_documented_commands(root)
    prepared, raw, logits = _digits(root / "digits_run")
    encoded = np.array([encode(image) for image in raw])
    digits, digits_raw = root / "digits", root / "digits_raw"
    expected = {digits: logits, digits_raw: logits}
    for folder, images in ((digits, prepared), (digits_raw, raw.astype(np.float32))):
        folder.mkdir()
        np.savez(folder / "requests.npz", images=images, encoded_images=encoded)
    (digits / "model").symlink_to(root / "digits_model")
    (digits_raw / "frozen.pb").symlink_to(root / "digits.pb")
    networks = {
        "mobilenet_v1": ([2, 32, 32, 3], []),
        "s3dg": ([1, 16, 32, 32, 3], ["--is_video_model"]),
    }
    for name, (shape, flags) in networks.items():
        folder = root / name
        images, expected[folder] = _random_checkpoint(folder / "m.ckpt", name, shape, 5)
        np.savez(folder / "requests.npz", images=images)
        outputs = (f"--output_dir={folder / 'model'}", f"--output_file={folder / 'frozen.pb'}")
        known = (f"--model_name={name}", "--num_classes=5", "--image_size=32")
        _main(f"--checkpoint_path={folder / 'm.ckpt'}", *known, *outputs, *flags)
    saved = [str(folder) for folder in expected if (folder / "model").exists()]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", "".join([*_blocks("python")[1:], LOAD]), *saved],
        check=False,
        capture_output=True,
        text=True,
        cwd=root,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\(2, 10\)\n\d\n", done.stdout)
    return {folder.name: (folder, logits) for folder, logits in expected.items()}


NETWORKS = [("mobilenet_v1", "images"), ("s3dg", "images")]
KEYS = ("images", "encoded_images")


def _check(answers, logits):
    scale = np.abs(logits).max()
    assert np.ptp(logits) > 0.1 * scale
    np.testing.assert_allclose(answers["logits"], logits, rtol=0, atol=TOLERANCE * max(1.0, scale))
    odds = np.exp(logits.astype(np.float64))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answers["probabilities"], probabilities, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(answers["classes"], logits.argmax(axis=1))


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(("name", "key"), [*(("digits", key) for key in KEYS), *NETWORKS])
def test_eager_tensorflow_gives_the_same(exported, name, key):
    """A SavedModel loaded by TensorFlow alone answers what the session gave.

    So do moving averages, encoded images, and videos.
    """
    folder, logits = exported[name]
    answers = np.load(folder / f"{key}.npz")
    _check(answers, logits)
    if name == "digits":
        assert list(answers["labels"]) == [str(digit) for digit in logits.argmax(axis=1)]


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(("name", "key"), [*(("digits_raw", key) for key in KEYS), *NETWORKS])
def test_frozen_graphs_give_the_same(exported, name, key):
    """A frozen graph answers what the session gave, for images as they are in files, too."""
    folder, logits = exported[name]
    graph_def = tf.GraphDef.FromString((folder / "frozen.pb").read_bytes())
    tf.import_graph_def(graph_def, name="")
    scope = "encoded/" if key == "encoded_images" else ""
    fetches = {name: f"{scope}{name}:0" for name in ("logits", "probabilities", "classes")}
    # Without the optimizer, which multiplies constants with each other and so rounds otherwise:
    # with it, networks with batch normalization differ by up to twice as much.
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Session(config=config) as session:
        requests = np.load(folder / "requests.npz")[key]
        _check(session.run(fetches, {f"{scope}input:0": requests}), logits)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a checkpoint of LeNet for digits."""
    folder = tmp_path_factory.mktemp("saved")
    _random_checkpoint(folder / "model.ckpt-7", "lenet", [1, 28, 28, 1], 10)
    return folder


@pytest.fixture
def checkpoint(tmp_path, saved):
    """A checkpoint of LeNet for digits, in a folder of the test's own."""
    return shutil.copytree(saved, tmp_path / "start") / "model.ckpt-7"


@pytest.mark.slow
def test_options_of_the_run(tmp_path, checkpoint, capsys):
    """The run's options are reused, but not those that mean another thing in an export."""
    options = train_image_classifier.TrainOptions(
        batch_size=8, train_image_size=32, checkpoint_path="elsewhere"
    )
    _random_checkpoint(tmp_path / "run" / "model.ckpt-9", "lenet", [1, 32, 32, 1], 10)
    command_line.write_options(options, tmp_path / "run")
    code, out, err = _run(
        capsys, f"--train_dir={tmp_path / 'run'}", f"--output_file={tmp_path / 'x.pb'}"
    )
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == f"lenet: {tmp_path / 'run' / 'model.ckpt-9'} -> {tmp_path / 'x.pb'}"
    assert lines[1].startswith(
        "  serving_default: images (input:0) float32 [None, 32, 32, 1] -> "
        "logits (logits:0) float32 [None, 10], "
    )
    assert lines[2].startswith("  encoded_images: encoded_images (encoded/input:0) string [None]")


@pytest.mark.slow
@pytest.mark.one_mode
def test_text_and_fixed_batches(tmp_path, checkpoint, capsys):
    """A frozen graph can be text, with a batch size in it; a folder means its newest checkpoint."""
    path = tmp_path / "graph.pbtxt"
    flags = ("--write_text_graphdef", "--batch_size=3", f"--output_file={path}")
    code, out, err = _run(capsys, f"--checkpoint_path={checkpoint.parent}", *flags)
    assert code == 0, err
    assert f"lenet: {checkpoint} -> " in out
    assert "images (input:0) float32 [3, 28, 28, 1]" in out
    assert path.read_text().startswith("node {\n")


def test_classes_without_the_dataset(tmp_path, capsys):
    """`--num_classes` stands in for a dataset whose files are elsewhere, less the offset."""
    _random_checkpoint(tmp_path / "m.ckpt", "lenet", [1, 28, 28, 3], 4)
    flags = (f"--checkpoint_path={tmp_path / 'm.ckpt'}", "--dataset_name=flowers")
    output = f"--output_file={tmp_path / 'out.pb'}"
    code, _, err = _run(capsys, *flags, output)
    assert code == 1
    assert re.search(
        r": dataset_dir must name the folder .*; without it, give --num_classes\n$", err
    )
    code, out, err = _run(capsys, *flags, output, "--num_classes=5", "--labels_offset=1")
    assert code == 0, err
    assert "logits (logits:0) float32 [None, 4]" in out
    assert "labels" not in out


BAD = {
    "training": (["--is_training"], 2, "is_training must be False, got True: .* run train_image_"),
    "quantize": (["--quantize"], 2, "quantize must be False, got True: .* by TensorFlow Lite"),
    "no output": (
        ["--output_dir="],
        2,
        "output_dir or output_file or output_onnx or output_tflite must be given, got none",
    ),
    "type of nothing": (
        ["--tflite_type=int8"],
        2,
        "tflite_type must go with output_tflite, got int8 alone",
    ),
    "ranges of nothing": (
        ["--output_tflite=x", "--tflite_type=int8", "--num_classes=5"],
        2,
        "num_classes must be None with tflite_type=int8, .*, got 5",
    ),
    "preprocessing elsewhere": (
        ["--output_tflite=x", "--with_preprocessing"],
        2,
        "with_preprocessing must be False with output_tflite, .*, got True",
    ),
    "tracker": (["--tracker=comet"], 2, "tracker must be of mlflow, wandb, aim, got 'comet'"),
    "no source": (
        ["--checkpoint_path="],
        2,
        "train_dir or checkpoint_path must be given, got neither",
    ),
    "text of nothing": (
        ["--write_text_graphdef"],
        2,
        "write_text_graphdef must come with an output_file, got True without",
    ),
    "network": (["--model_name=lenat"], 2, "model_name must be one of .*lenet.*, got 'lenat'"),
    "size": (["--image_size=0"], 2, "image_size must be at least 1, got 0"),
    "offset": (
        ["--num_classes=2", "--labels_offset=2"],
        1,
        "labels_offset must be less than num_classes=2, got 2",
    ),
    "video": (["--is_video_model"], 1, "is_video_model must be for a network of videos, got True"),
    "other model": (
        ["--labels_offset=1"],
        1,
        "checkpoint_path must be a checkpoint of this model, got .*model.ckpt-7, where "
        r"LeNet/fc4/weights has shape \[1024, 10\], not \[1024, 9\], "
        r"LeNet/fc4/biases has shape \[10\], not \[9\]$",
    ),
    "no averages": (
        ["--moving_average_decay=0.9"],
        1,
        "where LeNet/conv1/weights/ExponentialMovingAverage is missing",
    ),
}


@pytest.mark.one_mode
@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_flags(tmp_path, checkpoint, capsys, case):
    """A bad flag is one line that names it, the rule and the value; nothing is written."""
    arguments, code, message = case
    output = tmp_path / "out" / "model"
    flags = (f"--checkpoint_path={checkpoint}", f"--output_dir={output}")
    got, out, err = _run(capsys, *flags, *arguments)
    [line] = err.splitlines()
    assert re.search(f"^error: .*{message}", line), line
    assert (got, out) == (code, "")
    assert not output.parent.exists()


# Where the library has another name for what was typed: the flags, and the first words.
OTHER_NAMES = {
    "empty run": (["--train_dir={}"], "train_dir must be a folder with checkpoints and"),
    "no run": (["--train_dir={}/none"], "train_dir must be a checkpoint such as"),
    "other run": (
        ["--train_dir={run}", "--model_name=cifarnet"],
        "train_dir must be a checkpoint of this model, got ",
    ),
    "other checkpoint": (
        ["--checkpoint_path={run}", "--model_name=cifarnet"],
        "checkpoint_path must be a checkpoint of this model, got ",
    ),
    "no folder": (
        ["--train_dir={run}", "--dataset_name=mnist"],
        "dataset_dir must name the folder of dataset 'mnist', got None; without it, give --num_",
    ),
    "split": (
        ["--train_dir={run}", "--dataset_split_name=x"],
        "dataset_split_name of dataset 'digits' must be one of train, test, got 'x'",
    ),
    "size": (["--train_dir={run}", "--image_size=1"], "image_size must be at least 4 pixels high"),
    "size in training": (
        ["--train_dir={run}", "--train_image_size=1"],
        "train_image_size must be at least 4 pixels high",
    ),
    "large for the network": (
        ["--train_dir={run}", "--num_classes=10", "--model_name=alexnet_v2", "--image_size=300"],
        "image_size must be one that gives logits of 1 x 1 pixel, got shape",
    ),
    "large for the preprocessing": (
        ["--train_dir={run}", "--num_classes=10", "--preprocessing_name=vgg", "--image_size=300"],
        "image_size must be at most resize_side_min=256, got 300 x 300",
    ),
    "grey": (
        ["--train_dir={run}", "--preprocessing_name=vgg"],
        "preprocessing_name 'vgg' subtracts a mean colour and needs 3 channels, got 1",
    ),
}


@pytest.mark.one_mode
@pytest.mark.parametrize(("arguments", "words"), OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_errors_name_the_flag(tmp_path, checkpoint, capsys, arguments, words):
    """An error begins with the flag that was typed, not with what the library calls it."""
    folder = tmp_path / "data"
    folder.mkdir()
    flags = [each.format(folder, run=checkpoint.parent) for each in arguments]
    code, out, err = _run(capsys, f"--output_dir={tmp_path / 'out'}", *flags)
    assert (code, out) == (1, "")
    [line] = err.splitlines()
    assert line.startswith(f"error: {words.format(folder)}"), line


def test_an_existing_output(tmp_path, checkpoint, capsys):
    """An output that exists is an error before anything else is looked for."""
    flags = (f"--checkpoint_path={tmp_path / 'none'}", f"--output_dir={tmp_path}")
    code, _, err = _run(capsys, *flags)
    assert (code, err) == (1, f"error: output_dir must not exist yet, got {tmp_path}\n")


def test_flags_keep_the_names_of_tf_slim():
    """Users of the original script find their flags."""
    known = {
        *("model_name", "is_training", "image_size", "batch_size", "dataset_name"),
        *("labels_offset", "output_file", "dataset_dir", "quantize", "is_video_model"),
        *("num_frames", "write_text_graphdef", "use_grayscale"),
    }
    assert known <= set(script.ExportOptions.__dataclass_fields__)


@pytest.mark.slow
@pytest.mark.one_mode
def test_the_command_without_arguments():
    """From the shell, too, an error is one line and exit code 2."""
    path = Path(script.__file__)
    done = subprocess.run([sys.executable, str(path)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: train_dir or checkpoint_path must be given, got neither\n"

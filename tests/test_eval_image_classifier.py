"""The command evaluates what a run has saved, and answers mistakes in one line."""

import csv
import json
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

import eval_image_classifier as script
import train_image_classifier
from model_deploy import inputs
from model_deploy.commands import command_line
from model_deploy.image_training.evaluating import evaluations, split_of
from tests import clusters

ROOT = Path(__file__).parents[1]
IMAGES = 360


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run of 30 steps with moving averages, checkpoints at 10, 20 and 30."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    with tf.Graph().as_default():
        code = train_image_classifier.main(
            [
                "train_image_classifier",
                f"--train_dir={folder}",
                "--optimizer=adam",
                "--opt_epsilon=1e-7",
                "--learning_rate=0.002",
                "--moving_average_decay=0.8",
                "--label_smoothing=0.1",
                "--max_number_of_steps=30",
                "--save_interval_steps=10",
            ]
        )
    assert code == 0
    return folder


def _main(capsys, *arguments):
    """Runs the command in this process; returns code, output and errors."""
    code = script.main(["eval_image_classifier", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _json(folder):
    return json.loads((folder / "evaluation.json").read_text())


def _predictions(folder):
    with open(folder / "predictions.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


LINE = (
    r"test at step (\d+): accuracy ([\d.]+), recall at 5 ([\d.]+), total loss ([\d.]+) "
    r"\((\d+) images in [\d.]+ s\); results in (.*)"
)


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_run_needs_nothing_else(trained, capsys):
    """`--train_dir` alone: settings, split and averages are those of the run; one line."""
    code, out, err = _main(capsys, f"--train_dir={trained}")
    assert (code, err) == (0, "")
    [line] = out.splitlines()
    step, accuracy, recall, loss, images, folder = re.fullmatch(LINE, line).groups()
    assert (step, images, folder) == ("30", str(IMAGES), str(trained / "eval_test"))
    found = _json(trained / "eval_test")
    assert (found["moving_averages"], found["mirrored"]) == (True, False)
    assert (found["model"], found["dataset"], found["split"]) == ("lenet", "digits", "test")
    for name, shown in (("accuracy", accuracy), ("recall_at_5", recall), ("total_loss", loss)):
        assert f"{found[name]:.4f}" == shown

    rows = _predictions(trained / "eval_test")
    assert [row["index"] for row in rows] == [str(i) for i in range(IMAGES)]
    _, labels = inputs.get_dataset("digits", "test").source.arrays
    assert [int(row["label"]) for row in rows] == labels.tolist()
    right = [row["label"] == row["predicted"] for row in rows]
    assert found["accuracy"] == np.mean(right) > 0.5
    assert sum(map(sum, found["confusion_matrix"])) == IMAGES


@pytest.mark.one_mode
@pytest.mark.slow
def test_clones_change_nothing(trained, tmp_path, capsys):
    """Any number of clones, with batches that they do not divide, gives the same predictions."""
    one, several = tmp_path / "one", tmp_path / "several"
    assert _main(capsys, f"--train_dir={trained}", f"--eval_dir={one}")[0] == 0
    expected = _predictions(one)
    for clones in (2, 3):
        flags = (f"--num_clones={clones}", "--clone_on_cpu", "--batch_size=37")
        assert _main(capsys, f"--train_dir={trained}", f"--eval_dir={several}", *flags)[0] == 0
        for row, alone in zip(_predictions(several), expected, strict=True):
            for name in ("index", "label", "predicted", "rank"):
                assert row[name] == alone[name]
            assert float(row["probability"]) == pytest.approx(float(alone["probability"]), rel=1e-4)
        for name in ("accuracy", "recall_at_5", "confusion_matrix", "classes"):
            assert _json(several)[name] == _json(one)[name]
        assert _json(several)["total_loss"] == pytest.approx(_json(one)["total_loss"], rel=1e-5)


@pytest.mark.slow
def test_flags_describe_a_checkpoint(trained, tmp_path, capsys):
    """A checkpoint by its name needs no run: flags say what it is; a flag chooses the variables."""
    path = trained / "model.ckpt-20"
    losses = {}
    for averages in ([], ["--moving_average_decay=0.8"]):
        flags = (f"--checkpoint_path={path}", f"--eval_dir={tmp_path}", "--model_name=lenet")
        code, out, err = _main(capsys, *flags, "--dataset_split_name=train", *averages)
        assert code == 0, err
        assert out.startswith("train at step 20: ")
        assert "(1437 images in " in out
        losses[bool(averages)] = _json(tmp_path)["total_loss"]
    assert losses[True] != losses[False]


@pytest.mark.one_mode
@pytest.mark.slow
def test_size_and_number_of_images(trained, tmp_path, capsys):
    """`--max_num_batches` ends early; `--eval_image_size` counts more than that of training."""
    flags = (f"--train_dir={trained}", f"--eval_dir={tmp_path}", "--batch_size=50")
    assert _main(capsys, *flags, "--max_num_batches=2")[0] == 0
    assert [row["index"] for row in _predictions(tmp_path)] == [str(i) for i in range(100)]
    code, _, err = _main(capsys, *flags, "--eval_image_size=32")
    assert code == 1
    assert re.search(r"where LeNet/fc3/weights/ExponentialMovingAverage has shape", err), err


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_folder_is_watched(trained, tmp_path, capsys):
    """Each checkpoint is evaluated; the watch ends by itself at the last step of the run."""
    flags = (f"--train_dir={trained}", f"--eval_dir={tmp_path}", "--eval_interval_secs=0.01")
    code, out, err = _main(capsys, *flags)
    assert (code, err) == (0, "")
    *lines, last = out.splitlines()
    steps = [int(re.fullmatch(LINE, line).group(1)) for line in lines]
    assert steps == [10, 20, 30]
    assert last == f"stopped: the run in {trained} has ended at step 30"
    history = (tmp_path / "evaluations.jsonl").read_text().splitlines()
    assert [json.loads(line)["global_step"] for line in history] == steps


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_watch_ends_after_a_timeout(trained, tmp_path, capsys):
    """A run that never reaches its last step is given up after the timeout."""
    going_on = tmp_path / "run"
    shutil.copytree(trained, going_on, ignore=shutil.ignore_patterns("run_ended"))
    flags = (f"--train_dir={going_on}", f"--eval_dir={tmp_path}", "--eval_interval_secs=0.01")
    timeout = ("--eval_timeout_secs=0", "--max_number_of_steps=31")
    code, out, err = _main(capsys, *flags, *timeout)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"stopped: no new checkpoint in {going_on} for 0 seconds"

    empty = tmp_path / "empty"
    empty.mkdir()
    watch = (f"--checkpoint_path={empty}", "--eval_interval_secs=0.01", "--eval_timeout_secs=0")
    code, out, err = _main(capsys, *watch)
    assert (code, out) == (1, "")
    reason = f"no new checkpoint in {empty} for 0 seconds"
    assert err == f"error: at least one checkpoint must appear, got none: {reason}\n"


def test_a_checkpoint_that_is_deleted_meanwhile(capsys):
    """A checkpoint that is gone when its turn comes is left out; other errors stay errors."""

    class Gone:
        def evaluate(self, path):
            raise tf.errors.NotFoundError(None, None, f"no {path}")

    assert list(evaluations(Gone(), ["gone-1", "gone-2"])) == []
    assert capsys.readouterr().out == (
        "not evaluated: gone-1 has been deleted\nnot evaluated: gone-2 has been deleted\n"
    )
    with pytest.raises(tf.errors.NotFoundError):
        list(evaluations(Gone(), [__file__]))


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_server(trained, tmp_path, capsys):
    """`--master` evaluates on another TensorFlow server."""
    [target] = clusters.workers(1)
    flags = (f"--train_dir={trained}", f"--eval_dir={tmp_path}", f"--master={target}")
    code, out, err = _main(capsys, *flags)
    assert code == 0, err
    assert "(360 images in" in out


@pytest.mark.one_mode
def test_settings_that_are_not_of_the_run(tmp_path):
    """What means something else in training, such as its split, is not taken from a run."""
    of_run = {
        "train_dir": "elsewhere",
        "dataset_split_name": "train",
        "batch_size": 7,
        "num_clones": 4,
        "clone_on_cpu": True,
        "master": "grpc://training",
        "debug": True,
        "model_name": "cifarnet",
        "max_number_of_steps": 12,
        "seed": 3,
    }
    lines = "".join(f"{name}: {json.dumps(value)}\n" for name, value in of_run.items())
    (tmp_path / "options.yaml").write_text(lines)
    arguments = ["eval", f"--train_dir={tmp_path}"]
    options = command_line.parse_options(arguments, script.EvalOptions, saved_in="train_dir")
    assert options == script.EvalOptions(
        train_dir=str(tmp_path), model_name="cifarnet", max_number_of_steps=12
    )
    assert script.EvalOptions.of_run(str(tmp_path)) == options
    assert script.EvalOptions.of_run(str(tmp_path), model_name="lenet").model_name == "lenet"
    assert script.EvalOptions.of_run(f"{tmp_path}/none").max_number_of_steps is None


BAD = {
    "unknown flag": (["--bogus=1"], 2, "Unknown command line flag 'bogus'"),
    "nothing": ([], 2, "train_dir or checkpoint_path must be given, got neither"),
    "network": (["--model_name=x"], 2, "model_name must be one of .*lenet.*, got 'x'"),
    "quantize": (
        ["--quantize"],
        2,
        "quantize must be False, got True: .*--output_tflite=FILE --tflite_type=int8$",
    ),
    "batch size": (["--batch_size=0"], 2, "batch_size must be at least 1, got 0"),
    "batches": (["--max_num_batches=0"], 2, "max_num_batches must be at least 1, got 0"),
    "interval": (["--eval_interval_secs=0"], 2, "eval_interval_secs must be more than 0, got 0"),
    "no checkpoint": (["--checkpoint_path={}"], 1, "a folder with checkpoints .* got {}$"),
    "no such checkpoint": (["--checkpoint_path={}/x.ckpt"], 1, "got {}/x.ckpt$"),
}


@pytest.mark.one_mode
@pytest.mark.parametrize(("arguments", "code", "message"), BAD.values(), ids=BAD)
def test_bad_flags(tmp_path, capsys, arguments, code, message):
    """A mistake is one line that names the flag, the rule and the value; nothing is written."""
    got, out, err = _main(capsys, *(argument.format(tmp_path) for argument in arguments))
    [line] = err.splitlines()
    assert line.startswith("error: ")
    assert re.search(message.replace("{}", str(tmp_path)), line), line
    assert (got, out) == (code, "")
    assert list(tmp_path.iterdir()) == []


MISFITS = {
    "network": (["--model_name=cifarnet"], "where .*CifarNet.* is missing"),
    "classes": (["--labels_offset=1"], r"weights\S* has shape \[1024, 10\], not \[1024, 9\]"),
    "split": (["--dataset_split_name=x"], "must be one of train, test, got 'x'"),
    "no file": (["--eval_dir={}/file/x"], "eval_dir must be a folder that can be written, got {}"),
}


@pytest.mark.parametrize(("arguments", "message"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_the_run(trained, tmp_path, capsys, arguments, message):
    """Another network, split or folder than there is: one line, exit code 1."""
    (tmp_path / "file").write_text("mine")
    flags = (argument.replace("{}", str(tmp_path)) for argument in arguments)
    code, out, err = _main(capsys, f"--train_dir={trained}", f"--eval_dir={tmp_path}", *flags)
    [line] = err.splitlines()
    assert (code, out) == (1, "")
    assert re.search(message.replace("{}", str(tmp_path)), line), line


# Where the library has another name for what was typed: the flags, and the first words.
OTHER_NAMES = {
    "empty run": (["--train_dir={}"], "train_dir must be a folder with checkpoints and"),
    "no run": (["--train_dir={}/none"], "train_dir must be a checkpoint such as"),
    "checkpoint": (["--checkpoint_path={}/none"], "checkpoint_path must be a checkpoint such as"),
    "watched run": (
        ["--train_dir={}/none", "--eval_interval_secs=5"],
        "train_dir must be a folder with eval_interval_secs=5, got {}/none",
    ),
    "watched": (
        ["--checkpoint_path={}/none", "--eval_interval_secs=5"],
        "checkpoint_path must be a folder with eval_interval_secs=5, got {}/none",
    ),
    "split": (["{run}", "--dataset_split_name=x"], "dataset_split_name of dataset 'digits' must "),
    "no folder": (
        ["{run}", "--dataset_name=flowers"],
        "dataset_split_name of dataset 'flowers' must be one of train, validation, got 'test'; "
        "dataset_dir must name the folder of dataset 'flowers', got None",
    ),
    "size": (["{run}", "--eval_image_size=1"], "eval_image_size must be at least 4 pixels high"),
    "size in training": (
        ["{run}", "--train_image_size=1"],
        "train_image_size must be at least 4 pixels high",
    ),
    "large": (
        [
            *("{run}", "--dataset_name=synthetic", "--preprocessing_name=vgg"),
            "--eval_image_size=300",
        ],
        "eval_image_size must be at most resize_side_min=256, got 300 x 300",
    ),
    "grey": (
        ["{run}", "--preprocessing_name=vgg"],
        "preprocessing_name 'vgg' subtracts a mean colour and needs 3 channels, got 1",
    ),
    "texts": (["{run}", "--model_name=text_lstm"], "model_name must be a network of images, got"),
}


@pytest.mark.parametrize(("arguments", "words"), OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_errors_name_the_flag(trained, tmp_path, capsys, arguments, words):
    """An error begins with the flag that was typed, not with what the library calls it."""
    folder = tmp_path / "data"
    folder.mkdir()
    flags = [each.format(folder, run=f"--train_dir={trained}") for each in arguments]
    code, out, err = _main(capsys, f"--eval_dir={tmp_path / 'eval'}", *flags)
    assert (code, out) == (1, "")
    [line] = err.splitlines()
    assert line.startswith(f"error: {words.format(folder)}"), line


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("- 3", "train_dir/options.yaml must be a mapping of options, got", id="list"),
        pytest.param("{", "train_dir/options.yaml must be a YAML file, got", id="syntax"),
        pytest.param("model_name: x", "model_name must be one of", id="value"),
    ],
)
def test_broken_settings_of_a_run(tmp_path, capsys, content, words):
    """Settings of a run that cannot be read are those of the `--train_dir`."""
    (tmp_path / "options.yaml").write_text(content)
    code, out, err = _main(capsys, f"--train_dir={tmp_path}")
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith(f"error: {words}"), line


@pytest.mark.one_mode
def test_a_broken_checkpoint(tmp_path, capsys):
    """A file that is no checkpoint, or half of one, is one line."""
    path = tmp_path / "model.ckpt-1.index"
    path.write_bytes(b"no checkpoint")
    code, out, err = _main(capsys, f"--checkpoint_path={path}")
    assert (code, out) == (1, "")
    [line] = err.splitlines()
    assert line.startswith("error: ")


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("splits", [("train", "validation"), ("validation", "test"), ("train",)])
def test_the_split_if_none_is_named(splits):
    """It is the test split, or else the validation split; with neither both are named."""

    @inputs.register_dataset("tiny")
    def tiny(split, data_dir=None, skip_corrupt_records=0):
        del data_dir, skip_corrupt_records
        source = inputs.ArraySource(lambda: (np.zeros([1, 8, 8, 1], np.uint8), np.zeros([1], int)))
        return inputs.Dataset("tiny", split, 1, 1, ("one",), (8, 8, 1), splits, source)

    options = script.EvalOptions(dataset_name="tiny", train_dir="run")
    if splits == ("train",):
        message = "must be one of train, got 'test'; .* must be one of train, got 'validation'"
        with pytest.raises(ValueError, match=message):
            split_of(options)
    else:
        assert split_of(options).split == splits[-1]


FLAGS_OF_SLIM = {
    "batch_size": 100,
    "max_num_batches": None,
    "master": "",
    "checkpoint_path": None,
    "eval_dir": None,
    "num_preprocessing_threads": None,
    "dataset_name": "digits",
    "dataset_split_name": None,
    "dataset_dir": None,
    "labels_offset": 0,
    "model_name": "lenet",
    "preprocessing_name": None,
    "moving_average_decay": None,
    "eval_image_size": None,
    "quantize": False,
    "use_grayscale": False,
}


@pytest.mark.one_mode
def test_flags_keep_the_names_of_tf_slim():
    """Users of the original script find their flags; without files or a GPU the defaults work."""
    options = script.EvalOptions(train_dir="run")
    assert {name: getattr(options, name) for name in FLAGS_OF_SLIM} == FLAGS_OF_SLIM


@pytest.mark.one_mode
@pytest.mark.slow
def test_the_commands_of_the_documentation(trained, tmp_path, monkeypatch, capsys):
    """Every command in docs/evaluation.md runs in the folder of the run that it is about."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "digits_run")
    for path in Path("digits_run").glob("model.ckpt-30.*"):
        shutil.copy(path, str(path).replace("-30.", "-440."))
    commands = re.findall(
        r"```bash\n(.*?)\n```", (ROOT / "docs" / "evaluation.md").read_text(), re.DOTALL
    )
    assert len(commands) == 3
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "eval_image_classifier"
        code, out, err = _main(capsys, *arguments)
        assert code == 0, err
        assert re.fullmatch(LINE, out.splitlines()[0])


@pytest.mark.one_mode
@pytest.mark.slow
def test_from_the_shell():
    """From the shell an error is one line and exit code 2, without TensorFlow's notices."""
    environment = {name: value for name, value in os.environ.items() if name[:3] != "TF_"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "eval_image_classifier.py"), "--batch_size=0"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: batch_size must be at least 1, got 0\n"

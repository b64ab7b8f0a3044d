"""The command as a newcomer and as a careless user run it."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

import eval_image_classifier
import export_image_classifier
import train_image_classifier as script
from model_deploy import training
from model_deploy.commands import command_line
from model_deploy.commands.help_text import TOPICS
from model_deploy.image_training.banner import print_banner
from model_deploy.image_training.run import plan

ROOT = Path(__file__).parents[1]


def _command(*arguments):
    environment = {name: value for name, value in os.environ.items() if name[:3] != "TF_"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "train_image_classifier.py"), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.one_mode
def test_digits(tmp_path, capsys):
    """The README's command reaches an accuracy of 0.97, and run again has nothing to train."""
    train_dir = tmp_path / "digits_run"
    code, out, err = _command(f"--train_dir={train_dir}")
    assert code == 0, err
    lines = out.splitlines()
    assert "lenet on digits (1437 images, 10 classes)" in lines
    assert "batch size 32 per clone, 64 global; 22 steps per epoch, up to step 440" in lines
    if not tf.config.list_physical_devices("GPU"):
        assert lines[0] == "no GPU is visible: the clones run on the CPU (as with --clone_on_cpu)"
        assert lines[2].startswith("2 clone(s) on /device:CPU:0, 1 replica(s), 0 ps")
    accuracy = re.fullmatch(r"test accuracy at step 440: ([\d.]+) \(360 images\)", lines[-1])
    assert float(accuracy.group(1)) >= 0.97
    *progress, effective = err.splitlines()
    assert re.match(r"effective time [\d.]+% of .*: start ", effective)
    shown = (
        r"step \d+/440  loss [\d.]+  accuracy [\d.]+  rate [\d.]+  [\d,]+ ± [\d,]+ images/s  "
        r"[\d.]+ s/batch  "
        r"\d+% waiting for data  0:0\d:\d\d left"
    )
    assert all(re.fullmatch(shown, line) for line in progress), err
    assert len(progress) == 44
    assert (train_dir / "model.ckpt-440.index").exists()
    assert list(train_dir.glob("events.out.tfevents.*"))

    code, again, err = _main(capsys, f"--train_dir={train_dir}")
    assert code == 0, err
    assert again.splitlines()[-2:] == [
        f"nothing left to train: {train_dir} is at step 440",
        lines[-1],
    ]


def parse(arguments):
    return command_line.parse_options(arguments, script.TrainOptions)


def _main(capsys, *arguments):
    """Runs the command in this process; returns code, output and errors."""
    code = script.main(["train_image_classifier", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_run_goes_on(tmp_path, capsys):
    """A run to step 2 and then to step 3 does one step in the second run."""
    small = (f"--train_dir={tmp_path}", "--batch_size=4", "--log_every_n_steps=1")
    assert _main(capsys, *small, "--max_number_of_steps=2")[0] == 0
    code, out, err = _main(capsys, *small, "--max_number_of_steps=3")
    assert code == 0
    assert [line.split("  ")[0] for line in err.splitlines()[:-1]] == ["step 3/3"]
    assert "test accuracy at step 3: " in out


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "size"), [(None, 24), ("--all_reduce", 24), ("--asynchronous", 12)]
)
def test_accumulated_batches(tmp_path, capsys, way, size):
    """Each way trains two clones with three batches of 4, and says what an update is made of."""
    options = [f"--train_dir={tmp_path}", "--num_clones=2", "--batch_size=4", "--clone_on_cpu"]
    options += [
        "--accumulate_steps=3",
        "--max_number_of_steps=2",
        "--describe",
        *filter(None, [way]),
    ]
    code, out, err = _main(capsys, *options)
    assert code == 0, err
    assert f"batch size 4 per clone x 3 accumulated (accumulate_steps), {size} global" in out
    assert f"accumulate_steps 3: an update of {size // 4} batches, 3 of each clone" in out
    assert "test accuracy at step 2" in out


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "compiled"),
    [
        (["--model_name=lenet"], r"xla: \d+ of \d+ ops of the clones are compiled, not .*Random.*"),
        (
            ["--model_name=mnist_mlp", "--all_reduce", "--accumulate_steps=2"],
            r"xla: all \d+ ops of the clones are compiled",
        ),
    ],
    ids=["with dropout", "parts"],
)
def test_compiled_clones(tmp_path, capsys, more, compiled):
    """XLA compiles clones, and their parts; one line says what it does not compile.

    That each way trains compiled clones is in `tests/laws.py`.
    """
    options = [f"--train_dir={tmp_path}", "--num_clones=2", "--batch_size=4", "--clone_on_cpu"]
    options += ["--xla", "--max_number_of_steps=2", *more]
    code, out, err = _main(capsys, *options)
    assert code == 0, err
    [line] = [line for line in out.splitlines() if line.startswith("xla: ")]
    assert re.fullmatch(compiled, line)
    assert "test accuracy at step 2" in out


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("optimizer", "clones"),
    [("adadelta", 1), ("adagrad", 3), ("adam", 3), ("ftrl", 1), ("momentum", 3), ("sgd", 1)],
)
def test_optimizers_and_clones(tmp_path, capsys, optimizer, clones):
    """Every optimizer trains, on one clone or on three, with all settings in use."""
    code, out, err = _main(
        capsys,
        f"--train_dir={tmp_path}",
        "--model_name=mnist_mlp",
        f"--optimizer={optimizer}",
        f"--num_clones={clones}",
        "--clone_on_cpu",
        "--global_batch_size=12",
        "--max_number_of_steps=2",
        "--moving_average_decay=0.9",
        "--label_smoothing=0.1",
        "--learning_rate_decay_type=polynomial",
        "--warmup_epochs=0.1",
        "--clip_norm=1.0",
    )
    assert code == 0, err
    assert f"batch size {12 // clones} per clone, 12 global" in out
    assert "test accuracy at step 2" in out
    names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    assert "mnist_mlp/hidden/weights/ExponentialMovingAverage" in names


@pytest.mark.slow
@pytest.mark.one_mode
def test_augmentation(tmp_path, capsys):
    """A run with all augmentation trains; it is evaluated on images as they are."""
    code, out, err = _main(
        capsys,
        f"--train_dir={tmp_path}",
        "--randaugment_layers=2",
        "--randaugment_magnitude=5",
        "--random_erasing=0.25",
        "--mixup=0.2",
        "--cutmix=1",
        "--label_smoothing=0.1",
        "--max_number_of_steps=4",
    )
    assert code == 0, err
    assert "test accuracy at step 4" in out
    assert "randaugment_magnitude: 5.0" in (tmp_path / "options.yaml").read_text()


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_label_below_the_offset(tmp_path, capsys):
    """A label that the offset makes negative stops the run, and is not trained as no class."""
    flags = ("--labels_offset=1", "--max_number_of_steps=1", f"--train_dir={tmp_path}")
    code, _, err = _main(capsys, *flags)
    [line] = [line for line in err.splitlines() if "waiting" not in line]
    assert code == 1
    assert re.match(r"error: .*labels must be at least labels_offset=1", line)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least labels_offset=1"):
        _main(capsys, *flags, "--debug")


@pytest.mark.slow
@pytest.mark.one_mode
def test_describe(tmp_path, capsys):
    """`--describe` prints, before training, the placement report and what the inputs hold.

    `--describe_picture` draws the report.
    """
    picture = tmp_path / "deployment.svg"
    flags = ("--describe", "--batch_size=2", "--max_number_of_steps=1")
    flags += (f"--describe_picture={picture}",)
    code, out, _ = _main(capsys, f"--train_dir={tmp_path}", *flags)
    assert code == 0
    [row] = re.findall(r"^/device:CPU:0 +([\d,]+) +([\d,]+) +([\d,]+)$", out, re.MULTILINE)
    parameters = 5 * 5 * 32 + 32 + 5 * 5 * 32 * 64 + 64 + 3136 * 1024 + 1024 + 1024 * 10 + 10
    # Each with the two slots of RMSProp with momentum, and the int64 global step.
    assert row[1:] == (str(8 * 3 + 1), f"{parameters * 4 * 3 + 8:,}")
    assert re.search(rf"^inputs hold at most .* examples of {28 * 28 * 4 + 8:,} bytes", out, re.M)
    assert f">CPU:0: {row[0]} ops<" in picture.read_text()


BAD = {
    "unknown flag": (["--bogus=1"], 2, "Unknown command line flag 'bogus'"),
    "not a number": (["--batch_size=x"], 2, "--batch_size=x"),
    "zero": (["--batch_size=0"], 2, "batch_size must be at least 1, got 0"),
    "negative": (["--weight_decay=-1"], 2, "weight_decay must be at least 0, got -1.0"),
    "nan": (["--learning_rate=nan"], 2, "learning_rate must be finite, got nan"),
    "no flag": (["digits"], 2, "arguments must be flags such as --train_dir=DIR, got digits"),
    "network": (["--model_name=lenat"], 2, "model_name must be one of .*lenet.*, got 'lenat'"),
    "dataset": (["--dataset_name=x"], 2, "dataset_name must be one of .*digits.*, got 'x'"),
    "optimizer": (["--optimizer=x"], 2, "optimizer must be one of adadelta, .*sgd, got 'x'"),
    "picture": (["--describe_picture=a.png"], 2, "describe_picture must end in .svg, got 'a.png'"),
    "preprocessing": (
        ["--preprocessing_name=x"],
        2,
        "preprocessing_name must be one of .*lenet.*, got 'x'",
    ),
    "split": (["--dataset_split_name=x"], 1, "must be one of train, test, got 'x'"),
    "both batch sizes": (
        ["--batch_size=2", "--global_batch_size=4"],
        2,
        "global_batch_size must not be given together with batch_size, got 4 and 2",
    ),
    "uneven": (
        ["--clone_on_cpu", "--num_clones=2", "--global_batch_size=7"],
        1,
        "global_batch_size must be a multiple of num_clones=2, got 7",
    ),
    "too large": (
        ["--global_batch_size=2000", "--num_clones=2"],
        1,
        "at most the 1437 examples of the dataset, got 2000",
    ),
    "offset": (["--labels_offset=10"], 1, "less than the 10 classes of digits, got 10"),
    "replicas": (
        ["--worker_replicas=2"],
        1,
        "num_ps_tasks must be at least 1 with worker_replicas=2, got 0",
    ),
    "quantization": (["--quantize_delay=9"], 2, "quantize_delay must be -1, got 9: TensorFlow no"),
    "metric": (
        ["--stop_metric=loss", "--eval_every_n_steps=9"],
        2,
        "stop_metric must be one of accuracy, recall_at_5, log_loss, got 'loss'",
    ),
    "stop": (["--stop_at_metric=0.9"], 2, "stop_at_metric must go with eval_every_n_steps, got"),
    "resume": (["--resume=nowhere"], 1, "resume must be 'auto', 'never' or the path of a check"),
    "decay": (["--moving_average_decay=1"], 2, "moving_average_decay must be less than 1, got 1"),
}


@pytest.mark.one_mode
def test_the_last_checkpoint_is_evaluated_once(tmp_path, capsys, monkeypatch):
    """What was found at the last step is the result, without a second look at the test images."""
    evaluated = []
    evaluate = training.Evaluator.evaluate

    def counting(self, checkpoint):
        evaluated.append(os.path.basename(checkpoint))
        return evaluate(self, checkpoint)

    monkeypatch.setattr(training.Evaluator, "evaluate", counting)
    flags = ["--dataset_name=synthetic", "--batch_size=2", "--eval_every_n_steps=2"]
    code, out, err = _main(
        capsys, f"--train_dir={tmp_path}", *flags, "--max_number_of_steps=4", "--clone_on_cpu"
    )
    assert code == 0, err
    assert evaluated == ["model.ckpt-2", "model.ckpt-4"]
    [accuracy] = re.findall(r"evaluation at step 4:  accuracy ([\d.]+)", err)
    assert re.search(rf"^test accuracy at step 4: {accuracy} ", out, re.MULTILINE)


def test_a_network_that_is_not_of_keras_needs_no_keras():
    """Settings are checked without what takes seconds to import."""
    program = (
        "import sys, train_image_classifier as script; script.TrainOptions(model_name='resnet_9');"
        "print([name for name in ('keras', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("arguments", "code", "message"), BAD.values(), ids=BAD)
def test_bad_flags(tmp_path, capsys, arguments, code, message):
    """A bad flag is one line that names it, the rule and the value; nothing is written."""
    train_dir = tmp_path / "run"
    got, out, err = _main(capsys, f"--train_dir={train_dir}", *arguments)
    assert got == code
    [line] = err.splitlines()
    assert line.startswith("error: ")
    assert re.search(message, line), line
    assert out == ""
    assert not train_dir.exists()


# Where the library has another name for what was typed: the flags, and the first words.
OTHER_NAMES = {
    "no folder": (["--dataset_name=mnist"], "dataset_dir must name the folder of dataset 'mnist'"),
    "missing folder": (
        ["--dataset_name=mnist", "--dataset_dir={}/none"],
        "dataset_dir of dataset 'mnist' must be a folder, got '{}/none'",
    ),
    "no records": (
        ["--dataset_name=flowers", "--dataset_dir={}"],
        "dataset_dir must have files flowers_train*.tfrecord",
    ),
    "no classes": (
        ["--dataset_name=folder", "--dataset_dir={}"],
        "dataset_dir must have one sub-folder per class",
    ),
    "split": (["--dataset_split_name=x"], "dataset_split_name of dataset 'digits' must be one of"),
    "task": (["--task=3"], "task must be less than worker_replicas=1, got 3"),
    "task of hosts": (
        ["--worker_hosts=a:1,b:1", "--task=5"],
        "task must be at least 0 and less than the 2 tasks of worker_hosts, got 5",
    ),
    "task_id": (
        ["--worker_hosts=a:1,b:1", "--task_id=5"],
        "task_id must be at least 0 and less than the 2 tasks of worker_hosts, got 5",
    ),
    "workers alone": (
        ["--worker_hosts=127.0.0.1:1,b:1"],
        "ps_hosts must be at least 1 with worker_hosts=2, got 0",
    ),
    "aggregated": (
        [
            *("--worker_replicas=2", "--num_ps_tasks=1", "--sync_replicas"),
            *("--replicas_to_aggregate=3", "--max_number_of_steps=1"),
        ],
        "replicas_to_aggregate must be an integer from 1 to worker_replicas=2, got 3",
    ),
    "grey": (
        ["--dataset_name=digits", "--preprocessing_name=vgg"],
        "preprocessing_name 'vgg' subtracts a mean colour and needs 3 channels, got 1",
    ),
    "large for the preprocessing": (
        ["--dataset_name=synthetic", "--preprocessing_name=vgg", "--train_image_size=300"],
        "train_image_size must be at most resize_side_min=256, got 300",
    ),
    "large for the padding": (
        ["--dataset_name=synthetic", "--preprocessing_name=cifarnet", "--train_image_size=64"],
        "train_image_size must be at most 40, that of the padded images, got 64",
    ),
    "small for the network": (
        ["--train_image_size=1"],
        "train_image_size must be at least 4 pixels high and wide",
    ),
    "texts": (["--model_name=text_lstm"], "model_name must be a network of images, got 'text_lst"),
    "videos": (["--model_name=s3dg"], "model_name must be a network of images, got 's3dg'"),
}


@pytest.mark.parametrize(("arguments", "words"), OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_errors_name_the_flag(tmp_path, capsys, arguments, words):
    """An error begins with the flag that was typed, not with what the library calls it."""
    (tmp_path / "data").mkdir()
    flags = [argument.format(tmp_path / "data") for argument in arguments]
    code, _, err = _main(capsys, f"--train_dir={tmp_path / 'run'}", *flags)
    assert code == 1
    [line] = err.splitlines()
    assert line.startswith(f"error: {words.format(tmp_path / 'data')}"), line


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_checkpoint_of_another_model(tmp_path, capsys):
    """Whichever of `--train_dir` and `--resume` names it is at fault."""
    small = ("--batch_size=4", "--max_number_of_steps=1", "--num_clones=1", "--clone_on_cpu")
    own, new = tmp_path / "own", tmp_path / "new"
    assert _main(capsys, f"--train_dir={own}", *small)[0] == 0
    other = ("--model_name=mnist_mlp", "--preprocessing_name=lenet", *small)
    _, _, err = _main(capsys, f"--train_dir={own}", *other)
    assert err.startswith("error: train_dir must be empty or hold checkpoints of this model, got ")
    assert "model_name: lenet\n" in (own / "options.yaml").read_text()
    _, _, err = _main(capsys, f"--train_dir={new}", f"--resume={own}", *other)
    assert err.startswith("error: resume must be a checkpoint of this model, got ")


def test_a_train_dir_that_cannot_be_written(tmp_path, capsys):
    """A train_dir that is a file is an error before anything is built; the file stays."""
    path = tmp_path / "file"
    path.write_text("mine")
    code, out, err = _main(capsys, f"--train_dir={path}")
    assert (code, out) == (1, "")
    assert re.fullmatch(rf"error: train_dir must be a folder .* got {path}: .*\n", err)
    assert path.read_text() == "mine"


def test_debug_shows_the_place(tmp_path):
    """With `--debug` the error is raised where it arose."""
    with pytest.raises(ValueError, match="must be a multiple"):
        script.main(["train", "--debug", "--global_batch_size=7", "--num_clones=2"])


@pytest.mark.slow
@pytest.mark.one_mode
def test_bad_flags_have_no_traceback():
    """From the shell, too, an error is one line and exit code 2."""
    code, out, err = _command("--num_clones=0")
    assert (code, out, err) == (2, "", "error: num_clones must be at least 1, got 0\n")


@pytest.mark.parametrize(
    ("main", "flags"),
    [
        pytest.param(
            script.main,
            "train_dir num_clones precision dataset_name dataset_dir batch_size model_name "
            "optimizer learning_rate max_number_of_steps checkpoint_path eval_every_n_steps",
            id="train",
        ),
        pytest.param(
            eval_image_classifier.main,
            "train_dir checkpoint_path eval_dir num_clones dataset_name dataset_dir "
            "dataset_split_name batch_size model_name eval_interval_secs",
            id="eval",
        ),
        pytest.param(
            export_image_classifier.main,
            "train_dir checkpoint_path output_dir output_file dataset_name dataset_dir model_name "
            "with_preprocessing image_size num_classes",
            id="export",
        ),
    ],
)
def test_help_has_the_flags_of_most_runs(capsys, main, flags):
    """`--help` lists a dozen flags, and its last line says what lists the others."""
    assert main(["command", "--help"]) == 0
    out = capsys.readouterr().out
    shown = re.findall(r"^  --(?:\[no\])?(\w+)", out, re.MULTILINE)
    assert shown == [*flags.split(), "config", "help", "helpfull"]
    assert re.search(r"\n\nThese .* of most runs; --helpfull has all \d+ of them\.\n$", out)


def test_helpfull(capsys):
    """`--helpfull` lists every flag once, under its topic, each topic with a line of its own."""
    code, out, _ = _main(capsys, "--helpfull")
    assert code == 0
    flags = re.findall(r"^  --(?:\[no\])?(\w+)", out, re.MULTILINE)
    fields = [field.name for field in dataclasses.fields(script.TrainOptions)]
    assert sorted(flags) == sorted([*fields, "config", "help", "helpfull"])
    heads = re.findall(r"^([a-z ]+):\n  ([A-Z].+\.)$", out, re.MULTILINE)
    assert [topic for topic, _ in heads] == [topic for topic in TOPICS if topic != "export"]
    topics = dict(re.findall(r"^([a-z ]+):\n(.*?)(?=^\S|\Z)", out, re.MULTILINE | re.DOTALL))
    for topic, flag in [("optimizer", "momentum"), ("inputs", "dataset_dir"), ("loop", "max_num")]:
        assert f"\n  --{flag}" in topics[topic]
    in_a_line = " ".join(out.split())  # a line ends where the terminal does
    assert re.search(
        r"name of the optimizer;[^(]* \(one of: adadelta,[^)]*\) \(default: rmsprop\)", in_a_line
    )


@pytest.mark.parametrize(
    ("arguments", "gpus", "clones", "on_cpu"),
    [
        ([], 0, 2, True),
        ([], 1, 1, False),
        ([], 4, 4, False),
        (["--num_clones=2"], 4, 2, False),
        (["--num_clones=3"], 0, 3, True),
        (["--clone_on_cpu"], 4, 2, True),
    ],
)
def test_clones_follow_the_gpus(arguments, gpus, clones, on_cpu):
    """One clone for each GPU that is visible, or two on the CPU, unless told otherwise."""
    config = training.deployment_config(parse(["train", *arguments]), gpus)
    assert (config.num_clones, config.clone_on_cpu) == (clones, on_cpu)


def test_more_clones_than_gpus():
    """More clones than GPUs names both numbers and the flag that helps."""
    options = parse(["train", "--num_clones=3"])
    message = (
        "num_clones must be at most the number of visible GPUs, 2, got 3; "
        "--clone_on_cpu puts clones on the CPU"
    )
    with pytest.raises(ValueError, match=message):
        training.deployment_config(options, num_gpus=2)


def test_wire_precision(graph, capsys):
    """The flag reaches the deployment, and the banner says so where it is set."""
    cluster = ["train", "--worker_replicas=2", "--num_ps_tasks=1", "--clone_on_cpu"]
    for arguments, said in ((["--wire_precision=bfloat16"], True), ([], False)):
        options = parse([*cluster, *arguments])
        run = plan(options)
        assert run.config.wire_precision == options.wire_precision
        print_banner(run)
        out = capsys.readouterr().out
        assert ("bfloat16 between processes (wire_precision)\n" in out) == said


@pytest.mark.parametrize(
    ("num_ps_tasks", "strategy", "said"),
    [
        (3, "round_robin", "ps 2 without variables (round_robin)\n"),
        (3, "balanced", "ps 1, 2 without variables (balanced)\n"),
        (0, "balanced", "ps_strategy is not used: there are no parameter servers\n"),
        (0, "round_robin", None),
    ],
)
def test_banner_names_servers_without_variables(num_ps_tasks, strategy, said, graph, capsys):
    """Of three servers two get a weight and a bias in turn, balanced one both; or there is none."""
    arguments = [f"--num_ps_tasks={num_ps_tasks}", f"--ps_strategy={strategy}"]
    run = plan(parse(["train", "--clone_on_cpu", *arguments]))
    with tf.device(run.config.variables_device()):
        for name in ("weight", "bias"):
            tf.get_variable(name, [100])
    print_banner(run)
    out = capsys.readouterr().out
    assert said in out if said else "ps_strategy" not in out


def test_wire_precision_needs_several_processes():
    """One process alone is told by the name of its flag that nothing crosses a border."""
    options = parse(["train", "--clone_on_cpu", "--wire_precision=bfloat16"])
    message = "wire_precision must be 'float32' with worker_replicas=1 and num_ps_tasks=0, .* got"
    with pytest.raises(ValueError, match=message):
        training.deployment_config(options, num_gpus=0)


@pytest.mark.parametrize(
    ("arguments", "clones", "way"),
    [
        pytest.param([], 2, "an update of all clones", id="together"),
        pytest.param(["--asynchronous"], 1, "asynchronous: an update of each clone", id="clones"),
        pytest.param(
            ["--worker_replicas=3", "--num_ps_tasks=1"],
            2,
            "asynchronous: an update of each replica",
            id="replicas",
        ),
        pytest.param(
            ["--worker_replicas=3", "--num_ps_tasks=1", "--sync_replicas"],
            6,
            "synchronous: an update of 3 replica(s), 0 backup(s)",
            id="synchronous",
        ),
        pytest.param(
            ["--worker_replicas=3", "--sync_replicas", "--replicas_to_aggregate=2"],
            4,
            "synchronous: an update of 2 replica(s), 1 backup(s)",
            id="backup",
        ),
        pytest.param(
            ["--worker_replicas=3", "--all_reduce"],
            6,
            "all-reduce: each clone has its own copy of the variables",
            id="all-reduce",
        ),
    ],
)
def test_update_counts_clones_and_synchronous_replicas(arguments, clones, way):
    """What two clones per worker contribute to an update, which schedules count."""
    options = parse(["train", *arguments])
    assert training.clones_in_update(options, num_clones=2) == clones
    assert training.way_to_train(options) == way


@pytest.mark.parametrize(
    ("arguments", "batch_size", "in_update", "per_step"),
    [
        pytest.param(["--batch_size=8"], 8, 64, 64, id="together"),
        pytest.param(["--global_batch_size=32"], 4, 32, 32, id="global"),
        pytest.param(["--batch_size=8", "--asynchronous"], 8, 32, 32, id="asynchronous"),
        pytest.param(
            ["--batch_size=8", "--all_reduce", "--worker_replicas=3"], 8, 192, 64, id="all-reduce"
        ),
    ],
)
def test_plan_counts_accumulated_batches(arguments, batch_size, in_update, per_step):
    """Two clones with four batches each: an epoch of 1437 digits has fewer steps."""
    run = plan(parse(["train", "--num_clones=2", "--accumulate_steps=4", *arguments]))
    assert run.batch_size == batch_size
    assert run.batch_size * run.batches_in_update == in_update
    assert run.steps_per_epoch == 1437 // in_update
    assert run.images_per_step == per_step


def test_global_batch_size_is_that_of_all_accumulated_batches():
    """A global batch that cannot be divided names both numbers that divide it."""
    options = parse(["train", "--num_clones=2", "--accumulate_steps=4", "--global_batch_size=12"])
    message = "must be a multiple of num_clones=2 \\* accumulate_steps=4, got 12"
    with pytest.raises(ValueError, match=message):
        plan(options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--replicas_to_aggregate=2"],
            "replicas_to_aggregate must go with sync_replicas, got 2 alone",
            id="aggregate",
        ),
        pytest.param(
            ["--rotate_steps", "--num_ps_tasks=1"],
            "rotate_steps must go with all_reduce or sync_replicas, got it alone",
            id="rotate",
        ),
        pytest.param(
            ["--sync_replicas", "--all_reduce"],
            "sync_replicas must not be given together with all_reduce, got both",
            id="two-ways",
        ),
        pytest.param(
            ["--deterministic", "--asynchronous"],
            "deterministic must be False with asynchronous=True, got True",
            id="deterministic-asynchronous",
        ),
        pytest.param(
            ["--deterministic", "--worker_replicas=3", "--num_ps_tasks=1", "--sync_replicas"],
            "deterministic must be False with worker_replicas=3 on parameter servers, got True",
            id="deterministic-ps",
        ),
    ],
)
def test_ways_to_train_exclude_each_other(arguments, message):
    """Flags that ask for two ways to train are refused, by name."""
    with pytest.raises(ValueError, match=message):
        parse(["train", *arguments])


def test_flags_keep_the_names_of_tf_slim():
    """Users of the original script find their flags, with the defaults that they know.

    Other defaults: the dataset and the network need no files here, and the numbers of clones
    and images follow the machine.
    """
    known = {
        "master": "",
        "train_dir": "/tmp/tfmodel/",
        "warmup_epochs": 0.0,
        "clone_on_cpu": False,
        "worker_replicas": 1,
        "num_ps_tasks": 0,
        "log_every_n_steps": 10,
        "save_summaries_secs": 600,
        "save_interval_secs": 600,
        "task": 0,
        "weight_decay": 0.00004,
        "optimizer": "rmsprop",
        "adadelta_rho": 0.95,
        "adagrad_initial_accumulator_value": 0.1,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "opt_epsilon": 1.0,
        "ftrl_learning_rate_power": -0.5,
        "ftrl_initial_accumulator_value": 0.1,
        "ftrl_l1": 0.0,
        "ftrl_l2": 0.0,
        "momentum": 0.9,
        "rmsprop_momentum": 0.9,
        "rmsprop_decay": 0.9,
        "learning_rate_decay_type": "exponential",
        "learning_rate": 0.01,
        "end_learning_rate": 0.0001,
        "label_smoothing": 0.0,
        "learning_rate_decay_factor": 0.94,
        "num_epochs_per_decay": 2.0,
        "moving_average_decay": None,
        "dataset_split_name": "train",
        "dataset_dir": None,
        "preprocessing_name": None,
        "train_image_size": None,
        "max_number_of_steps": None,
        "num_readers": None,
        "num_preprocessing_threads": None,
        "quantize_delay": -1,
        "labels_offset": 0,
        "use_grayscale": False,
        "checkpoint_path": None,
        "checkpoint_exclude_scopes": None,
        "trainable_scopes": None,
        "ignore_missing_vars": False,
    }
    options = parse(["train"])
    assert {name: getattr(options, name) for name in known} == known
    assert training.clone_batch_size(options, num_clones=2) == 32

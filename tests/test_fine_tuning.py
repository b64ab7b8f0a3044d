"""Fine-tuning with the training script, on real digits."""

import dataclasses
import re
import shlex
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

import train_image_classifier as script
from model_deploy import inputs

FLAGS = {
    "dataset_name": "digits",
    "num_clones": 1,
    "clone_on_cpu": True,
    "batch_size": 32,
    "optimizer": "adam",
    "opt_epsilon": 1e-8,
    "learning_rate": 0.001,
    "learning_rate_decay_type": "fixed",
}


def _digits_to_4(split, data_dir=None, **options):
    """The digits 0 to 4 of the dataset `digits`."""
    whole = inputs.get_dataset("digits", split, data_dir, **options)
    images, labels = whole.source.arrays
    few = labels < 5
    return dataclasses.replace(
        whole,
        name="digits_to_4",
        num_examples=int(few.sum()),
        num_classes=5,
        class_names=whole.class_names[:5],
        source=inputs.ArraySource(lambda: (images[few], labels[few])),
    )


def _train(train_dir, steps, **options):
    """The test accuracy after some steps of LeNet."""
    values = {**FLAGS, "train_dir": str(train_dir), "max_number_of_steps": steps, **options}
    return script.train(script.TrainOptions(**values))


@pytest.fixture
def five_digits(own_registries, tmp_path):
    """The folder of a run on the digits 0 to 4, 30 steps long."""
    inputs.register_dataset("digits_to_4")(_digits_to_4)
    _train(tmp_path / "five", 30, dataset_name="digits_to_4")
    return str(tmp_path / "five")


@pytest.mark.slow
@pytest.mark.one_mode
def test_five_digits_help_with_ten(five_digits, tmp_path, capsys):
    """From five classes to ten: after as many steps more digits are right than from scratch.

    The logits alone, trained on the features of five digits, do better than chance, and
    leave the features as they were.
    """
    capsys.readouterr()
    start = {"checkpoint_path": five_digits, "checkpoint_exclude_scopes": "LeNet/fc4"}
    steps = 10  # with 40, both have learned nearly all of it
    tuned = _train(tmp_path / "tuned", steps, **start)
    out = capsys.readouterr().out
    only_logits = {**start, "trainable_scopes": "LeNet/fc4", "learning_rate": 0.01}
    logits = _train(tmp_path / "logits", steps, **only_logits)
    scratch = _train(tmp_path / "scratch", steps)
    assert tuned > scratch + 0.05
    assert logits > 0.5
    assert f"from {five_digits}/model.ckpt-30: 6 restored, 2 skipped, 0 missing, 0 mis-s" in out
    before, after = (
        tf.train.load_checkpoint(str(folder)) for folder in (five_digits, tmp_path / "logits")
    )
    for name in ("conv1/weights", "conv2/biases", "fc3/weights"):
        assert (before.get_tensor(f"LeNet/{name}") == after.get_tensor(f"LeNet/{name}")).all()


@pytest.mark.slow
@pytest.mark.one_mode
def test_refusals_of_the_command(tmp_path, capsys):
    """Mistakes are one line that says what to do; they train nothing and leave no file."""

    def command(folder, **options):
        flags = {**FLAGS, "train_dir": tmp_path / folder, "max_number_of_steps": 1, **options}
        code = script.main(["train", *(f"--{name}={value}" for name, value in flags.items())])
        return code, capsys.readouterr().err.splitlines()[-1]

    command("run")
    start = tmp_path / "run"
    code, line = command("run", checkpoint_path=start)
    assert code == 1
    assert line.startswith("error: checkpoint_path must not be given where a run goes on from ")
    code, line = command("new", checkpoint_path=start, labels_offset=1)
    assert code == 1
    assert line.endswith("; use --checkpoint_exclude_scopes=LeNet/fc4")
    code, line = command("new", checkpoint_path=start, trainable_scopes="LeNet/logits")
    assert code == 1
    assert line.endswith("there are LeNet/conv1, LeNet/conv2, LeNet/fc3, LeNet/fc4")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.slow
@pytest.mark.one_mode
def test_the_commands_of_the_documentation(tmp_path, monkeypatch, capsys):
    """The commands in docs/fine_tuning.md run, and print the table that is shown there."""
    monkeypatch.chdir(tmp_path)
    text = (Path(script.__file__).parent / "docs" / "fine_tuning.md").read_text()
    [commands, shown] = re.findall(r"```(?:bash)?\n(.*?)```", text, re.DOTALL)
    for line in commands.splitlines():
        assert script.main(shlex.split(line)) == 0
    assert f"\n{shown}" in capsys.readouterr().out

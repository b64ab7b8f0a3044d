"""Commands read their flags, help and refuse, before TensorFlow, which takes seconds to import."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.interface import COMMANDS

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]
REFUSED = [
    ("train_image_classifier --no_such_flag", "error: Unknown command line flag 'no_such_flag'"),
    ("train_image_classifier --model_name=no_such", "error: model_name must be one of alexnet_v2"),
    ("train_image_classifier --model_name=keras/No", "error: model_name must be one of alexnet_v2"),
    ("train_image_classifier --dataset_name=no", "error: dataset_name must be one of cifar10, "),
    ("train_image_classifier --preprocessing_name=no", "error: preprocessing_name must be one of "),
    ("train_image_classifier --profile_steps=5,1", "error: profile_steps must be the first and "),
    ("train_image_classifier --export_keras=a", "error: export_keras must end with .weights.h5 "),
    ("train_image_classifier --trainable_scopes=a,,b", "error: trainable_scopes must be scopes "),
    ("train_image_classifier --no_weight_decay=(", "error: no_weight_decay must be a regular "),
    ("train_image_classifier --loss_scale=-1", "error: loss_scale must be "),
    ("train_image_classifier --learning_rate_boundaries=1", "error: learning_rate_factors must "),
    ("train_image_classifier --all_reduce --asynchronous", "error: all_reduce must not be given "),
    ("train_image_classifier --config=recipes/no.yaml", "error: config must be a file, or a "),
    (
        "train_image_classifier --config=recipes/cifar10.yaml --clip_norm=-3",
        "error: clip_norm must be more than 0, got -3.0",
    ),
    ("train_image_classifier --worker_hosts=abc", "error: worker_hosts[0] must be host:port"),
    ("train_image_classifier --worker_replicas=2", "error: num_ps_tasks must be at least 1 with "),
    (
        "train_image_classifier --wire_precision=bfloat16",
        "error: wire_precision must be ",
    ),
    (
        "train_image_classifier --learning_rate_decay_type=plateau",
        "error: learning_rate_decay_type=plateau must go with eval_every_n_steps, got None",
    ),
    ("eval_image_classifier", "error: train_dir or checkpoint_path must be given, got neither"),
    (
        "export_image_classifier --train_dir=a",
        "error: output_dir or output_file or output_onnx or output_tflite must be given, got none",
    ),
    ("nets --name=no_such", "python -m nets: error: argument --name: invalid choice: 'no_such'"),
    ("model_deploy.plan --model_name=no_such", "error: model_name must be one of alexnet_v2"),
    ("model_deploy.plan --bandwidth=fast", "error: bandwidth must be such as 400Mbit"),
]


@pytest.fixture
def environ(tmp_path):
    """An environment in which TensorFlow cannot be imported."""
    (tmp_path / "tensorflow.py").write_text("raise ImportError('tensorflow was imported')")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_tensorflow(command, environ):
    """`--help` of every command is printed where TensorFlow cannot be imported."""
    arguments = [sys.executable, "-m", command, "--help"]
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=True)
    assert "--help" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("command", "said"), REFUSED, ids=[command for command, _ in REFUSED])
def test_refusals_need_no_tensorflow(command, said, environ):
    """What is wrong with options is said, and the status is not 0, without TensorFlow."""
    arguments = [sys.executable, "-m", *command.split()]
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert done.stderr.splitlines()[-1].startswith(said)


def test_a_launch_needs_no_tensorflow(environ):
    """A cluster of programs that do without TensorFlow is launched without TensorFlow."""
    arguments = [sys.executable, "-m", "model_deploy.launch", "--", "true"]
    subprocess.run(arguments, env=environ, capture_output=True, check=True)


def test_rules_of_fields_need_no_tensorflow(environ):
    """Each flag of the scripts that has a rule refuses a value that breaks it."""
    program = """
        import dataclasses, sys
        import eval_image_classifier, export_image_classifier, train_image_classifier
        scripts = [
            (train_image_classifier.main, train_image_classifier.TrainOptions),
            (eval_image_classifier.main, eval_image_classifier.EvalOptions),
            (export_image_classifier.main, export_image_classifier.ExportOptions),
        ]
        for main, options in scripts:
            for field in dataclasses.fields(options):
                least = [field.metadata[name] for name in ("minimum", "above")]
                limit = next((each for each in least if each is not None), None)
                if field.metadata["choices"] or limit is not None:
                    value = "no_such" if limit is None else limit - 1
                    assert main(["command", f"--{field.name}={value}"]) == 2, field.name
                    print(field.name)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert len(names) > 60
    for name, line in zip(names, done.stderr.splitlines(), strict=True):
        assert line.startswith(f"error: {name} must be "), line

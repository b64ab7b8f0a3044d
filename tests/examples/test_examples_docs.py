"""The commands of docs/examples.md train."""

import importlib
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from tests.processes.harness import LAUNCH, Processes

pytestmark = pytest.mark.one_mode

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "examples.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", DOCUMENT, re.DOTALL)
    for line in block.splitlines()
]
ACCURACY = re.compile(r"test accuracy at step (\d+): ([\d.]+)\n")
STEPS = 800  # of the command for a cluster
# The others have a process of their own: one that is watched for notices, and a cluster; or, as
# the DCGAN, tests of their own.
_OTHERS = ("launch", "--num_ps", "dcgan.py", "dlrm.py", "wide_and_deep.py")
PROGRAMS = [each for each in COMMANDS[1:] if not any(word in each for word in _OTHERS)]


def names(commands):
    """Names of the tests: the program and its last flag."""
    return [
        re.sub(r".*examples/(\w+)\.py.*?(--asynchronous)?$", r"\1\2", each) for each in commands
    ]


def test_every_example_has_its_command():
    """Each file in examples/ is run by a command and spoken of."""
    found = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert {name for command in COMMANDS for name in re.findall(r"(\w+\.py)", command)} == found
    assert set(re.findall(r"`examples/(\w+\.py)`", DOCUMENT)) == found


@pytest.mark.slow
@pytest.mark.parametrize("command", PROGRAMS, ids=names(PROGRAMS))
def test_commands_train(command, tmp_path, monkeypatch, capsys):
    """Each program ends with a checkpoint in its folder and a test accuracy above 0.9."""
    monkeypatch.chdir(tmp_path)
    _, path, *flags = shlex.split(command)
    script = importlib.import_module(f"examples.{pathlib.Path(path).stem}")
    if script.__name__.endswith("keras_cifar10"):
        flags.append("--batch_size=32")  # a quarter
    if script.__name__.endswith("slim_quickstart"):
        flags.append("--batch_size=8")  # half
    assert script.main([path, *flags]) == 0
    (folder,) = re.findall(r"--train_dir=(\S+)", command)
    step, accuracy = ACCURACY.search(capsys.readouterr().out).groups()
    assert (tmp_path / folder / f"model.ckpt-{step}.index").exists()
    assert float(accuracy) > 0.9


@pytest.mark.slow
def test_the_cluster_trains(tmp_path):
    """Launched processes train together, and every one ends by itself with 0."""
    (command,) = (each for each in COMMANDS if "--num_workers" in each)
    # `python -m model_deploy.launch <flags> -- python <program>`
    words = shlex.split(command.replace("mnist_run", str(tmp_path / "run")))
    flags, program = words[3 : words.index("--")], words[words.index("--") + 2 :]
    with Processes(tmp_path) as processes:
        launch = processes.start(
            "launch",
            [*LAUNCH, *flags, f"--log_dir={tmp_path}", "--", sys.executable, *program],
            guarded=False,
        )
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    lines = re.findall(rf"worker (\d)\| step \d+/{STEPS} .*local step \d+", launch.log)
    assert set(lines) == {"0", "1"}
    step, accuracy = ACCURACY.search(launch.log).groups()
    assert int(step) == STEPS
    assert float(accuracy) > 0.9
    assert (tmp_path / "run" / "checkpoint").exists()


@pytest.mark.slow
def test_workers_that_come_and_go(tmp_path):
    """Without a fault the elastic run has one world, and all workers end with its last step."""
    (command,) = (each for each in COMMANDS if "--max_workers" in each)
    words = shlex.split(command.replace("elastic_", f"{tmp_path}/elastic_", 1))
    words[-1] = "--max_steps=60"  # a tenth
    flags, program = words[3 : words.index("--")], words[words.index("--") + 2 :]
    program = [each.replace("elastic_run", str(tmp_path / "run")) for each in program]
    with Processes(tmp_path) as processes:
        launch = processes.start(
            "launch", [*LAUNCH, *flags, "--", sys.executable, *program], guarded=False
        )
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    assert re.findall(r"^launch\| world (\d+)", launch.log, re.MULTILINE) == ["1"]
    assert len(re.findall(r"worker ended after step 60, loss", launch.log)) == 3
    assert (tmp_path / "run" / "model.ckpt-60.index").exists()


@pytest.mark.slow
def test_the_keras_model_on_a_parameter_server(tmp_path):
    """By one flag the program starts a cluster, which trains and writes Keras' weights.

    The accuracy is that of the same program without a cluster; a few small steps show the rest.
    """
    (command,) = (each for each in COMMANDS if "keras_cifar10" in each and "--num_ps" in each)
    _, path, *flags = shlex.split(command.replace("--max_steps=240", "--max_steps=8"))
    program = [sys.executable, str(ROOT / path), *flags, "--batch_size=16"]
    with Processes(tmp_path) as processes:
        process = processes.start("program", program, cwd=tmp_path)
        assert process.wait() == 0, process.log
        assert processes.living() == []
    step, _ = ACCURACY.search(process.log).groups()
    assert int(step) == 8
    assert (tmp_path / "keras_ps_run" / "model.weights.h5").exists()


@pytest.mark.slow
def test_output_is_quiet(tmp_path):
    """In a process of its own a program prints its lines, and none of TensorFlow's notices."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    result = subprocess.run(
        [sys.executable, *shlex.split(COMMANDS[0])[1:]],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    line = r"step \d+/60  loss [\d.]+  rate 0.05  .* images/s  [\d.]+ s/batch  .* left\n"
    assert re.fullmatch(f"({line}){{6}}effective time .*\\n", result.stderr)
    assert float(ACCURACY.fullmatch(result.stdout)[2]) > 0.9

"""Runs in the stores of MLflow, Weights & Biases and Aim, read back by their own packages."""

import json
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from model_deploy.trackers import send_model
from tests.processes.harness import Processes
from tests.training.halving import run_halving

# Warnings of the packages are their own.
pytestmark = [pytest.mark.one_mode, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def package(name):
    """The package, or a skip."""
    return pytest.importorskip(name, reason=f"needs pip install 'model_deploy[{name}]'")


def run_twice(folder, name):
    """Trains to step 2, goes on to step 4, and sends a model."""
    for last_step in (2, 4):
        run_halving(folder, last_step, tracker=name, log_every_n_steps=1)
    (folder / "model.bin").write_bytes(b"a model")
    send_model(str(folder), [name], str(folder / "model.bin"))


@pytest.fixture
def mlflow_store(request, tmp_path, monkeypatch):
    """Where MLflow keeps runs: a folder, or a server on the loopback."""
    package("mlflow")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "halving")
    if request.param == "files":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/store.db")
        monkeypatch.chdir(tmp_path)  # with the folder of artifacts
        yield
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host=127.0.0.1", f"--port={port}"]
    command += [
        f"--backend-store-uri=sqlite:///{tmp_path}/store.db",
        f"--artifacts-destination={tmp_path}/artifacts",
    ]
    with open(tmp_path / "server.log", "w") as log, Processes(tmp_path):
        server = subprocess.Popen(
            [*command, "--workers=1"], cwd=tmp_path, stdout=log, stderr=log, start_new_session=True
        )
        try:
            Processes.wait_until(lambda: _answers(port), 120)
            monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
            yield
        finally:
            subprocess.run(["kill", "--", f"-{server.pid}"], check=False)
            server.wait(30)


def _answers(port):
    time.sleep(0.2)
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


@pytest.mark.parametrize("mlflow_store", ["files", "server"], indirect=True)
def test_mlflow(mlflow_store, tmp_path, capsys):
    """One run has settings, metrics of all steps, the picture and the model, and is finished."""
    run_twice(tmp_path / "run", "mlflow")
    assert "warning" not in capsys.readouterr().err
    client = package("mlflow").MlflowClient()
    [run] = client.search_runs([client.get_experiment_by_name("halving").experiment_id])
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["max_steps"] == "2"
    losses = client.get_metric_history(run.info.run_id, "loss")
    assert [(each.step, each.value) for each in losses] == [
        (step, 4.0 ** (1 - step) / 2) for step in range(1, 5)
    ]
    paths = [client.list_artifacts(run.info.run_id, each) for each in ("pictures", "models")]
    assert [[each.path for each in found] for found in paths] == [
        ["pictures/training.png"],
        ["models/model.bin"],
    ]


def test_a_server_that_is_gone(tmp_path, monkeypatch, capsys):
    """The run ends as without a tracker, and says in one line that nothing was sent."""
    package("mlflow")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # without `listen`: refuses connections
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        assert run_halving(tmp_path, 3, tracker="mlflow").global_step == 3
    said = [line for line in capsys.readouterr().err.splitlines() if "tracker mlflow" in line]
    assert len(said) == 2
    assert "tracker mlflow fails: " in said[0]
    assert "records are not sent" in said[1]


def test_wandb(tmp_path, monkeypatch, capsys):
    """Offline, its files have all steps of one run, the picture and the model."""
    package("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    run_twice(tmp_path / "run", "wandb")
    assert "warning" not in capsys.readouterr().err
    runs, rows, pictures, models = set(), {}, [], []
    for path in sorted(tmp_path.glob("wandb/offline-run-*/run-*.wandb")):
        for record in _records(path.read_bytes()):
            items = {
                (i.key or "/".join(i.nested_key)): json.loads(i.value_json or "{}")
                for i in record.history.item
            }
            if "loss" in items:
                rows[items["step"]] = items["loss"]
            pictures += [items["training/path"]] if "training/path" in items else []
            runs |= {record.run.run_id} - {""}
            models += [record.artifact.name] if record.artifact.name else []
    assert rows == {step: 4.0 ** (1 - step) / 2 for step in range(1, 5)}
    [run] = runs
    assert models == [f"{run}-model.bin"]
    assert pictures
    assert all(any(tmp_path.glob(f"wandb/*/files/{picture}")) for picture in pictures)


def _records(file):
    """The records of a file of Weights & Biases, in LevelDB's format of logs."""
    from wandb.proto import wandb_internal_pb2  # noqa: PLC0415

    at, data = 7, b""  # behind the file's own header
    while at + 7 <= len(file):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack("<HB", file[at + 4 : at + 7])
        data += file[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            yield record
            data = b""


def test_aim(tmp_path, monkeypatch, capsys):
    """Its repository has one run with settings, all steps, the picture and where the model is."""
    aim = package("aim")
    monkeypatch.setenv("AIM_REPO", str(tmp_path))
    run_twice(tmp_path / "run", "aim")
    assert "warning" not in capsys.readouterr().err
    [known_as] = aim.Repo(str(tmp_path)).list_all_runs()
    run = aim.Run(known_as, repo=str(tmp_path), system_tracking_interval=None)
    try:
        [loss] = [each for each in run.metrics() if each.name == "loss"]
        found = loss.dataframe()
        assert dict(zip(found["step"], found["value"], strict=True)) == {
            step: 4.0 ** (1 - step) / 2 for step in range(1, 5)
        }
        assert run["options"]["max_steps"] == 4
        assert run["models", "model.bin"] == str(tmp_path / "run" / "model.bin")
        assert "training" in str(run.collect_sequence_info("images"))
    finally:
        run.close()

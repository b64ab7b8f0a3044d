"""The command as a worker of an elastic run: what it refuses, and what it does in each world."""

import re

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import config as tf_config

import train_image_classifier as script
from model_deploy import elastic, internals
from model_deploy.cluster import WORKER, WORLD_FILE, World, begun_file, write_world
from model_deploy.commands import command_line
from model_deploy.elastic.member import deployment_in
from model_deploy.image_training.worlds import NOT_ELASTIC
from model_deploy.training import TrainResult

SMALL = ("--dataset_name=synthetic", "--clone_on_cpu", "--num_clones=1", "--batch_size=4")
FIRST = World(1, 2, {0: "a:1", 1: "b:1"})


@pytest.fixture
def world_file(tmp_path, monkeypatch):
    """A file with the first world, in which this process is worker 1."""
    path = tmp_path / "world.json"
    write_world(path, FIRST)
    monkeypatch.setenv(WORLD_FILE, str(path))
    monkeypatch.setenv(WORKER, "1")
    return path


@pytest.fixture
def in_worlds(monkeypatch):
    """Sets what is done in place of the training: a function of `build` and `config`."""

    def use(visit):
        def train_elastic(build, config, train_dir, **settings):
            visit(build, config)
            return TrainResult(0, None)

        monkeypatch.setattr(elastic, "train_elastic", train_elastic)

    use(lambda build, config: None)
    return use


def save_checkpoint(folder, variables):
    """Writes zeros for variables of a graph as the checkpoint of step 1."""
    with tf.Graph().as_default(), tf.Session() as session:
        zeros = {each.op.name: tf.Variable(tf.zeros(each.shape, each.dtype)) for each in variables}
        session.run(tf.global_variables_initializer())
        tf.train.Saver(zeros).save(session, f"{folder}/model.ckpt", global_step=1)


# Flags, and what the error says.
REFUSED = {
    "another server": (["--master=grpc://a:1"], "master must be '' for an elastic run, got 'grp"),
    "source": (["--cluster_source=none"], "cluster_source must be 'auto' .*, got 'none'"),
    "job": (["--job_name=worker"], "job_name must be None for an elastic run, got 'worker'"),
    "task": (["--task=1"], "task must be 0 for an elastic run, got 1"),
    "task_id": (["--task_id=0"], "task_id must be None for an elastic run, got 0"),
    "workers": (["--worker_hosts=a:1"], "worker_hosts must be '' for an elastic run, got 'a:1'"),
    "servers": (["--ps_hosts=a:1"], "ps_hosts must be '' for an elastic run, got 'a:1'"),
    "number of workers": (["--worker_replicas=3"], "worker_replicas must be 1 .*, got 3"),
    "number of servers": (["--num_ps_tasks=1"], "num_ps_tasks must be 0 .*, got 1"),
    "synchronous": (["--sync_replicas"], "sync_replicas must be False .*, got True"),
    "backups": (
        ["--sync_replicas", "--replicas_to_aggregate=1"],
        "sync_replicas must be False for an elastic run, got True",
    ),
    "asynchronous": (["--asynchronous"], "asynchronous must be False .*, got True"),
    "parts": (["--accumulate_steps=2"], "accumulate_steps must be 1 for an elastic run, got 2"),
    "batch norms": (["--sync_batch_norm"], "sync_batch_norm must be False .*, got True"),
    "wire": (["--wire_precision=bfloat16"], "wire_precision must be 'float32' .*, got 'bfloat16'"),
    "copies": (
        ["--copies_check_every_n_steps=5"],
        "copies_check_every_n_steps must be None for an elastic run, got 5",
    ),
    "steps made twice": (
        ["--verify_every_n_steps=5"],
        "verify_every_n_steps must be None for an elastic run, got 5",
    ),
    "file of Keras": (
        ["--model_name=keras/MobileNetV2", "--export_keras=a.keras"],
        "export_keras must be None for an elastic run, got 'a.keras'",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_flags_that_are_refused(world_file, capsys, tmp_path, arguments, message):
    """A flag that an elastic run has no use for is one line that names it and its value."""
    code = script.main(["train", *SMALL, f"--train_dir={tmp_path}/run", *arguments])
    [line] = capsys.readouterr().err.splitlines()
    assert code == 1
    assert re.match(f"error: {message}", line), line
    assert not (tmp_path / "run").exists()


def test_all_that_is_refused_has_a_case():
    """The table above has each of the fields."""
    flags = {flag[2:].partition("=")[0] for arguments, _ in REFUSED.values() for flag in arguments}
    assert flags >= set(NOT_ELASTIC)


def options(tmp_path, *arguments):
    flags = ["train", *SMALL, f"--train_dir={tmp_path}/run", *arguments]
    return command_line.parse_options(flags, script.TrainOptions)


def test_what_an_elastic_run_is_may_be_said(world_file, in_worlds, tmp_path):
    """All-reduce of all workers is what `options.yaml` of such a run has, and no mistake."""
    seen = []
    in_worlds(lambda build, config: seen.append(config))
    said = ("--all_reduce", "--aggregate_on=all_reduce", "--worker_replicas=2")
    script.run_task(options(tmp_path, *said))
    assert len(seen) == 1


def test_deterministic_ops(world_file, in_worlds, tmp_path):
    """`--deterministic` counts in elastic runs, too."""
    seen = []
    in_worlds(lambda build, config: seen.append(internals.ops_are_deterministic()))
    try:
        script.run_task(options(tmp_path))
        script.run_task(options(tmp_path, "--deterministic"))
    finally:
        tf_config.disable_op_determinism()
    assert seen == [False, True]


@pytest.mark.parametrize("resume", ["auto", "never"])
def test_settings_of_the_run(world_file, in_worlds, tmp_path, capsys, resume):
    """Who becomes the chief notes the settings, once, though the run has a checkpoint by then."""
    train_dir = tmp_path / "run"
    found = []

    def visit(build, config):
        worlds = (FIRST, World(2, 2, {1: "b:2"}), World(3, 2, {1: "b:3", 2: "c:3"}))
        for world in worlds:
            with tf.Graph().as_default():
                build(deployment_in(world, 1, config))
                if world is FIRST:
                    save_checkpoint(train_dir, tf.global_variables())
            found.append(sorted(path.suffix for path in train_dir.glob("*.options")))
            found.append((train_dir / "options.yaml").exists())
            (train_dir / "options.yaml").unlink(missing_ok=True)

    in_worlds(visit)
    script.run_task(options(tmp_path, f"--resume={resume}", "--max_number_of_steps=2"))
    assert found == [[], False, [".options"], True, [".options"], False]
    assert capsys.readouterr().out.count("lenet on synthetic") == 1


def test_checkpoints_of_another_run(world_file, in_worlds, tmp_path):
    """All that are there from the start refuse what only the chief would trip over."""
    save_checkpoint(tmp_path / "run", [tf.get_variable("weight", [])])
    with pytest.raises(ValueError, match="must hold no checkpoint with resume='never'"):
        script.run_task(options(tmp_path, "--resume=never"))


@pytest.mark.parametrize("flag", ["--resume=never", "--checkpoint_path=a/model.ckpt-1"])
def test_who_comes_late_finds_checkpoints(world_file, in_worlds, tmp_path, flag):
    """They are of this run, once it has begun: a worker that joins it does not refuse them."""
    save_checkpoint(tmp_path / "run", [tf.get_variable("weight", [])])
    write_world(world_file, World(2, 2, {0: "a:2", 1: "b:2"}))
    with pytest.raises(ValueError, match=r"must hold no .*-1; choose|not be given where .*-1, got"):
        script.run_task(options(tmp_path, flag))
    open(begun_file(world_file), "w").close()
    assert script.run_task(options(tmp_path, flag)) is None

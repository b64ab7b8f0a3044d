"""Runs that verify their steps: where they go back to, how they end, what they save and refuse."""

import re
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import train_image_classifier as script
from model_deploy import DeploymentConfig, deploy, training
from model_deploy.verification import CorruptionError
from tests.goldens import cpu_config
from tests.processes.harness import Processes
from tests.processes.training import undisturbed
from tests.training.halving import halving_model
from tests.verification.injector import Injector, build

STEPS = 12


def _train(folder, injector=None, **settings):
    """A run of two clones, each step of which takes all examples."""
    with tf.Graph().as_default():
        model = build("slim_mlp", injector=injector)
        settings = {"verify_every_n_steps": 2, "save_interval_steps": 4, **settings}
        training.train(
            model, folder, max_steps=STEPS, session_config=cpu_config(), log_every_n_steps=1,
            **settings,
        )  # fmt: skip


def _values(folder, step=STEPS):
    path = str(folder / f"model.ckpt-{step}")
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name).tobytes() for name, _ in tf.train.list_variables(path)}


def _armed(executions):
    """An injector that flips a bit of a batch after so many executions of a step."""
    injector = Injector()
    injector.arm("batch of clone_1/IteratorGetNext", executions, (3, 22))
    return injector


def _saved(folder):
    return sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("model.ckpt-*.index"))


def test_a_run_goes_back(tmp_path, capfd):
    """A bit that flips in the second making of step 6, the ninth execution, takes the run back to
    the checkpoint of step 4. It ends with the values of a run in which nothing happens.
    """
    _train(tmp_path / "calm", Injector())
    _train(tmp_path / "flipped", _armed(8))
    assert _values(tmp_path / "flipped") == _values(tmp_path / "calm")
    found = re.findall(
        r"silent corruption at step (\d+): (.*); going back to (.*)", capfd.readouterr().err
    )
    [(step, what, checkpoint)] = found
    assert (step, checkpoint) == ("6", str(tmp_path / "flipped" / "model.ckpt-4"))
    assert "on /device:CPU:1 (clone 1)" in what
    assert "clone 0" not in what


@pytest.mark.one_mode
def test_a_run_without_a_checkpoint_goes_back_to_its_start(tmp_path, capfd):
    """Before the first checkpoint a run begins anew."""
    _train(tmp_path, _armed(1))
    assert re.search(
        r"silent corruption at step 2: .*; going back to the start", capfd.readouterr().err
    )
    assert _saved(tmp_path) == [4, 8, 12]


@pytest.mark.one_mode
def test_a_run_ends_if_asked(tmp_path):
    """With `on_corruption` at `end` the run ends with the error, and saves no later step."""
    with pytest.raises(CorruptionError, match=r"^silent corruption at step 6: "):
        _train(tmp_path, _armed(8), on_corruption="end")
    assert _saved(tmp_path) == [4]


@pytest.mark.one_mode
def test_a_step_that_always_differs_ends_the_run(tmp_path, capfd):
    """A step that gives other numbers each time ends the run when it has gone back twice."""
    numbers = iter(range(1000))
    config = DeploymentConfig(clone_on_cpu=True)

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        number = tf.py_func(lambda _: np.float32(next(numbers)), [weight.read_value()], tf.float32)
        tf.losses.add_loss(weight * number)

    model = deploy(config, model_fn, optimizer=tf.train.GradientDescentOptimizer(0.1))
    with pytest.raises(CorruptionError, match="gradient of weight"):
        training.train(model, tmp_path, max_steps=4, verify_every_n_steps=2)
    assert capfd.readouterr().err.count("; going back to the start") == 2


@pytest.mark.one_mode
def test_only_verified_steps_are_saved(tmp_path):
    """A checkpoint that is due by time waits for the next step that is made twice."""
    _train(tmp_path, save_interval_steps=None, save_interval_secs=0, verify_every_n_steps=5)
    assert _saved(tmp_path) == [5, 10, 12]


def _with_table(table):
    ids = tf.constant([1, 2], tf.int64)
    with tf.control_dependencies([table.insert(ids, ids)]):
        return tf.reduce_sum(tf.cast(table.lookup(ids), tf.float32))


def _random_in_a_loop():
    body = lambda i, x: (i + 1, x + tf.random_uniform([]) * tf.get_variable("v", []))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), tf.constant(0.0)))[1]


def _refused_model(kind):
    def model_fn():
        loss = tf.get_variable("weight", [], initializer=tf.ones_initializer()) ** 2
        if kind == "table":
            table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
            loss += _with_table(table)
        if kind == "loop":
            loss += _random_in_a_loop()
        tf.losses.add_loss(loss)

    return model_fn


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        (
            {"num_clones": 2, "asynchronous": True},
            "",
            "None with asynchronous clones: others change",
        ),
        (
            {"num_ps_tasks": 1},
            "",
            "None with num_ps_tasks=1: replicas change the values on servers",
        ),
        (
            {},
            "table",
            "cannot be made twice, got op .*: LookupTableInsertV2 changes what is no var",
        ),
        ({}, "loop", "cannot be made twice, got op .*: RandomUniform is in a"),
    ],
)
def test_what_cannot_be_verified_is_refused(tmp_path, settings, kind, message):
    """A way to train, or a step, that cannot be made twice is refused by name, with the reason."""
    config = DeploymentConfig(clone_on_cpu=True, **settings)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = deploy(config, _refused_model(kind), optimizer=optimizer)
    with pytest.raises(ValueError, match=f"verify_every_n_steps must be {message}|{message}"):
        training.train(model, tmp_path, max_steps=4, verify_every_n_steps=2)


class _Counting(tf.train.SessionRunHook):
    """Fetches an op with each step."""

    def __init__(self, op):
        self._op = op

    def before_run(self, run_context):
        """Asks for the op."""
        return tf.train.SessionRunArgs(self._op)


def test_hooks_may_not_change_a_verified_step(tmp_path):
    """A hook whose fetch changes a variable of its own is refused in a step that is made twice."""
    model = halving_model()
    own = tf.get_variable("own", [], initializer=tf.zeros_initializer(), trainable=False)
    hook = _Counting(tf.assign_add(own, 1.0).op)
    with pytest.raises(ValueError, match=r"hooks must fetch, .* got a fetch that needs own"):
        training.train(model, tmp_path, max_steps=4, verify_every_n_steps=2, hooks=[hook])


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("step", "named"), [(33, "copies of variable weights"), (30, "variable weights on")]
)
def test_workers_go_back_together(tmp_path, step, named):
    """By all-reduce a stored weight of a worker that flips after step 33 is found in step 40, and
    one that an update has written in step 30 at once. All workers go on from the newest checkpoint,
    in the same processes, to the weights of a calm run.
    """
    flags = ["--mode=all_reduce", f"--train_dir={tmp_path / 'train'}", f"--flip_step={step}"]
    flags += ["--verify_every_n_steps=10", "--save_interval_steps=20"]
    program = [sys.executable, "-m", "tests.verification.worker", *flags]
    with Processes(tmp_path) as processes:
        launch = processes.launch(["--num_workers=2"], program)
        assert launch.wait() == 0, launch.log
        found = re.findall(r"silent corruption at step (\d+): (.*); going back", launch.log)
        processes.assert_no_orphan()
    assert [int(number) for number, _ in found] == [-(-step // 10) * 10] * 2
    assert any(what.startswith(named) and "/task:1/" in what for _, what in found), found
    values = tf.train.load_checkpoint(str(tmp_path / "train" / "model.ckpt-60"))
    ends = np.append(values.get_tensor("weights"), values.get_tensor("bias"))
    np.testing.assert_allclose(ends, undisturbed(60, 2), atol=1e-6)


def test_an_answer_needs_a_question():
    """`on_corruption` alone is refused."""
    with pytest.raises(ValueError, match="must go with verify_every_n_steps, got end alone"):
        training.LoopOptions(on_corruption="end")


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_verified_classifier_is_the_same(tmp_path):
    """With images, augmentation, dropout and averages, a run some of whose steps are made
    twice ends with the bits of one whose steps are not.
    """
    flags = ["--num_clones=2", "--all_reduce", "--clone_on_cpu", "--model_name=lenet"]
    flags += ["--global_batch_size=8"]
    flags += ["--moving_average_decay=0.9", "--max_number_of_steps=6", "--optimizer=adam"]
    for name, more in (("once", []), ("twice", ["--verify_every_n_steps=3"])):
        assert script.main(["train", *flags, *more, f"--train_dir={tmp_path / name}"]) == 0
    assert _values(tmp_path / "twice", 6) == _values(tmp_path / "once", 6)

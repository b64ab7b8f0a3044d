"""What `train_elastic` is given must be an elastic run; where one starts, and goes on from."""

import os
import time
import weakref

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.cluster import World, begun_file, write_world
from model_deploy.elastic import ElasticModel, Member, train_elastic
from model_deploy.launch import ReservedPorts
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

CONFIG = DeploymentConfig(clone_on_cpu=True)
# Of whom nobody listens: no world of theirs comes to a step.
ABSENT = {0: "127.0.0.1:1", 1: "127.0.0.1:2"}


class Built(Exception):  # noqa: N818 - it is no mistake
    """The model would be built now."""


def refuse_to_build(config):
    """In place of a model."""
    raise Built


def build_counter(config, hooks=()):
    """A weight from which each step takes 1."""
    tf.train.get_or_create_global_step()

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(tf.identity(weight))

    model = deploy(config, model_fn, optimizer=tf.train.GradientDescentOptimizer(1.0))
    return ElasticModel(model, {"hooks": hooks})


def save_checkpoint(folder, step, weight):
    """Writes a checkpoint of that model, and returns its path."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weight", [], initializer=tf.constant_initializer(weight))
        tf.get_variable("global_step", [], tf.int64, tf.constant_initializer(step))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, f"{folder}/model.ckpt", global_step=step)


def weight_in(folder):
    """The value in the newest checkpoint of a folder."""
    path = tf.train.latest_checkpoint(str(folder))
    return tf.train.load_checkpoint(path).get_tensor("weight")


class ChangesWorld(tf.train.SessionRunHook):
    """Writes another world after a step, and lets the next ones be slow: the file is read at times.

    Args:
      step: the step.
      write: writes it.
    """

    def __init__(self, step, write):
        self._step = step
        self._write = write

    def after_run(self, run_context, run_values):
        """Writes it once."""
        if run_context.report.step == self._step:
            self._write()
        if run_context.report.step >= self._step:
            time.sleep(0.1)


class Freed(tf.train.SessionRunHook):
    """Waits in the first step until a graph is freed.

    Args:
      graph: a weak reference.
    """

    def __init__(self, graph):
        self._graph = graph

    def after_run(self, run_context, run_values):
        """Waits, not for ever."""
        Processes.wait_until(lambda: self._graph() is None)


def test_model_of_another_deployment(tmp_path):
    """A model that was not deployed for the part of the worker is refused."""
    path = tmp_path / "world.json"
    write_world(path, World(1, 1, {0: "127.0.0.1:1"}))

    def build(given):
        assert given.global_parts == 1
        return build_counter(CONFIG)

    with pytest.raises(ValueError, match=r"for the configuration that it was given, got a model"):
        train_elastic(build, CONFIG, tmp_path, member=Member(path, 0))


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("worker", [0, 1])
def test_folder_of_another_run(tmp_path, worker, generation):
    """Each worker refuses it before it builds, as the chief's end alone would be taken for a loss.

    So it is in later worlds, too, as long as the run has not begun.
    """
    path = tmp_path / "world.json"
    write_world(path, World(generation, 2, ABSENT))
    save_checkpoint(tmp_path, 3, 0.0)
    with pytest.raises(ValueError, match=r"no checkpoint with resume='never', got .*-3"):
        train_elastic(
            refuse_to_build, CONFIG, tmp_path, member=Member(path, worker), resume="never"
        )


def test_checkpoint_that_others_have_overtaken(tmp_path):
    """Each worker refuses a checkpoint to start from after which there are others."""
    path = tmp_path / "world.json"
    write_world(path, World(1, 2, ABSENT))
    first = save_checkpoint(tmp_path, 3, 0.0)
    save_checkpoint(tmp_path, 4, 0.0)
    with pytest.raises(ValueError, match=r"no checkpoint after step 3 of resume=.*-3'"):
        train_elastic(refuse_to_build, CONFIG, tmp_path, member=Member(path, 1), resume=first)


def test_who_comes_later_finds_checkpoints_of_the_run(tmp_path):
    """Once the run has begun they are its own, for workers whose first world is a later one."""
    path = tmp_path / "world.json"
    write_world(path, World(2, 2, ABSENT))
    open(begun_file(path), "w").close()
    save_checkpoint(tmp_path, 3, 0.0)
    with pytest.raises(Built):
        train_elastic(refuse_to_build, CONFIG, tmp_path, member=Member(path, 1), resume="never")
    # In a first world the file is one that an earlier run has left.
    write_world(path, World(1, 2, ABSENT))
    with pytest.raises(ValueError, match="must hold no checkpoint with resume='never'"):
        train_elastic(refuse_to_build, CONFIG, tmp_path, member=Member(path, 1), resume="never")


@pytest.mark.parametrize(("resume", "made"), [("auto", 0), ("never", 4), ("path", 0), ("path", 4)])
def test_next_world_goes_on(tmp_path, monkeypatch, resume, made):
    """A chief goes on from its own steps, and where there was none from where the run starts.

    The graph of the world before is freed soon.
    """
    monkeypatch.setattr("model_deploy.elastic.heap._BEGUN_SECS", 0.1)
    path, run, begin, steps = tmp_path / "world.json", tmp_path / "run", 0, 100
    if resume == "path":
        begin, resume = 2, save_checkpoint(tmp_path / "other", 2, 10.0)
    configs, graphs = [], []
    with ReservedPorts(2) as ports:
        write_world(path, World(1, 1, {0: ports.addresses[0]}))

        def change():
            write_world(path, World(2, 1, {0: ports.addresses[1]}))

        def build(config):
            configs.append(config)
            graphs.append(weakref.ref(tf.get_default_graph()))
            if len(configs) == 2:
                return build_counter(config, [Freed(graphs[0])])
            if not made:
                change()
                time.sleep(1.0)  # until it is seen: there will be no step
            return build_counter(config, [ChangesWorld(begin + made, change)] if made else [])

        result = train_elastic(
            build,
            CONFIG,
            run,
            member=Member(path, 0),
            max_steps=steps,
            save_interval_steps=1,
            resume=resume,
        )
    assert result.global_step == steps
    assert len(configs) == 2
    assert weight_in(run) == begin * 5.0 - (steps - begin)
    assert os.path.exists(begun_file(path))

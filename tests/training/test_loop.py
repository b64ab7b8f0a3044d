"""`train`: checkpoints, resuming, events, ends and errors."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import model_deploy
from model_deploy import deploy, train
from model_deploy.training import check_writable
from tests.goldens import LogicalDevices, cpu_config
from tests.training.halving import halving_model, run_halving, square


@pytest.mark.slow
def test_a_run_and_its_continuation(tmp_path, variable_kind):
    """A second run goes on where the first one ended, and a third has nothing to do."""
    assert run_halving(tmp_path, 3) == (3, 1 / 32)
    assert run_halving(tmp_path, 5) == (5, 2 ** (-2 * 4 - 1))
    assert run_halving(tmp_path, 5) == (5, None)
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("weight") == 2**-5
    assert reader.get_tensor("global_step") == 5


@pytest.mark.one_mode
def test_keeps_the_newest_of_its_own(tmp_path):
    """Of the checkpoints of one run the last `keep_checkpoints` are left. Nothing that was in the
    folder before is deleted.
    """
    (tmp_path / "notes.txt").write_text("mine")
    for last in (2, 6):
        run_halving(tmp_path, last, keep_checkpoints=2, save_interval_secs=0)
    names = {path.name for path in tmp_path.iterdir()}
    kept = {name for name in names if name.endswith((".txt", ".index"))}
    assert kept == {"notes.txt", *(f"model.ckpt-{step}.index" for step in (1, 2, 5, 6))}


@pytest.mark.one_mode
@pytest.mark.parametrize("every", [{"save_summaries_secs": 0}, {"save_summaries_steps": 1}])
def test_events(tmp_path, every):
    """TensorBoard gets the loss of the last step, and of each step when asked."""
    run_halving(tmp_path, 3, **every)
    [path] = tmp_path.glob("events.out.tfevents.*")
    losses = {
        event.step: value.simple_value
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "total_loss_1"
    }
    assert losses == {1: 1 / 2, 2: 1 / 8, 3: 1 / 32}


def test_queues_feed_it(tmp_path):
    """TF-Slim's prefetch queue works: its runners are started and stopped, and each clone takes a
    batch of its own. Each of 24 numbers moves its weight once, by rate 1/2 and half of the loss;
    then the inputs end, and with them the run, whose steps are all saved.
    """
    [number] = tf.train.slice_input_producer([np.arange(24)], shuffle=False, num_epochs=1)
    batch = tf.train.batch([number], batch_size=4)
    queue = model_deploy.slim.prefetch_queue.prefetch_queue([batch], capacity=4)

    def model_fn():
        weights = tf.get_variable("weights", [24], initializer=tf.zeros_initializer())
        tf.losses.add_loss(-tf.reduce_sum(tf.gather(weights, queue.dequeue())))

    assert train(halving_model(model_fn), tmp_path, session_config=cpu_config()).global_step == 3
    weights = tf.train.load_checkpoint(str(tmp_path / "model.ckpt-3")).get_tensor("weights")
    assert weights.tolist() == [0.25] * 24


@pytest.mark.one_mode
def test_a_run_that_fails_is_saved(tmp_path):
    """An error in a hook leaves a checkpoint of the last step."""

    class Failing(tf.train.SessionRunHook):
        def before_run(self, run_context):
            if self.due_now:
                raise KeyboardInterrupt

        def due(self, step):
            self.due_now = step == 3
            return self.due_now

    with pytest.raises(KeyboardInterrupt):
        run_halving(tmp_path, 9, hooks=[Failing()])
    assert (tmp_path / "model.ckpt-2.index").exists()


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": 0}, "max_steps must be at least 1, got 0"),
        ({"log_every_n_steps": 0}, "log_every_n_steps must be at least 1, got 0"),
        ({"keep_checkpoints": 0}, "keep_checkpoints must be at least 1, got 0"),
    ],
)
def test_rejects(tmp_path, options, message):
    """A count below one names itself; a model that was deployed for evaluation is not trained."""
    with pytest.raises(ValueError, match=message):
        train(halving_model(), tmp_path, **options)
    message = "must have a train op, got one deployed without an opti"
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        train(deploy(LogicalDevices(), square), tmp_path)


def test_a_checkpoint_of_another_model(tmp_path):
    """A checkpoint that does not fit names the variables, and stays as it is."""
    run_halving(tmp_path, 1)

    def other():
        tf.get_variable("weight", [2])
        tf.losses.add_loss(tf.reduce_sum(tf.get_variable("other", [])))

    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("model.ckpt*")}
    message = (
        r"train_dir must be empty or hold checkpoints of this model, got .*model.ckpt-1, where "
        r"weight has shape \[\], not \[2\], other is missing$"
    )
    with pytest.raises(ValueError, match=message):
        train(halving_model(other), tmp_path, max_steps=2)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("model.ckpt*")} == before


@pytest.mark.slow
def test_partitioned_variables_are_restored(tmp_path):
    """A run with variables in parts goes on from its checkpoint, which holds them whole."""

    def model_fn():
        with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
            weight = tf.get_variable("weight", [4], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.reduce_sum(tf.square(tf.convert_to_tensor(weight))) / 2)

    for last, loss in ((1, 4 / 2), (2, 1 / 2)):
        with tf.Graph().as_default():
            assert train(halving_model(model_fn), tmp_path, max_steps=last) == (last, loss)
    assert tf.train.load_checkpoint(str(tmp_path)).get_tensor("weight").tolist() == [0.25] * 4


@pytest.mark.one_mode
def test_a_folder_that_cannot_be_written(tmp_path):
    """A file in the folder's place is an error before anything is trained. A folder that can be
    made is made, and nothing is left in it.
    """
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(OSError, match=f"train_dir must be a folder .* got {folder}"):
            check_writable(folder)
        with pytest.raises(OSError, match="train_dir must be a folder"):
            run_halving(folder, 1)


@pytest.mark.one_mode
def test_waiting_is_fetched_with_each_step(tmp_path, capsys):
    """The seconds that steps report are added up."""
    with tf.Graph().as_default():
        waited = tf.constant(1000.0)  # more than the steps take: all of the time
        options = {"wait_secs": waited, "session_config": cpu_config(), "log_every_n_steps": 2}
        train(halving_model(), tmp_path, max_steps=2, **options)
    assert "100% waiting for data" in capsys.readouterr().err

"""Steps with hooks in TensorFlow's protocol, and hooks that ask for some steps only."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, slim, train
from tests.goldens import LogicalDevices, cpu_config
from tests.training.halving import halving_model, run_halving, square


class Recorder(tf.train.SessionRunHook):
    """Notes its calls; fetches the weight."""

    def __init__(self):
        self.calls = []

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append("after_create_session")

    def before_run(self, run_context):
        [weight] = tf.trainable_variables()
        return tf.train.SessionRunArgs({"twice": [weight, weight]})

    def after_run(self, run_context, run_values):
        first, second = run_values.results["twice"]
        assert first == second
        self.calls.append((run_context.report.step, run_context.report.loss))

    def end(self, session):
        self.calls.append("end")


class Every3(Recorder):
    """Asks for every third step."""

    def due(self, step):
        return step % 3 == 0


STEPS = [(step, 2.0 ** (1 - 2 * step)) for step in range(1, 8)]


def test_protocol(tmp_path):
    """Hooks are called in TensorFlow's order, in all steps or those that they ask for."""
    hooks = [Recorder(), Every3()]
    run_halving(tmp_path, 7, hooks=hooks)
    for hook, steps in zip(hooks, (STEPS, STEPS[2::3]), strict=True):
        assert hook.calls == ["begin", "after_create_session", *steps, "end"]


class Odd(Recorder):
    """Asks for every other step."""

    def due(self, step):
        return step % 2 == 1


def test_the_same_values_for_other_hooks(tmp_path):
    """A hook gets what it fetches, whether it takes part alone, or, at step 3, with another."""

    class Silent(tf.train.SessionRunHook):
        """Fetches nothing, in every third step."""

        def due(self, step):
            return step % 3 == 0

    hook = Odd()
    run_halving(tmp_path, 7, hooks=[Silent(), hook])
    assert hook.calls[2:-1] == STEPS[::2]


@pytest.mark.one_mode
def test_hooks_of_tensorflow(tmp_path):
    """TensorFlow's own hooks work: one stops the run, one profiles it, one feeds: with a gain of
    2 the first step ends at 0.
    """
    tf.train.get_or_create_global_step()
    gain = tf.placeholder_with_default(1.0, [], name="gain")
    hooks = [
        tf.train.StopAtStepHook(last_step=3),
        tf.train.ProfilerHook(save_steps=1, output_dir=str(tmp_path)),
        tf.train.FinalOpsHook(tf.constant(1.0)),
        tf.train.FeedFnHook(lambda: {gain: 2.0}),
    ]
    model = halving_model(lambda: square(gain))
    assert train(model, tmp_path, hooks=hooks, session_config=cpu_config()) == (3, 0.0)
    assert hooks[2].final_ops_values == 1.0
    assert list(tmp_path.glob("timeline-*.json"))


NAN_CASES = [
    # clones whose loss is NaN in step 3 (from step 2 done), what is said of it
    ((0,), r"got nan at step 3, in clone 0, learning rate 0\.5"),
    ((1,), r"got nan at step 3, in clone 1, learning rate 0\.5"),
    ((0, 1), r"got nan at step 3, in clone 0, 1, learning rate 0\.5"),
]


def bad_model(bad_clones):
    """A model on two clones whose loss is NaN in some clones once two steps are done."""
    step = tf.train.get_or_create_global_step()
    calls = []

    def model_fn():
        calls.append(None)
        is_bad = len(calls) - 1 in bad_clones
        with tf.name_scope("spoiled"):
            square(tf.where(step < 2, 1.0, np.nan if is_bad else 1.0, name="gain"))

    return halving_model(model_fn)


@pytest.mark.one_mode
@pytest.mark.parametrize(("clones", "message"), NAN_CASES)
def test_a_loss_that_is_not_finite(tmp_path, clones, message):
    """NaN names step, clones, learning rate and the last good checkpoint, which stays."""
    options = {"learning_rate": 0.5, "save_interval_steps": 1, "session_config": cpu_config()}
    with pytest.raises(FloatingPointError, match=message) as error:
        train(bad_model(clones), tmp_path, max_steps=9, **options)
    newest = tmp_path / "model.ckpt-2"
    assert str(error.value).endswith(f"last good checkpoint: {newest}")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(newest)


def test_check_numerics_names_the_op(tmp_path):
    """With `check_numerics` the first op is named that gives NaN; a run whose numbers are finite is
    the same with the checks.
    """
    assert run_halving(tmp_path / "finite", 3, check_numerics=True) == (3, 1 / 32)
    options = {"check_numerics": True, "session_config": cpu_config()}
    message = r"at step 3, in clone 1, first in op clone_1/spoiled/gain, last good checkpoint: none"
    with pytest.raises(FloatingPointError, match=message):
        train(bad_model((1,)), tmp_path, max_steps=9, **options)


@pytest.mark.one_mode
def test_check_numerics_beside_fused_batch_norms(tmp_path):
    """Values that no op takes are left out: those of a fused batch norm's gradient have no size."""

    def model_fn():
        net = slim.batch_norm(slim.conv2d(tf.ones([2, 4, 4, 3]), 3, 1), scope="norm")
        net = slim.batch_norm(net, scope="another")
        tf.losses.mean_squared_error(tf.ones(net.shape), net)

    options = {"check_numerics": True, "session_config": cpu_config()}
    assert train(halving_model(model_fn), tmp_path, max_steps=2, **options).global_step == 2


@pytest.mark.parametrize(
    "settings", [{"all_reduce": True, "local_steps": 2}, {"loss_scale": "dynamic"}], ids=str
)
def test_check_numerics_beside_conditions(tmp_path, settings):
    """What a step leaves out is not checked: exchanges now and then, updates that overflow."""
    config = LogicalDevices(num_clones=2, **settings)
    optimizer = tf.train.GradientDescentOptimizer(1e-35)
    model = deploy(config, lambda: square(tf.constant(1e35)), optimizer=optimizer)
    options = {"check_numerics": True, "session_config": cpu_config()}
    assert train(model, tmp_path, max_steps=5, **options).global_step == 5


@pytest.mark.one_mode
def test_check_numerics_with_clipped_gradients_of_zero(tmp_path):
    """Clipping divides by no norm of 0."""

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(tf.square(weight))

    optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=optimizer, clip_norm=0.5)
    options = {"check_numerics": True, "session_config": cpu_config()}
    assert train(model, tmp_path, max_steps=2, **options).global_step == 2


@pytest.mark.one_mode
def test_check_numerics_sees_gradients(tmp_path):
    """A gradient that is infinite stops the run, though the loss is 0."""

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(tf.sqrt(weight, name="root"))

    model = halving_model(model_fn)
    with pytest.raises(FloatingPointError, match=r"got 0.0 at step 1.*in op .*Sqrt"):
        train(model, tmp_path, max_steps=1, check_numerics=True, session_config=cpu_config())

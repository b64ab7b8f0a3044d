"""Hooks of `tf.estimator.experimental` and models of tf-keras, with two clones."""

import warnings

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy import DeploymentConfig, estimator
from tests.estimator import models
from tests.estimator.test_deploying import check_equal

pytestmark = pytest.mark.one_mode
_CLONES = DeploymentConfig(num_clones=2, clone_on_cpu=True)
# Name of the hook -> a limit, and whether losses that fall from 18 to 15 stop the training.
_STOPS = {
    "stop_if_lower_hook": (16.0, True),
    "stop_if_higher_hook": (16.0, True),
    "stop_if_no_increase_hook": (2, True),
    "stop_if_no_decrease_hook": (2, False),
}


def _trained(folder, config=_CLONES):
    model_fn = models.model_fn_of(models.STYLES["minimize"])
    settings = models.run_config(train_distribute=config)
    return estimator.Estimator(model_fn, str(folder), settings, params={"rate": 0.1})


@pytest.mark.parametrize("name", _STOPS)
def test_training_stops_early(name, tmp_path):
    """Two evaluations, of losses 18 and 15, stop the training, or not, at its next step."""
    limit, stops = _STOPS[name]
    trained = _trained(tmp_path)
    never, hook = (
        getattr(estimator.experimental, each)(
            trained, "loss", value, run_every_secs=None, run_every_steps=1
        )
        for each, value in (("stop_if_lower_hook", 0.0), (name, limit))
    )
    losses = []
    for step in (2, 4):
        trained.train(models.input_fn(4), max_steps=step, hooks=[never])
        losses.append(trained.evaluate(models.input_fn(8), steps=1)["loss"])
    np.testing.assert_allclose(losses, [18.1, 14.9], atol=0.1)
    trained.train(models.input_fn(4), max_steps=8, hooks=[hook])
    assert trained.get_variable_value("global_step") == (5 if stops else 8)


def test_evaluations_in_memory_and_profiles(tmp_path):
    """`InMemoryEvaluatorHook` evaluates the weights of the session as they are; `ProfilerHook`
    writes timelines.
    """
    trained = _trained(tmp_path)
    evaluations = estimator.experimental.InMemoryEvaluatorHook(
        trained, models.input_fn(8), steps=1, every_n_iter=2
    )
    profiles = estimator.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    trained.train(models.input_fn(4), steps=5, hooks=[evaluations, profiles])
    found = {}
    for path in (tmp_path / "eval").iterdir():
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found[event.step] = value.simple_value
    assert list(found) == [0, 2, 4, 5]
    last = trained.evaluate(models.input_fn(8), steps=1)["loss"]
    np.testing.assert_allclose(found[5], last, rtol=1e-6)
    assert len(list(tmp_path.glob("timeline-*.json"))) == 2


@pytest.mark.parametrize(
    "settings", [{}, {"all_reduce": True}, {"copy_clones": True}, {"accumulate_steps": 2}], ids=str
)
def test_names_are_those_without_clones(settings, tmp_path):
    """A name without a clone's scope is that of the first clone, wherever it is looked up; so are
    the tags of summaries.
    """

    class Notes(tf.train.SessionRunHook):
        def begin(self):
            self.rate = tf.get_default_graph().get_tensor_by_name("scope/rate:0")
            with pytest.raises(KeyError, match="'none:0' refers to a Tensor"):
                tf.get_default_graph().get_tensor_by_name("none:0")

        def before_run(self, run_context):
            graph = run_context.session.graph
            assert graph.get_operation_by_name("scope/rate") is self.rate.op
            return tf.train.SessionRunArgs(["scope/rate:0", "first:0"])

        def after_run(self, run_context, run_values):
            seen.append(run_values.results)

    def model_fn(features, labels, mode):
        tf.identity(features["x"][0, 0], name="first")
        slope = tf.get_variable("slope", [3], initializer=tf.ones_initializer())
        loss = tf.losses.mean_squared_error(labels, tf.reduce_sum(slope * features["x"], 1))
        with tf.name_scope("scope"):
            rate = tf.identity(0.25, name="rate")
            tf.summary.scalar("shown", rate)
        tf.summary.histogram("slopes", slope)
        optimizer = tf.train.GradientDescentOptimizer(rate)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    seen, logged = [], tf.train.LoggingTensorHook({"rate": "scope/rate"}, every_n_iter=1)
    config = DeploymentConfig(**{"num_clones": 2, "clone_on_cpu": True, **settings})
    run_config = models.run_config(train_distribute=config, save_summary_steps=1)
    trained = estimator.Estimator(model_fn, str(tmp_path), run_config)
    trained.train(models.input_fn(4), steps=2, hooks=[logged, Notes()])
    second = 4 * 2 * config.accumulate_steps
    first_inputs = models.INPUTS[[0, second], 0]
    np.testing.assert_array_equal(seen, [[0.25, each] for each in first_inputs])
    [events] = tmp_path.glob("events*")
    summaries = [event.summary for event in tf.train.summary_iterator(str(events))]
    tags = {value.tag for summary in summaries for value in summary.value}
    assert {"scope/shown", "slopes"} <= tags
    assert not {tag for tag in tags if tag.startswith(("clone", "part"))}


def _keras_estimator(folder, optimizer, config):
    model = tf_keras.Sequential(
        [
            tf_keras.layers.InputLayer((3,)),
            tf_keras.layers.Dense(4, "tanh", kernel_initializer=tf.glorot_normal_initializer(1)),
            tf_keras.layers.Dense(1, kernel_initializer=tf.glorot_normal_initializer(2)),
        ]
    )
    model.compile(optimizer, loss="mse", metrics=["mae"])
    settings = models.run_config(train_distribute=config)
    return estimator.model_to_estimator(model, model_dir=str(folder), config=settings)


def test_models_of_tf_keras(tmp_path, monkeypatch):
    """A compiled model trains on two clones as on one, by an optimizer of `tf.train`; with one of
    Keras a line says that Estimator trains it alone.
    """
    warnings.simplefilter("ignore")  # tf-keras, of its own names
    said = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *values: said.append(text % values))

    def input_fn(batch_size):
        examples = (models.INPUTS, models.TARGETS[:, None])
        return tf.data.Dataset.from_tensor_slices(examples).repeat().batch(batch_size)

    def values(name, optimizer, batch_size, config=None):
        trained = _keras_estimator(tmp_path / name, optimizer, config)
        trained.train(lambda: input_fn(batch_size), steps=6)
        assert trained.evaluate(lambda: input_fn(8), steps=1)["global_step"] == 6
        found = models.values_of(trained)
        return {key: value for key, value in found.items() if not isinstance(value, bytes)}

    sgd = tf.train.GradientDescentOptimizer
    expected = values("one", sgd(0.1), 8)
    check_equal(values("two", sgd(0.1), 4, _CLONES), expected)
    assert said == []
    values("keras", "sgd", 4, _CLONES)
    assert said == ["model_fn is trained by Estimator alone: it calls no optimizer of tf.train"]

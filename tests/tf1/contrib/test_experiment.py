"""`tf.contrib.learn`: experiments, by `learn_runner` or by hand."""

import numpy as np
import pytest

from model_deploy import estimator
from model_deploy.tf1.contrib.written import experiment
from tests.estimator import models

pytestmark = pytest.mark.one_mode


def _experiment(config, _=None, **settings):
    model_fn = models.model_fn_of(models.STYLES["minimize"])
    model = estimator.Estimator(model_fn, config=config, params={"rate": 0.1})
    inputs = {"train_input_fn": models.input_fn(8), "eval_input_fn": models.input_fn(8)}
    return experiment.Experiment(model, **{**inputs, "train_steps": 4, "eval_steps": 2, **settings})


def _config(folder, **settings):
    return experiment.RunConfig(
        model_dir=str(folder), tf_random_seed=1, save_checkpoints_steps=2, **settings
    )


@pytest.mark.parametrize("schedule", [None, "train_and_evaluate", "train"])
def test_an_experiment_is_an_estimator(schedule, tmp_path):
    """Run as a task of its own it trains as the estimator does; all but `train` evaluate."""
    result = experiment.run(_experiment, None, schedule, _config(tmp_path / "found"), hparams={})
    expected = _experiment(_config(tmp_path / "expected")).estimator
    expected.train(models.input_fn(8), steps=4)
    found = _experiment(_config(tmp_path / "found")).estimator
    for name, value in models.values_of(expected).items():
        np.testing.assert_allclose(found.get_variable_value(name), value, rtol=1e-6)
    loss = expected.evaluate(models.input_fn(8), steps=2)["loss"]
    if schedule != "train":
        np.testing.assert_allclose(result[0]["loss"], loss, rtol=1e-6)
    again = experiment.run(_experiment, None, "evaluate", _config(tmp_path / "found"))
    np.testing.assert_allclose(again["loss"], loss, rtol=1e-6)


def test_a_folder_in_place_of_settings(tmp_path):
    """Without a configuration the experiment is made for `output_dir`."""
    result, _ = experiment.run(lambda folder: _experiment(_config(folder)), str(tmp_path))
    assert result["global_step"] == 4


def test_settings_of_sessions(tmp_path):
    """Arguments that later releases had in a `tf.ConfigProto` are in one."""
    config = _config(tmp_path, num_cores=3, gpu_memory_fraction=0.5, log_device_placement=True)
    session = config.session_config
    assert (session.inter_op_parallelism_threads, session.intra_op_parallelism_threads) == (3, 3)
    assert session.gpu_options.per_process_gpu_memory_fraction == 0.5
    assert session.log_device_placement
    assert config.save_checkpoints_secs is None
    assert experiment.RunConfig(model_dir=str(tmp_path)).save_checkpoints_secs == 600
    assert experiment.ModeKeys.INFER == estimator.ModeKeys.PREDICT


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: experiment.RunConfig(master="grpc://a:1"), "master must be empty.*'grpc://a:1'"),
        (
            lambda: experiment.Experiment(1, None, None),
            "estimator must be a tf.estimator.Estimator, got 1",
        ),
        (
            lambda: _experiment(None, eval_metrics={"a": 1}),
            "eval_metrics must be None.*got {'a': 1}",
        ),
        (lambda: _experiment(None, export_strategies=[2]), r"export_strategies .*got \[2\]"),
        (lambda: experiment.run(_experiment), "one of output_dir and run_config must be given"),
        (
            lambda: experiment.run(_experiment, "a", "tune"),
            "schedule must be one of evaluate, .*, got 'tune'",
        ),
    ],
)
def test_refusals(make, message):
    """What cannot be done as before is named."""
    with pytest.raises(ValueError, match=message):
        make()

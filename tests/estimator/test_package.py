"""`tensorflow_estimator` is there, whole, or a line says why it is not."""

import importlib.util
import subprocess
import sys

import pytest

from model_deploy import DeploymentConfig, estimator
from model_deploy.estimator import package
from model_deploy.estimator.clusters import with_chief

pytestmark = pytest.mark.one_mode
# Of TensorFlow 1.15's `tf.estimator`.
_NAMES = """
    BaselineClassifier BaselineEstimator BaselineRegressor BestExporter BinaryClassHead
    CheckpointSaverHook CheckpointSaverListener DNNClassifier DNNEstimator
    DNNLinearCombinedClassifier DNNLinearCombinedEstimator DNNLinearCombinedRegressor DNNRegressor
    Estimator EstimatorSpec EvalSpec Exporter FeedFnHook FinalExporter FinalOpsHook
    GlobalStepWaiterHook Head LatestExporter LinearClassifier LinearEstimator LinearRegressor
    LoggingTensorHook LogisticRegressionHead ModeKeys MultiClassHead MultiHead MultiLabelHead
    NanLossDuringTrainingError NanTensorHook PoissonRegressionHead ProfilerHook RegressionHead
    RunConfig SecondOrStepTimer SessionRunArgs SessionRunContext SessionRunHook SessionRunValues
    StepCounterHook StopAtStepHook SummarySaverHook TrainSpec VocabInfo WarmStartSettings
    add_metrics classifier_parse_example_spec experimental.InMemoryEvaluatorHook
    experimental.LinearSDCA experimental.call_logit_fn experimental.dnn_logit_fn_builder
    experimental.linear_logit_fn_builder experimental.make_early_stopping_hook
    experimental.make_stop_at_checkpoint_step_hook experimental.stop_if_higher_hook
    experimental.stop_if_lower_hook experimental.stop_if_no_decrease_hook
    experimental.stop_if_no_increase_hook export.ClassificationOutput export.ExportOutput
    export.PredictOutput export.RegressionOutput export.ServingInputReceiver
    export.TensorServingInputReceiver export.build_parsing_serving_input_receiver_fn
    export.build_raw_serving_input_receiver_fn inputs.numpy_input_fn inputs.pandas_input_fn
    model_to_estimator regressor_parse_example_spec tpu.RunConfig tpu.TPUEstimator
    train_and_evaluate
""".split()  # noqa: SIM905 - a list would be 70 lines of one word


def test_all_names_are_there():
    """What TensorFlow 1 had in `tf.estimator` is in `model_deploy.estimator`."""
    for name in _NAMES:
        value = estimator
        for part in name.split("."):
            value = getattr(value, part)
        assert callable(value) or isinstance(value, type), name
    assert {name.partition(".")[0] for name in _NAMES} <= set(dir(estimator))


def test_what_is_nowhere_is_named(monkeypatch):
    """Boosted trees, names that never were, and the package, if it is not installed."""
    with pytest.raises(AttributeError, match=r"BoostedTreesClassifier is not in .* 2\.15"):
        _ = estimator.BoostedTreesClassifier
    with pytest.raises(AttributeError, match=r"tf\.estimator has no 'Estimate'"):
        _ = estimator.Estimate
    with pytest.raises(ValueError, match="must not be used, which TensorFlow"):
        package._gone("tensorflow.python.tpu.tpu_embedding.AdamParameters", "2.20")()
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(ImportError, match=r"tf.estimator is gone .*'model_deploy\[estimator\]'"):
        package.load()


def test_a_strategy_is_not_for_clusters(monkeypatch):
    """`tf.distribute` does not train on clusters any more; worker 0 is the chief where none is."""
    cluster = {"worker": ["localhost:1", "localhost:2"], "ps": ["localhost:3"]}
    task = {"type": "worker", "index": 1}
    monkeypatch.setenv("TF_CONFIG", repr({"cluster": cluster, "task": task}).replace("'", '"'))
    with pytest.raises(ValueError, match=r"train_distribute must be a DeploymentConfig .* got str"):
        estimator.RunConfig(train_distribute="mirrored")
    config = estimator.RunConfig(train_distribute=DeploymentConfig(num_clones=2))
    assert (config.task_type, config.task_id, config.global_id_in_cluster) == ("worker", 0, 1)
    assert (config.num_worker_replicas, config.num_ps_replicas) == (2, 1)
    assert config.cluster_spec.as_dict()["chief"] == ["localhost:1"]
    assert with_chief({"cluster": cluster, "task": {"type": "worker", "index": 0}})["task"] == {
        "type": "chief",
        "index": 0,
    }


@pytest.mark.slow
def test_nothing_imports_the_package_unasked():
    """Neither `model_deploy` nor its `estimator` brings the package before a name is asked for."""
    program = (
        "import sys, model_deploy.estimator\n"
        "print('tensorflow_estimator' in sys.modules, 'tf_keras' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["False", "False"]

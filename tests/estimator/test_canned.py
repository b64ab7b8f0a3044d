"""The canned estimators with feature columns, as deployments and as they are."""

import warnings

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, estimator, placement
from tests.estimator import models
from tests.estimator.test_deploying import check_clones

pytestmark = [pytest.mark.one_mode, pytest.mark.slow]
_RANDOM = np.random.RandomState(0)
_AGES = _RANDOM.randint(18, 60, 32).astype(np.float32)
_JOBS = _RANDOM.choice(["cook", "clerk", "pilot"], 32)
_CITIES = _RANDOM.choice(["Rome", "Oslo"], 32)
_LABELS = ((_AGES > 40) & (_JOBS != "cook")).astype(np.int64)
MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE


def input_fn(batch_size):
    """An `input_fn` of people and their labels."""

    def read():
        features = {"age": _AGES, "job": _JOBS, "city": _CITIES, "weight": np.ones(32, np.float32)}
        return tf.data.Dataset.from_tensor_slices((features, _LABELS)).repeat().batch(batch_size)

    return read


def columns():
    """Columns for a linear model, and for a deep one: crossed, weighted, shared, embedded."""
    column = tf.feature_column
    age = column.numeric_column("age", normalizer_fn=lambda x: (x - 40.0) / 10.0)
    job = column.categorical_column_with_vocabulary_list("job", ["cook", "clerk", "pilot"])
    city = column.categorical_column_with_hash_bucket("city", 5)
    ages = column.bucketized_column(age, [-1.0, 0.0, 1.0])
    wide = [
        column.weighted_categorical_column(job, "weight"),
        column.crossed_column([ages, "job"], 20),
    ]
    start = tf.constant_initializer(0.1)
    deep = [
        age,
        column.embedding_column(job, 2, initializer=start),
        column.indicator_column(city),
    ]
    return wide, deep


def _dnn(**settings):
    return estimator.DNNClassifier([4], columns()[1], loss_reduction=MEAN, **settings)


def _linear(**settings):
    return estimator.LinearClassifier(columns()[0], loss_reduction=MEAN, **settings)


def _combined(**settings):
    wide, deep = columns()
    return estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[4],
        loss_reduction=MEAN,
        **settings,
    )


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow's, of columns and optimizers
        yield


@pytest.mark.parametrize(
    ("make", "settings"),
    [(_dnn, {}), (_linear, {}), (_combined, {}), (_combined, {"all_reduce": True})],
)
def test_clones_train_as_one(make, settings, tmp_path):
    """Canned estimators on two clones, by `train_distribute`, end where they end by themselves."""
    check_clones(make, input_fn, tmp_path, steps=4, settings=settings)


def test_train_and_evaluate_export_and_start_warm(tmp_path):
    """A run on clones evaluates, exports the best and the last, and is where another one starts."""
    wide, _ = columns()
    config = models.run_config(
        train_distribute=DeploymentConfig(num_clones=2, clone_on_cpu=True),
        save_checkpoints_steps=4,
    )
    trained = _linear(model_dir=str(tmp_path / "run"), config=config)
    receive = estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec(wide)
    )
    metrics, exported = estimator.train_and_evaluate(
        trained,
        estimator.TrainSpec(input_fn(4), max_steps=8),
        estimator.EvalSpec(
            input_fn(8),
            steps=2,
            start_delay_secs=0,
            throttle_secs=0,
            exporters=[
                estimator.FinalExporter("last", receive),
                estimator.BestExporter(serving_input_receiver_fn=receive),
            ],
        ),
    )
    assert metrics["global_step"] == 8
    assert (tmp_path / "run" / "export" / "best_exporter").is_dir()
    predicted = next(trained.predict(input_fn(8)))["probabilities"]
    example = tf.train.Example()
    example.features.feature["age"].float_list.value.append(_AGES[0])
    example.features.feature["weight"].float_list.value.append(1.0)
    example.features.feature["job"].bytes_list.value.append(_JOBS[0].encode())
    with tf.Graph().as_default(), tf.Session() as session:
        served = tf.saved_model.load(session, ["serve"], exported[0].decode())
        names = served.signature_def["predict"]
        values = session.run(
            names.outputs["probabilities"].name,
            {names.inputs["examples"].name: [example.SerializeToString()]},
        )
    np.testing.assert_allclose(values[0], predicted, rtol=1e-5)
    warm = _linear(
        model_dir=str(tmp_path / "warm"),
        config=models.run_config(),
        warm_start_from=str(tmp_path / "run"),
    )
    warm.train(input_fn(8), steps=1)
    assert np.abs(models.values_of(warm)["linear/linear_model/bias_weights"]) > 0


@pytest.mark.parametrize("settings", [None, {"num_clones": 2}], ids=["plain", "clones"])
def test_variables_are_on_another_device(settings, tmp_path):
    """A linear model, whose summaries have conditions that read weights, trains beside them."""

    def device_fn(op):
        return f"/device:CPU:{0 if placement.is_variable_op(op) else 2}"

    config = settings and DeploymentConfig(clone_on_cpu=True, **settings)
    run_config = models.run_config(train_distribute=config, device_fn=device_fn)
    trained = _linear(model_dir=str(tmp_path), config=run_config)
    trained.train(input_fn(8), steps=1)
    assert trained.get_variable_value("global_step") == 1

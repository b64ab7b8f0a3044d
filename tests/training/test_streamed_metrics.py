"""Metrics in training: those of all examples since the last line, of all clones and workers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, train
from model_deploy.metrics import AUC, LogLoss, RecallAt, add_metric, exact_area
from model_deploy.runs import read_metrics
from tests.goldens import LogicalDevices, cpu_config

CLONES, BATCH, STEPS = 2, 8, 7
_RANDOM = np.random.RandomState(5)
# Log-odds are multiples of 1/8, whose order the bins keep: so the area is exact.
FEATURES = np.round(_RANDOM.normal(size=[STEPS, CLONES, BATCH]) * 8) / 8
LABELS = (_RANDOM.uniform(size=FEATURES.shape) < 1 / (1 + np.exp(-FEATURES))).astype(np.float32)
# Each other example counts twice.
WEIGHTS = np.tile(np.array([1.0, 2.0], np.float32), FEATURES.size // 2).reshape(FEATURES.shape)


def model_fn(numbers, labels=LABELS):
    """Log-odds that are the features times a weight of 1, which is trained at rate 0."""
    step = tf.cast(tf.train.get_global_step().read_value(), tf.int32)
    clone = next(numbers)
    features, labels, weights = (
        tf.constant(each, tf.float32)[step, clone] for each in (FEATURES, labels, WEIGHTS)
    )
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    logits = features * weight
    tf.losses.sigmoid_cross_entropy(labels, logits)
    add_metric(AUC(), labels, tf.sigmoid(logits), weights)
    add_metric(LogLoss(), labels, tf.sigmoid(logits))
    items = tf.stack([logits, tf.zeros_like(logits)], axis=1)
    add_metric(RecallAt(k=1), tf.cast(labels < 0.5, tf.int32), items)


def expected(steps):
    """The metrics of the examples of some steps, by NumPy in float64."""
    features, labels, weights = (
        each[steps].reshape(-1).astype(np.float64) for each in (FEATURES, LABELS, WEIGHTS)
    )
    right = np.where(features == 0, 0.5, (features > 0) == (labels > 0.5))
    return {
        "train_auc": exact_area(AUC(), labels, features, weights),
        "train_log_loss": np.mean(np.log1p(np.exp(-features)) + (1 - labels) * features),
        "train_recall_at_1": right.mean(),
    }


def run(folder, model=model_fn, **settings):
    """Trains at rate 0 with a line after every third step; what the lines say."""
    options = {name: settings.pop(name) for name in ("asynchronous",) if name in settings}
    config = LogicalDevices(num_clones=CLONES, **settings)
    optimizer = tf.train.GradientDescentOptimizer(0.0)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        numbers = (tf.constant(clone) for clone in range(config.batches_per_step))
        built = deploy(config, model, [numbers], optimizer=optimizer, **options)
        shown = {"session_config": cpu_config(), "log_every_n_steps": 3}
        train(built, folder, max_steps=STEPS, **shown)
    return [each for each in read_metrics(folder) if "train_auc" in each]


@pytest.mark.usefixtures("variable_kind")
@pytest.mark.parametrize(
    "settings",
    [{}, {"copy_clones": True}, {"all_reduce": True}],
    ids=["clones", "copies", "all-reduce"],
)
def test_since_the_last_line(tmp_path, capsys, settings):
    """A line after steps 3, 6 and 7 has the metrics of all examples since the line before."""
    lines = run(tmp_path, **settings)
    assert [line["step"] for line in lines] == [3, 6, 7]
    for line, steps in zip(lines, (slice(3), slice(3, 6), slice(6, 7)), strict=True):
        for name, value in expected(steps).items():
            assert line[name] == pytest.approx(value, rel=1e-6), name
    shown = f"auc {lines[0]['train_auc']:.4f}  log_loss {lines[0]['train_log_loss']:.4f}  recall"
    assert shown in capsys.readouterr().err
    [events] = tmp_path.glob("events*")
    tags = {
        value.tag: value.simple_value
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert tags["training/auc"] == pytest.approx(lines[-1]["train_auc"])

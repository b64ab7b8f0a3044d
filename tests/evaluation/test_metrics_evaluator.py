"""`MetricsEvaluator`: metrics of every example once, as NumPy computes them, on any clones."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, train
from model_deploy.metrics import (
    AUC,
    PRAUC,
    LogLoss,
    RecallAt,
    UndefinedMetricError,
    add_metric,
    exact_area,
)
from model_deploy.training import MetricsEvaluator, evaluate
from tests.goldens import LogicalDevices, cpu_config

EXAMPLES = 23
_RANDOM = np.random.RandomState(2)
# Log-odds are different multiples of 1/8, whose order the bins keep: so areas are exact.
FEATURES = (_RANDOM.permutation(np.arange(-11, 12)) / 8).astype(np.float32)
LABELS = (_RANDOM.uniform(size=EXAMPLES) < 1 / (1 + np.exp(-FEATURES))).astype(np.float32)
WEIGHTS = _RANDOM.uniform(1, 2, EXAMPLES).astype(np.float32)
DECAY = 0.5


def batches(size, labels=LABELS):
    """Inputs of all examples, the last batch with what is left."""

    def build():
        dataset = tf.data.Dataset.from_tensor_slices((FEATURES, labels, WEIGHTS)).batch(size)
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    return build


def model_fn(batch):
    """Log-odds are features times a weight, which is regularized."""
    features, labels, weights = batch
    weight = tf.get_variable("weight", [], regularizer=lambda weight: DECAY * weight)
    logits = features * weight
    tf.losses.sigmoid_cross_entropy(labels, logits)
    for metric in (AUC(), PRAUC()):
        add_metric(metric, labels, tf.sigmoid(logits), weights)
    add_metric(LogLoss(), labels, tf.sigmoid(logits))
    items = tf.stack([logits, tf.zeros_like(logits)], axis=1)
    add_metric(RecallAt(k=1), tf.cast(labels < 0.5, tf.int32), items)
    return logits


@pytest.fixture(name="checkpoint")
def _checkpoint(tmp_path):
    """A checkpoint with the weight 1."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weight", initializer=1.0)
        tf.Variable(np.int64(4), name="global_step")
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))


def evaluated(checkpoint, batch_size=5, clones=1, function=model_fn, **options):
    """The evaluation of a checkpoint on so many clones."""
    inputs = options.pop("batches", None) or batches(batch_size)
    settings = {"config": LogicalDevices(num_clones=clones), "session_config": cpu_config()}
    with MetricsEvaluator(function, inputs, **settings, **options) as evaluator:
        return evaluator.evaluate(checkpoint)


@pytest.mark.parametrize(
    ("clones", "batch_size", "exact", "variable_kind"),
    [
        pytest.param(1, 30, True, "resource", marks=pytest.mark.one_mode),
        (2, 8, False, "reference"),
        pytest.param(2, 8, False, "resource", marks=pytest.mark.one_mode),
        pytest.param(4, 1, True, "reference", marks=pytest.mark.one_mode),
    ],
    indirect=["variable_kind"],
)
def test_every_example_once(checkpoint, clones, batch_size, exact, variable_kind):
    """Metrics and loss are those of NumPy, however 23 examples are divided.

    Batches of 1 leave clones without an example; 7 are left of batches of 8.
    """
    found = evaluated(checkpoint, batch_size, clones, exact=exact)
    features = FEATURES.astype(np.float64)
    loss = np.mean(np.log1p(np.exp(-features)) + (1 - LABELS) * features)
    right = np.where(features == 0, 0.5, (features > 0) == (LABELS > 0.5))
    expected = {
        "auc": exact_area(AUC(), LABELS, features, WEIGHTS),
        "pr_auc": exact_area(PRAUC(), LABELS, features, WEIGHTS),
        "log_loss": loss,
        "recall_at_1": right.mean(),
    }
    assert found.metrics == pytest.approx(expected, rel=1e-6)
    assert (found.global_step, found.examples) == (4, EXAMPLES)
    assert found.scores == {**found.metrics, "total_loss": pytest.approx(loss + DECAY, rel=1e-6)}


@pytest.mark.one_mode
def test_scores_that_are_no_probabilities(checkpoint):
    """Exact areas take scores of any range; those of a histogram name the rule."""

    def function(batch):
        features, labels, _ = batch
        tf.get_variable("weight", [])
        add_metric(AUC(), labels[:, tf.newaxis], features[:, tf.newaxis])

    found = evaluated(checkpoint, clones=3, function=function)
    assert found.metrics == {"auc": pytest.approx(exact_area(AUC(), LABELS, FEATURES))}
    assert found.scores == found.metrics
    with pytest.raises(FloatingPointError, match="predictions of auc must be from 0 to 1, got"):
        evaluated(checkpoint, function=function, exact=False)


@pytest.mark.one_mode
def test_what_has_no_metrics(checkpoint):
    """Examples of one class, none at all, and models without a metric are errors."""
    ones = np.ones(EXAMPLES, np.float32)
    with pytest.raises(UndefinedMetricError, match="auc must have positive and negative examples"):
        evaluated(checkpoint, batches=batches(5, ones))
    with pytest.raises(ValueError, match="batches must give at least one example, got none"):
        evaluated(checkpoint, batches=lambda: [each[:0] for each in batches(5)()])
    with pytest.raises(ValueError, match=r"model_fn must add a metric by metrics\.add_metric"):
        evaluated(checkpoint, function=lambda batch: tf.get_variable("weight", []))
    with pytest.raises(RuntimeError, match="evaluate must be called within"):
        MetricsEvaluator(model_fn, batches(5)).evaluate(checkpoint)


@pytest.mark.one_mode
def test_a_classifier_has_them_too(checkpoint):
    """What `predict` adds is among the scores of a classifier."""

    def predict(batch):
        logits = model_fn(batch)
        return tf.stack([tf.zeros_like(logits), logits], axis=1), batch[1]

    found = evaluate(predict, batches(5), checkpoint, config=LogicalDevices(num_clones=2))
    assert found.scores["auc"] == pytest.approx(exact_area(AUC(), LABELS, FEATURES, WEIGHTS))
    # The softmax of (0, x) is the sigmoid of x.
    assert found.log_loss == pytest.approx(found.metrics["log_loss"], rel=1e-6)


@pytest.mark.one_mode
def test_in_training(tmp_path):
    """A run that evaluates itself ends by a metric, here of a weight that falls by 1/2 a step."""
    config = LogicalDevices(num_clones=2)

    def function():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.identity(weight))

    optimizer = tf.train.GradientDescentOptimizer(0.5)
    model = deploy(config, function, optimizer=optimizer)
    with MetricsEvaluator(model_fn, batches(8)) as evaluator:
        result = train(
            model,
            tmp_path,
            max_steps=9,
            session_config=cpu_config(),
            evaluate=lambda path: evaluator.evaluate(path).scores,
            eval_every_n_steps=1,
            stop_metric="auc",
            stop_patience=2,
        )
    # Weights 1/2, 0, -1/2: the order of scores is that of the features, none, and the reverse.
    assert result.global_step == 3

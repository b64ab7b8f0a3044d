"""Metrics in training: those of all examples since the last line, of all clones and workers."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, current_clone, deploy, train
from model_deploy.metrics import AUC, LogLoss, RecallAt, add_metric, exact_area
from model_deploy.runs import read_metrics
from model_deploy.training.replicas.early_end import EndByCollective
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
    step = tf.cast(tf.train.get_global_step().read_value(), tf.int32) % STEPS
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
    config = LogicalDevices(**{"num_clones": CLONES, **settings})
    optimizer = tf.train.GradientDescentOptimizer(0.0)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        numbers = (tf.constant(clone) for clone in range(config.batches_per_step))
        built = deploy(config, model, [numbers], optimizer=optimizer, **options)
        shown = {"session_config": cpu_config(), "log_every_n_steps": 3}
        train(built, folder, max_steps=STEPS, **shown)
    return [each for each in read_metrics(folder) if "train_auc" in each]


@pytest.mark.parametrize(
    ("settings", "variable_kind"),
    [
        pytest.param({}, "reference", id="clones"),
        pytest.param({"copy_clones": True}, "resource", id="copies", marks=pytest.mark.one_mode),
        pytest.param({"all_reduce": True}, "resource", id="all-reduce", marks=pytest.mark.one_mode),
        pytest.param({"all_reduce": True}, "reference", id="all-reduce of version 1"),
    ],
    indirect=["variable_kind"],
)
def test_since_the_last_line(tmp_path, capsys, settings, variable_kind):
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


@pytest.mark.one_mode
def test_parts_and_asynchronous_clones(tmp_path):
    """Parts of a clone, and clones that train each for itself, count as clones do.

    One clone with two parts sees what two clones see.  Each asynchronous clone reads the step when
    it begins, so the numbers are of examples of the run, but not those of one order.
    """
    lines = run(tmp_path / "parts", num_clones=1, accumulate_steps=2)
    assert lines[0]["train_auc"] == pytest.approx(expected(slice(3))["train_auc"], rel=1e-6)
    lines = run(tmp_path / "asynchronous", asynchronous=True)
    assert lines[-1]["step"] == STEPS
    # A clone that is ahead is counted before the line of its step; a line may find nothing left.
    assert 0 < lines[0]["train_log_loss"] < 2


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("labels", "said"),
    [
        pytest.param(np.zeros_like(LABELS), "auc undefined  log_loss", id="of one class"),
        pytest.param(
            np.where(LABELS == 1, 2, 0), "labels of auc must be from 0 to 1, got", id="too large"
        ),
    ],
)
def test_examples_that_do_not_define_it(tmp_path, capsys, labels, said):
    """A metric that the examples do not define is said to be so; a bad label ends the run."""
    numbers = functools.partial(model_fn, labels=labels)
    if "must" in said:
        with pytest.raises(ValueError, match=said):
            run(tmp_path, numbers)
        return
    lines = run(tmp_path, numbers)
    assert [line["train_auc"] for line in lines] == [None] * 3
    assert said in capsys.readouterr().err


@pytest.mark.one_mode
def test_metrics_of_clones_that_differ(tmp_path):
    """Clones with different metrics, and two metrics of one name, are refused with their names."""

    def different(numbers):
        clone = current_clone()
        model_fn(numbers)
        if clone == 1:
            add_metric(AUC(name="other"), tf.zeros([1]), tf.zeros([1]))

    def twice(numbers):
        model_fn(numbers)
        add_metric(AUC(), tf.zeros([1]), tf.zeros([1]))

    with pytest.raises(ValueError, match=r"the same metrics, got .*'recall_at_1'\] and .*'other'"):
        run(tmp_path, different)
    with pytest.raises(ValueError, match="metrics must have different names, got auc, log_loss,"):
        run(tmp_path, twice)


@pytest.mark.one_mode
def test_settings_that_workers_must_share(monkeypatch):
    """By all-reduce a setting that decides when workers wait for each other must be the same."""
    config = DeploymentConfig(clone_on_cpu=True, all_reduce=True)
    early_end = EndByCollective(config, {"log_every_n_steps": 5, "eval_every_n_steps": 0}, None)
    tf.train.get_or_create_global_step()
    with tf.Session(config=cpu_config(1)) as session:
        session.run(tf.global_variables_initializer())
        assert not early_end.begin(session, False, lambda running: None)
        # What a worker would receive of one with 10 steps between lines.
        monkeypatch.setattr(early_end, "_largest", tf.constant([10.0, 0.0, -5.0, 0.0, 0.0]))
        with pytest.raises(
            ValueError, match="log_every_n_steps must be the same in all workers, got"
        ):
            early_end.begin(session, False, lambda running: None)

"""Metrics against scikit-learn and arithmetic; any split of the examples gives the same numbers."""

import numpy as np
import pytest
import sklearn.metrics
import tensorflow.compat.v1 as tf

from model_deploy import metrics
from model_deploy.metrics import (
    AUC,
    PRAUC,
    Calibration,
    CalibrationError,
    LogLoss,
    PrecisionAt,
    RecallAt,
    UndefinedMetricError,
    exact_area,
)
from tests.goldens import cpu_config

N, ITEMS = 1000, 12
_RANDOM = np.random.RandomState(7)
# Clicks: log-odds around -3 with a spread of 2, so that some 10% are positive.
LOG_ODDS = _RANDOM.normal(-3, 2, N)
LABELS = (_RANDOM.uniform(size=N) < 1 / (1 + np.exp(-LOG_ODDS))).astype(np.float32)
SCORES = (1 / (1 + np.exp(-(LOG_ODDS + _RANDOM.normal(0, 1, N))))).astype(np.float32)
WEIGHTS = _RANDOM.uniform(0.5, 2, N).astype(np.float32)
ITEM_SCORES = _RANDOM.normal(size=[N, ITEMS]).astype(np.float32)
# One to three relevant items each, different in a row.
RELEVANT = np.argsort(_RANDOM.uniform(size=[N, ITEMS]))[:, :3]
RELEVANT = np.where(np.arange(3) < _RANDOM.randint(1, 4, [N, 1]), RELEVANT, -1)


def _value(metric, *examples):
    """The metric of examples in one batch."""
    with tf.Graph().as_default(), tf.Session(config=cpu_config(1)) as session:
        return metric.value(session.run(metric.statistics(*map(tf.constant, examples))))


def _rounded():
    """The middle of the bin of each score, 1/128 wide in log-odds."""
    scores = SCORES.astype(np.float64)
    return np.floor(np.log(scores / (1 - scores)) * 128)


def _calibration_error(labels, scores, weights, bins):
    """The sum over bins of |sum of w (p - y)|, over the sum of w."""
    found = [np.sum(((scores - labels) * weights)[bins == each]) for each in {*bins.tolist()}]
    return np.abs(found).sum() / weights.sum()


def _recall(weights, k=4):
    best = np.argsort(-ITEM_SCORES, axis=1)[:, :k]
    hits = np.array([len({*own} & {*shown}) for own, shown in zip(RELEVANT, best, strict=True)])
    recalls = hits / (RELEVANT >= 0).sum(axis=1)
    return np.average(recalls, weights=weights), np.average(hits / k, weights=weights)


BINS = np.minimum((SCORES.astype(np.float64) * 20).astype(int), 19)
LOG_BINS = np.floor(_rounded() / 128)
BINARY, RANKED = (LABELS, SCORES, WEIGHTS), (RELEVANT, ITEM_SCORES, WEIGHTS)
SKLEARN = {"sample_weight": WEIGHTS}
_DOUBLE = SCORES.astype(np.float64)
CASES = {
    "auc": (AUC(), BINARY, sklearn.metrics.roc_auc_score(LABELS, _rounded(), **SKLEARN)),
    "pr_auc": (
        PRAUC(),
        BINARY,
        sklearn.metrics.average_precision_score(LABELS, _rounded(), **SKLEARN),
    ),
    "log_loss": (LogLoss(), BINARY, sklearn.metrics.log_loss(LABELS, _DOUBLE, **SKLEARN)),
    "calibration": (Calibration(), BINARY, np.sum(WEIGHTS * _DOUBLE) / np.sum(WEIGHTS * LABELS)),
    "calibration_error": (
        CalibrationError(),
        BINARY,
        _calibration_error(LABELS, _DOUBLE, WEIGHTS, BINS),
    ),
    "calibration_error_by_odds": (
        CalibrationError(num_bins=32, spacing="log_odds"),
        BINARY,
        _calibration_error(LABELS, _DOUBLE, WEIGHTS, LOG_BINS),
    ),
    "recall": (RecallAt(k=4), RANKED, _recall(WEIGHTS)[0]),
    "precision": (PrecisionAt(k=4), RANKED, _recall(WEIGHTS)[1]),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    """A weighted metric is scikit-learn's, or NumPy's; curves are those of rounded scores."""
    metric, examples, expected = CASES[case]
    assert _value(metric, *examples) == pytest.approx(expected, rel=1e-6)


@pytest.mark.one_mode
@pytest.mark.parametrize("case", CASES)
def test_any_split_gives_the_same(case):
    """Sums of parts of 1, 99, 500 and 400 examples, added in any order, are those of one batch."""
    metric, examples, _ = CASES[case]
    order = np.random.RandomState(1).permutation(N)
    shuffled = [array[order] for array in examples]
    with tf.Session(config=cpu_config(1)) as session:
        parts = [np.split(array, [1, 100, 600]) for array in shuffled]
        tensors = [metric.statistics(*map(tf.constant, part)) for part in zip(*parts, strict=True)]
        sums = session.run(tensors)
    assert metric.value(np.sum(sums[::-1], axis=0)) == pytest.approx(
        _value(metric, *examples), rel=1e-12
    )


@pytest.mark.one_mode
def test_a_histogram_is_near_the_exact_area():
    """With 4096 bins an area differs from the exact one by less than 0.0005, here 1000 examples."""
    for curve in (AUC(), PRAUC()):
        exact = exact_area(curve, *BINARY)
        assert abs(_value(curve, *BINARY) - exact) < 5e-4


TIES = np.round(LOG_ODDS)  # of any range, with some 50 examples for each score


@pytest.mark.one_mode
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("scores", [TIES, SCORES])
def test_exact_areas(scores, weights):
    """Exact areas are scikit-learn's, with ties and weights."""
    for curve, function in (
        (AUC(), sklearn.metrics.roc_auc_score),
        (PRAUC(), sklearn.metrics.average_precision_score),
    ):
        expected = function(LABELS, scores, sample_weight=weights)
        assert exact_area(curve, LABELS, scores, weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.one_mode
def test_by_hand():
    """Numbers that a reader can redo."""
    # Pairs of a positive (0.4, 0.2) and a negative example (0.1, 0.2): three are won, one ties.
    labels, scores = [0.0, 1.0, 1.0, 0.0], [0.1, 0.4, 0.2, 0.2]
    assert _value(AUC(), labels, scores) == 3.5 / 4
    # The first has precision 1, then two of three: 1/2 * 1 + 1/2 * 2/3.
    assert _value(PRAUC(), labels, scores) == pytest.approx(5 / 6)
    # A label of a half is half a positive and half a negative example.
    assert _value(AUC(), [0.5, 1.0, 0.0], [0.5, 0.9, 0.1]) == pytest.approx(
        (1 * 1.5 + 0.5 * (1 + 0.25)) / 1.5 / 1.5
    )
    assert _value(LogLoss(), [1.0], [0.0]) == pytest.approx(-np.log(1e-7))
    assert _value(Calibration(), [0.0, 1.0], [0.25, 0.5]) == 0.75
    # Bins [0, 1/2) and [1/2, 1]: |0.25 + 0.25 - 1| and |0.75 - 1|, of three examples.
    metric = CalibrationError(num_bins=2)
    assert _value(metric, [0.0, 1.0, 1.0], [0.25, 0.25, 0.75]) == pytest.approx(0.75 / 3)
    # Item 1 is shown; of items 0 and 2, which tie, each with chance 1/2.
    scores = [[1.0, 2.0, 1.0], [1.0, 2.0, 1.0], [0.0, 0.0, 0.0]]
    assert _value(RecallAt(k=2), [1, 2, 0], scores) == pytest.approx((1 + 1 / 2 + 2 / 3) / 3)
    # Examples without a relevant item do not count.
    assert _value(PrecisionAt(k=2), [[1, 2], [-1, -1], [-1, -1]], scores) == pytest.approx(0.75)


NAN, BAD_SCORE = [0.5, np.nan], "predictions of auc must be from 0 to 1, got 1 others"
BAD_EXAMPLES = [
    (
        AUC(),
        ([0.0, 2.0], [0.5, 0.5]),
        ValueError,
        "labels of auc must be from 0 to 1, got 1 others",
    ),
    (AUC(), ([0.0, np.nan], [0.5, 0.5]), ValueError, "labels of auc must be from 0 to 1, got 1"),
    (AUC(), ([0.0, 1.0], NAN), FloatingPointError, BAD_SCORE),
    (AUC(), ([0.0, 1.0], [0.5, 1.5]), FloatingPointError, BAD_SCORE),
    (LogLoss(), ([0.0, 1.0], NAN), FloatingPointError, "predictions of log_loss must be"),
    (
        AUC(name="buys"),
        ([0.0, 1.0], [0.5, 0.5], [1.0, -1.0]),
        ValueError,
        "weights of buys must be finite and at least 0, got 1 others",
    ),
    (
        AUC(),
        ([1.0, 1.0], [0.5, 0.5]),
        UndefinedMetricError,
        "auc must have positive and negative examples, got only positive ones",
    ),
    (PRAUC(), ([0.0], [0.5]), UndefinedMetricError, "got only negative ones"),
    (AUC(), ([0.0], [0.5], [0.0]), UndefinedMetricError, "auc must have an example, got none"),
    (LogLoss(), ([0.0], [0.5], [0.0]), UndefinedMetricError, "log_loss must have an example"),
    (CalibrationError(), ([0.0], [0.5], [0.0]), UndefinedMetricError, "an example, got none"),
    (Calibration(), ([0.0], [0.5], [0.0]), UndefinedMetricError, "an example, got none"),
    (
        Calibration(),
        ([0.0], [0.5]),
        UndefinedMetricError,
        "calibration must have a positive example, got only negative ones",
    ),
    (RecallAt(k=1), ([2], [[0.0, 1.0]]), ValueError, "the number of an item, or -1, got 1 others"),
    (RecallAt(k=1), ([0], [NAN]), FloatingPointError, "predictions of recall_at_1 must be finite"),
    (RecallAt(k=1), ([-1], [[0.0, 1.0]]), UndefinedMetricError, "with a relevant item, got none"),
    (
        RecallAt(k=3),
        ([0], [[0.0, 1.0]]),
        ValueError,
        "k must be at most the number of items, 2, got",
    ),
    (RecallAt(k=1), ([0], [0.5]), ValueError, r"must be \[n, items\], with a known .* got \(1,\)"),
    (RecallAt(k=1), (0, [[0.5]]), ValueError, r"labels of .* must be \[n\] or \[n, m\], got \(\)"),
    (AUC(), ([0.0], [[0.5]]), ValueError, r"shape of the predictions, got \(1,\) and \(1, 1\)"),
]


@pytest.mark.one_mode
@pytest.mark.parametrize(("metric", "examples", "kind", "message"), BAD_EXAMPLES)
def test_bad_examples(metric, examples, kind, message):
    """Values that break a rule, or define nothing, are errors that name metric, rule and count."""
    with pytest.raises(kind, match=message):
        _value(metric, *examples)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (([0, 3], [0.5, 0.5]), ValueError, "labels of auc must be from 0 to 1, got 3"),
        (([0, 1], NAN), FloatingPointError, "scores of auc must be finite, got 1 others"),
        (([0, 1], [1, 2], [1, -1]), ValueError, "finite and at least 0, got -1"),
        (([0, 1], [1]), ValueError, r"vectors of one length, got \(2,\), \(1,\) and \(2,\)"),
        (([1, 1], [1, 2]), UndefinedMetricError, "got only positive ones"),
        (([], []), UndefinedMetricError, "auc must have an example, got none"),
    ],
)
def test_bad_examples_of_exact_areas(arguments, kind, message):
    """The exact area refuses what that of a histogram refuses."""
    with pytest.raises(kind, match=message):
        exact_area(AUC(), *arguments)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (AUC, {"num_bins": 1}, "num_bins must be at least 2, got 1"),
        (LogLoss, {"epsilon": 0}, "epsilon must be between 0 and 0.5, got 0"),
        (CalibrationError, {"num_bins": 0}, "num_bins must be at least 1, got 0"),
        (CalibrationError, {"spacing": "x"}, "spacing must be probability or log_odds, got 'x'"),
        (RecallAt, {"k": 0}, "k must be at least 1, got 0"),
    ],
)
def test_bad_settings(kind, options, message):
    """A metric that cannot be computed says which setting it got."""
    with pytest.raises(ValueError, match=message):
        kind(**options)


@pytest.mark.one_mode
def test_names():
    """A metric has the name of its kind, or its own."""
    assert [each.name for each in (AUC(), RecallAt(k=5), AUC(name="buys"))] == [
        "auc",
        "recall_at_5",
        "buys",
    ]
    assert metrics.LogLoss() == LogLoss(name="log_loss")

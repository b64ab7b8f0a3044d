"""`Evaluator`: every example once on any number of clones, scores as NumPy computes them."""

import hashlib
import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, slim, train
from model_deploy.training import Evaluator, evaluate, moving_average_update
from tests import clusters
from tests.goldens import BATCH_LAW_GOLDENS, GOLDENS, LogicalDevices, cpu_config, feed_clones

EXAMPLES, CLASSES = 23, 7
_RANDOM = np.random.RandomState(3)
FEATURES = _RANDOM.normal(size=[EXAMPLES, 4]).astype(np.float32)
LABELS = _RANDOM.randint(0, CLASSES, EXAMPLES)
WEIGHTS = _RANDOM.normal(size=[4, CLASSES]).astype(np.float32)
# Numbers of the examples in their split: not those of the order.
NUMBERS = np.arange(EXAMPLES) * 10 + 5
DECAY = 0.25


def _batches(batch_size=5):
    """Inputs of all examples, the last batch with what is left."""

    def batches():
        examples = {"features": FEATURES, "label": LABELS, "index": NUMBERS}
        dataset = tf.data.Dataset.from_tensor_slices(examples).batch(batch_size)
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    return batches


def _predict(batch):
    """Linear logits, their mean cross entropy and an L2 loss."""
    weights = slim.model_variable("weights", [4, CLASSES], regularizer=slim.l2_regularizer(DECAY))
    logits = tf.matmul(batch["features"], weights)
    tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)
    return logits, batch["label"]


def _save(folder, weights, step):
    """Writes a checkpoint of `weights`; returns its name."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", initializer=tf.constant(weights, tf.float32))
        tf.Variable(np.int64(step), name="global_step")
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "model.ckpt"), global_step=step)


def _expected(weights, count=EXAMPLES):
    """The columns, scores and loss of the first examples, by NumPy in float64."""
    logits = FEATURES[:count].astype(np.float64) @ weights.astype(np.float64)
    labels = LABELS[:count]
    rows = np.arange(count)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    # The place of the label when the classes are sorted from the most likely on.
    rank = np.argsort(np.argsort(-logits, axis=1), axis=1)[rows, labels]
    columns = {
        "index": NUMBERS[:count],
        "label": labels,
        "predicted": logits.argmax(axis=1),
        "probability": probabilities.max(axis=1),
        "label_probability": probabilities[rows, labels],
        "rank": rank,
    }
    regularization = DECAY * np.sum(np.square(weights.astype(np.float64))) / 2
    loss = -np.log(probabilities[rows, labels]).mean() + regularization
    return columns, np.mean(rank == 0), np.mean(rank < 5), loss


def _check(found, weights, count=EXAMPLES):
    columns, accuracy, recall, loss = _expected(weights, count)
    for name, column in columns.items():
        np.testing.assert_allclose(
            getattr(found.predictions, name), column, rtol=1e-5, err_msg=name
        )
    assert found.examples == count
    assert found.accuracy == pytest.approx(accuracy)
    assert found.recall_at_5 == pytest.approx(recall)
    assert found.total_loss == pytest.approx(loss, rel=1e-6)
    confusion = np.zeros([CLASSES, CLASSES], int)
    for label, predicted in zip(columns["label"], columns["predicted"], strict=True):
        confusion[label, predicted] += 1
    np.testing.assert_array_equal(found.confusion, confusion)
    for accuracy, row, i in zip(found.class_accuracies, confusion, range(CLASSES), strict=True):
        assert accuracy == (pytest.approx(row[i] / row.sum()) if row.sum() else None)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("clones", "batch_size", "variable_kind"),
    [
        pytest.param(1, 30, "resource", marks=pytest.mark.one_mode),
        (2, 8, "reference"),
        pytest.param(3, 5, "reference", marks=pytest.mark.one_mode),
        (4, 1, "resource"),
    ],
    indirect=["variable_kind"],
)
def test_every_example_once(tmp_path, clones, batch_size, variable_kind):
    """Scores and loss are those of NumPy, however 23 examples are divided.

    Batches of 1 leave clones without an example; 3 are left of batches of 5, 7 of those of 8.
    """
    path = _save(tmp_path, WEIGHTS, 4)
    config = LogicalDevices(num_clones=clones, accumulate_steps=2)  # which says nothing here
    found = _evaluated(path, _batches(batch_size), config=config)
    _check(found, WEIGHTS)
    assert (found.checkpoint, found.global_step) == (path, 4)
    assert 0 < found.accuracy < found.recall_at_5 < 1  # so that none can pass for another


def _evaluated(path, batches=None, predict=_predict, clones=3, **options):
    config = LogicalDevices(num_clones=clones)
    options = {"config": config, "session_config": cpu_config(4), **options}
    return evaluate(predict, batches or _batches(), path, **options)


@pytest.mark.one_mode
@pytest.mark.parametrize("num_batches", [1, 3, 9])
def test_max_num_batches(tmp_path, num_batches):
    """Only the first batches count, all five if there are no more; clones change nothing."""
    found = _evaluated(_save(tmp_path, WEIGHTS, 4), max_num_batches=num_batches)
    _check(found, WEIGHTS, min(EXAMPLES, 5 * num_batches))


@pytest.mark.one_mode
def test_one_checkpoint_after_another(tmp_path):
    """One evaluator evaluates many checkpoints, each from the first example on."""
    paths = [_save(tmp_path, factor * WEIGHTS, step) for step, factor in ((1, 1), (2, -1), (3, 2))]
    # By default ops ask for the first GPU, and run on the CPU where there is none.
    with Evaluator(_predict, _batches(), config=DeploymentConfig()) as evaluator:
        _check(evaluator.evaluate(paths[0]), WEIGHTS)
        _check(evaluator.evaluate(paths[1]), -WEIGHTS)
        _check(evaluator.evaluate(tmp_path), 2 * WEIGHTS)
        _check(evaluator.evaluate(f"{paths[0]}.index"), WEIGHTS)
        assert evaluator.evaluate(tmp_path).global_step == 3


@pytest.mark.gpu
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "clones"), list(zip(BATCH_LAW_GOLDENS, itertools.cycle([3, 2, 4, 1]), strict=False))
)
def test_the_loss_is_that_of_training(tmp_path, name, clones):
    """The loss over batches of 7 is that of a step of one clone on all 24 examples."""
    golden = GOLDENS[name]
    model = deploy(LogicalDevices(), feed_clones(golden, 1))
    path = str(tmp_path / "model.ckpt")
    with tf.Session(config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
        expected = session.run(model.total_loss)

    def batches():
        examples = tf.data.Dataset.from_tensor_slices((golden.features, golden.labels)).batch(7)
        iterator = tf.compat.v1.data.make_initializable_iterator(examples)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    def predict(batch):
        features, labels = batch
        golden.model_fn(features, labels)
        size = tf.shape(labels)[0]
        return tf.zeros([size, 2]), tf.zeros([size], tf.int64)

    found = _evaluated(path, batches, predict, clones)
    assert found.total_loss == pytest.approx(expected, rel=1e-5)
    np.testing.assert_array_equal(found.predictions.index, np.arange(24))


@pytest.mark.one_mode
def test_a_loss_outside_of_the_model(tmp_path):
    """A loss that the inputs add counts once, with any number of clones. Predictions without a loss
    are evaluated, too.
    """

    def batches():
        tf.losses.add_loss(tf.constant(10.0))
        return _batches()()

    path = _save(tmp_path, WEIGHTS, 4)
    found = _evaluated(path, batches)
    assert found.total_loss == pytest.approx(_expected(WEIGHTS)[3] + 10, rel=1e-6)

    def predict(batch):
        weights = slim.model_variable("weights", [4, CLASSES])
        return tf.matmul(batch["features"], weights), batch["label"]

    found = evaluate(predict, _batches(), path)
    assert found.total_loss is None
    assert found.accuracy == pytest.approx(_expected(WEIGHTS)[1])


@pytest.mark.one_mode
def test_ties(tmp_path):
    """Of classes that are as likely the first one is predicted, and none is more likely."""
    found = evaluate(_predict, _batches(), _save(tmp_path, np.zeros([4, CLASSES]), 1))
    assert found.accuracy == pytest.approx(np.mean(LABELS == 0))
    assert found.recall_at_5 == 1
    np.testing.assert_allclose(found.predictions.probability, 1 / CLASSES, rtol=1e-6)


@pytest.mark.gpu
def test_averages(tmp_path):
    """The averages of a run are evaluated in place of its variables.

    At rate 1/2 the weights go 1, 1/2, 1/4, 1/8. Each average becomes d times itself plus
    1 - d times the weight, with d the lesser of 1/2 and (1 + step) / (10 + step).
    """

    def model_fn():
        weights = slim.model_variable("weights", [4, CLASSES], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.reduce_sum(tf.square(weights)) / 2)

    update = moving_average_update(0.5, tf.train.get_or_create_global_step())
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    model = deploy(LogicalDevices(), model_fn, optimizer=optimizer, update_ops=[update])
    train(model, tmp_path, max_steps=3, session_config=cpu_config())
    average = 1.0
    for step, weight in ((1, 1 / 2), (2, 1 / 4), (3, 1 / 8)):
        decay = min(0.5, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weight
    for use_averages, weight in ((True, average), (False, 1 / 8)):
        found = evaluate(_predict, _batches(), tmp_path, use_averages=use_averages)
        assert found.global_step == 3
        _, _, _, loss = _expected(np.full([4, CLASSES], weight))
        assert found.total_loss == pytest.approx(loss, rel=1e-6)


@pytest.mark.one_mode
def test_averages_that_were_not_trained(tmp_path):
    """Averages that a checkpoint lacks are named, not replaced by the variables."""
    path = _save(tmp_path, WEIGHTS, 1)
    with pytest.raises(ValueError, match="where weights/ExponentialMovingAverage is missing"):
        evaluate(_predict, _batches(), path, use_averages=True)


def _trained_with(folder, evaluations):
    """Trains 6 steps with dropout, evaluating between them; a hash of all that is saved."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)

        def model_fn():
            weights = slim.model_variable("weights", [4, CLASSES])
            logits = slim.dropout(tf.matmul(tf.constant(FEATURES), weights), 0.5)
            tf.losses.sparse_softmax_cross_entropy(tf.constant(LABELS), logits)

        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        model = deploy(LogicalDevices(), model_fn, optimizer=optimizer)
        saver = tf.train.Saver()
        with (
            Evaluator(_predict, _batches()) as evaluator,
            tf.Session(config=cpu_config()) as session,
        ):
            session.run(tf.global_variables_initializer())
            for step in range(6):
                session.run(model.train_op)
                if evaluations:
                    path = saver.save(session, str(folder / "model.ckpt"), global_step=step)
                    assert evaluator.evaluate(path).examples == EXAMPLES
                assert tf.get_default_graph() is session.graph
            values = session.run(tf.global_variables())
    return hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()


@pytest.mark.one_mode
@pytest.mark.usefixtures("variable_kind")
def test_training_is_left_alone(tmp_path):
    """Training with an evaluation after each step ends with the bits of training without."""
    alone, evaluated = (_trained_with(tmp_path, each) for each in (False, True))
    assert evaluated == alone


@pytest.mark.one_mode
def test_a_shared_server(tmp_path):
    """On the server of a run, the evaluation's variables are not those of the run."""
    path = _save(tmp_path, WEIGHTS, 4)
    [target] = clusters.workers(1)
    with tf.Session(target) as session:
        mine = tf.get_variable("weights", initializer=tf.ones([4, CLASSES]))
        session.run(mine.initializer)
        _check(evaluate(_predict, _batches(), path, master=target), WEIGHTS)
        assert np.all(session.run(mine) == 1)


@pytest.mark.one_mode
@pytest.mark.parametrize("version", [tf.train.SaverDef.V1, tf.train.SaverDef.V2])
def test_checkpoints_as_slim_wrote_them(tmp_path, version):
    """Both formats are read, by name; without a global step the name tells the step, or 0."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", initializer=tf.constant(WEIGHTS))
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(write_version=version)
        saver.save(session, str(tmp_path / "linear.ckpt"))
        saver.save(session, str(tmp_path / "linear.ckpt"), global_step=7)

    def predict(batch):
        tf.train.get_or_create_global_step()  # as NASNet does
        return _predict(batch)

    for name, step in (("linear.ckpt", 0), ("linear.ckpt-7", 7)):
        found = evaluate(predict, _batches(), tmp_path / name)
        _check(found, WEIGHTS)
        assert found.global_step == step


def test_needs_a_session_batches_and_a_number_of_classes(tmp_path):
    """Without a session there is nothing to restore into. Fewer than one batch is an error at once;
    without a number of classes there is no confusion matrix.
    """
    with pytest.raises(RuntimeError, match="within `with Evaluator"):
        Evaluator(_predict, _batches()).evaluate(_save(tmp_path, WEIGHTS, 4))
    with pytest.raises(ValueError, match="max_num_batches must be at least 1, got 0"):
        Evaluator(_predict, _batches(), max_num_batches=0)

    def predict(batch):
        logits = tf.placeholder_with_default(tf.zeros([5, 3]), [None, None])
        return logits, batch["label"]

    with pytest.raises(ValueError, match="a known number of classes, got None"):
        Evaluator(predict, _batches())


def _no_rows():
    return {key: value[:0] for key, value in _batches()().items()}


def _no_batches():
    dataset = tf.data.Dataset.from_tensor_slices({"features": FEATURES, "label": LABELS})
    return tf.compat.v1.data.make_one_shot_iterator(dataset.take(0).batch(2)).get_next()


def _labelled(label):
    """A model whose labels are all the same."""

    def predict(batch):
        logits = tf.matmul(batch["features"], slim.model_variable("weights", [4, CLASSES]))
        return logits, tf.fill(tf.shape(batch["label"]), label)

    return predict


NOT_FINITE = "must be finite, got others at step 9 for .* 23 examples, the first of them number 5"


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("weights", "predict", "batches", "message"),
    [
        (WEIGHTS, _predict, _no_rows, "at least one example, got none"),
        (WEIGHTS, _predict, _no_batches, "at least one example, got none"),
        (WEIGHTS, _labelled(-1), _batches(), "labels must be from 0 to 6, got -1"),
        (WEIGHTS, _labelled(CLASSES), _batches(), "labels must be from 0 to 6, got 7"),
        (WEIGHTS * [1, np.nan, 1, 1, 1, 1, 1], _predict, _batches(), NOT_FINITE),
        (WEIGHTS * [1, 1, 1, 1, 1, 1, np.inf], _predict, _batches(), NOT_FINITE),
        (
            WEIGHTS[:, :3],
            _predict,
            _batches(),
            r"of this model, got .*, where weights has shape \[4, 3\], not \[4, 7\]$",
        ),
    ],
)
def test_what_is_not_scored(tmp_path, weights, predict, batches, message):
    """No examples have no accuracy, a label that is no class is no wrong prediction, and a model
    that gives no numbers is not scored; a checkpoint of another model names what differs.
    """
    path = _save(tmp_path, weights, 9)
    with pytest.raises((ValueError, FloatingPointError), match=message) as error:
        evaluate(predict, batches, path)
    assert isinstance(error.value, FloatingPointError) == (message == NOT_FINITE)

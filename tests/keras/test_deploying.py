"""`deploy_model`: losses, metrics, batches and optimizers as `model.compile` takes them."""

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy import DeploymentConfig, graph_walk
from model_deploy.keras import deploy_model
from model_deploy.keras.losses import get_loss
from model_deploy.optimization import current_value
from tests.goldens import LogicalDevices, cpu_config
from tests.keras_layers.every_layer import functions_of

# Of two clones: predictions are twice the features.
FEATURES = np.array([[[1.0], [2.0]], [[3.0], [4.0]]], np.float32)
LABELS = np.array([[1.0, 5.0], [6.0, 6.0]], np.float32)
ERRORS = np.array([[1.0, 1.0], [0.0, 4.0]])  # squared
CPU = DeploymentConfig(clone_on_cpu=True)
TWO = LogicalDevices(2, copy_clones=False)


def double(library=keras):
    """A model of one weight, which is 2."""
    dense = library.layers.Dense(
        1, use_bias=False, kernel_initializer=library.initializers.Constant(2.0)
    )
    return library.Sequential([library.Input((1,)), dense])


def batches(*weights):
    """The batches of the two clones."""
    parts = zip(FEATURES, LABELS, *weights, strict=True)
    return iter([tuple(map(tf.constant, part)) for part in parts])


def run(model, *fetches):
    """What is fetched before and after a step, if there is one."""
    with tf.Session(config=cpu_config()) as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        before = session.run(fetches)
        if model.train_op is not None:
            session.run(model.train_op)
        return before, session.run(fetches)


@pytest.mark.one_mode
@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_every_loss_by_name(library):
    """Each name of a loss of Keras gives the mean over the batch of the loss of that name."""
    shares = np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]], np.float32)
    predictions = tf.constant([[0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    values = {}
    # The last one is a name that `keras.losses.get` does not know.
    left_out = {"ctc", "categorical_generalized_cross_entropy"}
    for name in sorted({*functions_of(library.losses)} - left_out):
        takes_classes = name in ("sparse_categorical_crossentropy", "circle")
        labels = tf.constant([1, 0] if takes_classes else shares)
        expected = getattr(library.losses, name)(labels, predictions)
        values[name] = get_loss(name, library)(labels, predictions), tf.reduce_mean(expected)
    with tf.Session(config=cpu_config()) as session:
        for name, (found, expected) in session.run(values).items():
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda library: "mse", id="name"),
        pytest.param(lambda library: "MeanSquaredError", id="class"),
        pytest.param(lambda library: library.losses.MeanSquaredError(), id="object"),
        pytest.param(
            lambda library: lambda labels, found: (labels[:, None] - found) ** 2, id="function"
        ),
    ],
)
def test_loss_is_the_mean_of_means(library, loss):
    """A loss, given in any way, is the mean over a clone's batch, and then over the clones."""
    model = deploy_model(TWO, lambda: double(library), loss(library), None, batches())
    [[found], _] = run(model, model.total_loss)
    assert found == pytest.approx(ERRORS.mean(axis=1).mean())


def test_weights_of_examples():
    """A third part of a batch weighs the examples, in the loss and in metrics."""
    weights = np.array([[2.0, 0.0], [1.0, 1.0]], np.float32)
    model = deploy_model(TWO, double, "mse", None, batches(weights), metrics=["mse"])
    [[loss, metric], _] = run(model, model.total_loss, model.metrics["mean_squared_error"])
    assert loss == pytest.approx((ERRORS * weights).mean(axis=1).mean())
    assert metric == pytest.approx(((ERRORS * weights).sum(1) / weights.sum(1)).mean())


def test_sums():
    """Of losses with the reduction `sum` the total is the mean of the clones' sums."""
    loss = keras.losses.MeanSquaredError(reduction="sum")
    model = deploy_model(TWO, double, loss, None, batches())
    [[found], _] = run(model, model.total_loss)
    assert found == pytest.approx(ERRORS.sum(axis=1).mean())


def test_step():
    """A step is that of the optimizer with the gradient of the mean; one variable for all."""
    optimizer = keras.optimizers.SGD(0.01, weight_decay=0.1)
    model = deploy_model(TWO, double, "mse", optimizer, batches())
    [weight] = tf.trainable_variables()
    assert weight.op.name == "sequential/dense/kernel"
    assert {v.op.name for v in tf.global_variables()} == {weight.op.name, "global_step"}
    [_, [found, rate]] = run(model, weight, model.learning_rate)
    gradient = (2 * (2 * FEATURES[..., 0] - LABELS) * FEATURES[..., 0]).mean()
    assert found == pytest.approx(2 - 0.01 * 0.1 * 2 - 0.01 * gradient)
    assert rate == pytest.approx(0.01)


def test_clipping():
    """`global_clipnorm` is that of the gradient of all clones."""
    optimizer = keras.optimizers.SGD(1.0, global_clipnorm=0.25)
    model = deploy_model(TWO, double, "mse", optimizer, batches())
    [weight] = tf.trainable_variables()
    [_, [found]] = run(model, weight)
    assert found == pytest.approx(1.75)  # the gradient is more than 0.25


def test_excluded_from_decay():
    """What the Keras optimizer leaves out of its decay is not decayed."""
    optimizer = keras.optimizers.SGD(0.0, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["kernel"])
    model = deploy_model(TWO, double, "mse", optimizer, batches())
    [weight] = tf.trainable_variables()
    [_, [found]] = run(model, weight)
    assert found == 2.0


def test_frozen_layers():
    """Layers with `trainable=False` stay as they are."""

    def build():
        model = double()
        frozen = keras.layers.Dense(1, name="frozen", trainable=False)
        return keras.Sequential([keras.Input((1,)), frozen, *model.layers])

    model = deploy_model(TWO, build, "mse", keras.optimizers.Adam(0.1), batches())
    kept = [v for v in tf.global_variables() if "frozen" in v.op.name and "Adam" not in v.op.name]
    assert len(kept) == 2
    [before, after] = run(model, *kept)
    assert before == after


def test_dataset():
    """Each clone takes the next batch of a `tf.data.Dataset`, on the inputs' device."""
    data = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat()
    model = deploy_model(TWO, double, "mse", None, data, metrics=["mae"])
    [[loss, metric], _] = run(model, model.total_loss, model.metrics["mean_absolute_error"])
    assert loss == pytest.approx(ERRORS.mean())
    assert metric == pytest.approx(np.sqrt(ERRORS).mean())


def test_metrics():
    """Metrics by name, object and function have the values of Keras; no variable is left."""
    logits = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1, 3, 2]], np.float32)
    labels = np.array([0, 2, 1, 2])

    def build():
        return keras.Sequential([keras.Input((3,)), keras.layers.Activation("linear")])

    def shares(labels, predictions):
        return tf.reduce_max(tf.nn.softmax(predictions), axis=1)

    model = deploy_model(
        CPU,
        build,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        None,
        iter([{"image": tf.constant(logits), "label": tf.constant(labels)}]),
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2, name="top_2"), shares],
    )
    names = ["accuracy", "top_2", "shares"]
    assert list(model.metrics) == names
    assert tf.global_variables() == []
    with tf.Session() as session:
        found = session.run([model.metrics[name] for name in names])
        tags = tf.Summary.FromString(session.run(model.summary_op)).value
    exponentials = np.exp(logits)
    share = (exponentials.max(axis=1) / exponentials.sum(axis=1)).mean()
    np.testing.assert_allclose(found, [0.5, 1.0, share], rtol=1e-6)
    assert {f"metrics/{name}" for name in names} <= {value.tag for value in tags}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"model": 3}, "model must be a Keras model or a function .*, got 3", id="model"
        ),
        pytest.param(
            {"model": lambda: 3}, "model must be a function that returns a Keras model", id="made"
        ),
        pytest.param(
            {"loss": "msee"}, "loss must be the name of a loss of Keras, got 'ms", id="loss"
        ),
        pytest.param(
            {"loss": "ctc"}, "loss must work in a graph, .*CTC.*got <function ctc", id="ctc"
        ),
        pytest.param(
            {"loss": keras.losses.CTC()},
            "loss must work in a graph, .*got .*<function ctc",
            id="CTC",
        ),
        pytest.param(
            {"loss": ["mse"]}, r"loss must be one Keras loss, .*, got \['mse'\]", id="two"
        ),
        pytest.param(
            {"loss": keras.losses.MeanSquaredError(reduction=None)},
            "loss must be a scalar, got 'mean_squared_error' of shape",
            id="reduction",
        ),
        pytest.param({"metrics": "mse"}, "metrics must be a list, got 'mse'", id="metrics"),
        pytest.param(
            {"metrics": ["msee"]},
            "metrics must be the names of metrics .*, got 'msee'",
            id="metric",
        ),
        pytest.param(
            {"metrics": [3]}, "metrics must be Keras 3 metrics, .*, got builtins.int", id="number"
        ),
        pytest.param(
            {"batches": [1]}, "batches must be an iterator .*, got builtins.li", id="list"
        ),
        pytest.param(
            {"batches": iter([1])}, r"batches must be \(features, labels\),.* 1", id="one"
        ),
    ],
)
def test_rejects(arguments, message):
    """What is none of Keras' is named."""
    settings = {"model": double, "loss": "mse", "optimizer": "sgd", "batches": batches()}
    with pytest.raises(ValueError, match=f"^{message}"):
        deploy_model(CPU, **{**settings, **arguments})


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_embeddings_by_rows(library):
    """Keras' Adam trains an embedding by rows to the values that it has without, and no op of the
    step takes the whole table.
    """
    ends = []
    for by_rows in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            words = tf.placeholder(tf.int64, [4, 2])

            def make_model():
                start = library.initializers.RandomNormal(seed=1)
                embedding = library.layers.Embedding(20, 3, embeddings_initializer=start)
                return library.Sequential([library.Input((2,), dtype="int64"), embedding])

            # The words of a step are only known when it is made.
            batch = iter([(words, tf.ones([4, 2, 3]))])
            deployed = deploy_model(CPU, make_model, "mse", "adam", batch, by_rows=by_rows)
            session.run(tf.global_variables_initializer())
            for step in range(8):
                session.run(deployed.train_op, {words: np.arange(8).reshape(4, 2) * step % 20})
            [table] = tf.trainable_variables()
            value = current_value(table)
            assert (value is not None) == by_rows
            ends.append(session.run(table if value is None else value))
            needed = graph_walk.ancestors([deployed.train_op.op], control_inputs=True)
            reads = [op for op in table.handle.consumers() if op.type == "ReadVariableOp"]
            if by_rows:
                assert not needed.intersection(reads)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-6)

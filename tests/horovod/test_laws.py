"""A job of several processes trains as one process does on all their batches."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import model_deploy.horovod as hvd
from tests.horovod.jobs import run_job
from tests.keras_layers.models import KERASES

SIZE, BATCH, STEPS = 4, 2, 3
_RANDOM = np.random.RandomState(0)
WORDS = _RANDOM.randint(0, 7, [SIZE * BATCH, 3])
FEATURES = _RANDOM.randn(SIZE * BATCH, 5).astype(np.float32)
LABELS = _RANDOM.randn(SIZE * BATCH, 2).astype(np.float32)


def _loss(part):
    """The loss on a slice of the examples."""
    return _loss_of(tf.range(SIZE * BATCH)[part])


def _loss_of(part):
    """Of an embedding, whose gradients are sparse, and a dense layer, on examples by number."""
    table = tf.get_variable("table", [7, 4])
    kernel = tf.get_variable("kernel", [9, 2])
    bias = tf.get_variable("bias", [2])
    tf.get_variable("idle", [2])
    words, features, labels = (tf.gather(each, part) for each in (WORDS, FEATURES, LABELS))
    words = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
    logits = tf.matmul(tf.concat([words, features], axis=1), kernel) + bias
    return tf.reduce_mean(tf.square(logits - labels))


def _trainer(optimizer, batch=BATCH, **arguments):
    """Builds a process that takes its part of the examples, of `batch` each."""

    def build(rank):
        first = rank * batch
        made = hvd.DistributedOptimizer(optimizer(), **arguments)
        step = tf.train.get_or_create_global_step()
        train = made.minimize(_loss(slice(first, first + batch)), global_step=step)
        return train, {v.op.name: v for v in tf.global_variables()}

    return build


_AVERAGED = {"average_aggregated_gradients": True, "gradient_predivide_factor": 2.0}


def _momentum(rate=0.1):
    return lambda: tf.train.MomentumOptimizer(rate, 0.9)


def _alone(optimizer, runs=STEPS):
    """The variables of one process that takes all examples."""
    [(_, values)] = run_job(1, _trainer(optimizer, batch=SIZE * BATCH), runs)
    return values


def _assert_same(values, expected, atol=1e-6):
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        if "/" in name:  # slots of another learning rate
            continue
        np.testing.assert_allclose(values[name], value, rtol=1e-6, atol=atol, err_msg=name)


@pytest.mark.parametrize(
    ("optimizer", "arguments"),
    [
        pytest.param(_momentum(), {}, id="average"),
        pytest.param(_momentum(0.1 / SIZE), {"op": hvd.Sum}, id="sum"),
    ],
)
def test_a_job_trains_as_one_process(optimizer, arguments):
    """Four processes on two examples each end where one ends on all eight."""
    expected = _alone(_momentum())
    for _, values in run_job(SIZE, _trainer(optimizer, **arguments), STEPS):
        _assert_same(values, expected)


@pytest.mark.parametrize("library", KERASES.values(), ids=KERASES)
@pytest.mark.parametrize("passes", [1, 2])
def test_models_and_optimizers_of_keras(library, passes):
    """A model and an optimizer of Keras, with clipping by the joint norm and a schedule."""
    settings = {"average_aggregated_gradients": True, "backward_passes_per_step": passes}

    def trainer(batch, **arguments):
        def build(rank):
            schedule = library.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
            own = library.optimizers.Adam(schedule, epsilon=1e-2, global_clipnorm=0.1)
            optimizer = hvd.DistributedOptimizer(own, **arguments)
            normal = library.initializers.RandomNormal(seed=1)
            dense = functools.partial(library.layers.Dense, kernel_initializer=normal)
            model = library.Sequential(  # names that do not count the models of the test process
                [library.layers.Input([5], name="x"), dense(3, name="h"), dense(2, name="y")],
                name="m",
            )
            part = slice(rank * batch, (rank + 1) * batch)
            loss = tf.reduce_mean(tf.square(model(tf.constant(FEATURES[part])) - LABELS[part]))
            train = optimizer.minimize(
                loss, tf.train.get_global_step(), var_list=model.trainable_variables
            )
            return train, dict(zip(("w", "b", "v", "c"), tf.trainable_variables(), strict=True))

        return build

    [(_, expected)] = run_job(1, trainer(SIZE * BATCH), STEPS)
    for _, values in run_job(SIZE, trainer(BATCH, **settings), passes * STEPS):
        _assert_same(values, expected)


def _of_passes(optimizer, in_each, **arguments):
    """Builds a process that takes one of its examples in each of two passes.

    Args:
      optimizer: makes the optimizer.
      in_each: takes the optimizer's gradients, returns fetches of each pass beside the train op.
      **arguments: of `DistributedOptimizer`.
    """

    def build(rank):
        turn = tf.Variable(-1, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        place = rank * BATCH + turn.assign_add(1) % 2
        made = hvd.DistributedOptimizer(
            optimizer(), backward_passes_per_step=2, sparse_as_dense=True, **arguments
        )
        pairs = made.compute_gradients(_loss_of(tf.range(place, place + 1)))
        fetched = in_each([gradient for gradient, _ in pairs])
        step = tf.train.get_or_create_global_step()
        train = made.apply_gradients(pairs, global_step=step)
        return (train, fetched), {v.op.name: v for v in tf.global_variables()}

    return build


def _adam():
    return tf.train.AdamOptimizer(epsilon=0.1)


@pytest.mark.parametrize(
    ("optimizer", "alone", "arguments"),
    [
        pytest.param(_momentum(), _momentum(), _AVERAGED, id="averages"),
        pytest.param(_momentum(0.05), _momentum(), {}, id="sums"),
        pytest.param(_adam, _adam, _AVERAGED, id="names"),
    ],
)
@pytest.mark.parametrize("use_resource", [True, False])
def test_passes_are_one_pass_of_all(optimizer, alone, arguments, use_resource):
    """Two passes of one example each, averaged or added up, are one pass of both."""

    def with_variables(build):
        def build_with(rank):
            with tf.variable_scope("", use_resource=use_resource):
                return build(rank)

        return build_with

    whole = with_variables(_trainer(alone, batch=SIZE * BATCH))
    [(_, expected)] = run_job(1, whole, STEPS)
    parts = with_variables(_of_passes(optimizer, lambda _: (), **arguments))
    for _, values in run_job(SIZE, parts, 2 * STEPS):
        _assert_same(values, expected)


def _gradients_of_all(rank):
    """Builds the gradients of the variables that have one, on all examples."""
    del rank
    loss = _loss(slice(None))
    return [], list(map(tf.convert_to_tensor, tf.gradients(loss, tf.trainable_variables()[:3])))


def test_gradients_travel_in_the_last_pass():
    """In the first pass a process has its own gradients, in the second the mean of all."""
    build = _of_passes(lambda: tf.train.GradientDescentOptimizer(0.0), tuple, **_AVERAGED)
    found = [each for each, _ in run_job(SIZE, build, 2)]
    firsts, means = ([each[turn][1] for each in found] for turn in (0, 1))
    assert not np.allclose(firsts[0][1], firsts[1][1])
    assert not np.allclose(firsts[0][1], means[0][1])
    for own in means:
        for gradient, expected in zip(own, means[0], strict=True):
            np.testing.assert_array_equal(gradient, expected)
    [(_, whole)] = run_job(1, _gradients_of_all)
    for gradient, expected in zip(means[0], whole, strict=True):
        np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_sums_of_passes_are_whole_when_they_are_sent():
    """What is sent in 16 bits has the last pass: 1, 2 and 4 are exact, and so is their sum."""

    def build(rank):
        turn = tf.get_local_variable("turn", initializer=-1, use_resource=True)
        factor = tf.gather([1.0, 2.0, 4.0], turn.assign_add(1) % 3)
        kernel = tf.get_variable("kernel", [300], initializer=tf.zeros_initializer())
        optimizer = hvd.DistributedOptimizer(
            tf.train.GradientDescentOptimizer(1.0),
            compression=hvd.Compression.fp16,
            backward_passes_per_step=3,
        )
        return optimizer.minimize((rank + 1) * factor * tf.reduce_sum(kernel)), kernel

    for _, kernel in run_job(2, build, runs=6):
        np.testing.assert_array_equal(kernel, np.full(300, -2 * 7 * 1.5))


def test_sixteen_bits_round_what_is_sent():
    """Each gradient is rounded once when it is sent, and the sum once; sparse ones just once."""
    unit = 2.0**-11  # of float16, relative; below 2^-14 there is a step of 2^-24

    def build(rank):
        loss = _loss(slice(rank * BATCH, (rank + 1) * BATCH))
        plain, rounded = (
            hvd.DistributedOptimizer(_momentum()(), name, op=hvd.Sum, compression=compression)
            for name, compression in (("plain", hvd.Compression.none), ("", hvd.Compression.fp16))
        )
        own = tf.gradients(loss, tf.trainable_variables()[:3])
        each = [
            [tf.convert_to_tensor(g) for g in gradients]
            for gradients in (
                own,
                *([g for g, _ in o.compute_gradients(loss)[:3]] for o in (plain, rounded)),
            )
        ]
        return [], each

    found = [values for _, values in run_job(SIZE, build)]
    for k in range(3):
        sent = sum(np.abs(own[k]) for own, _, _ in found)
        total = np.abs(found[0][1][k])
        bound = unit * (sent + total * (1 + unit)) + unit**2 * sent + (SIZE + 1) * 2.0**-25
        for _, plain, rounded in found:
            assert np.all(np.abs(rounded[k] - plain[k]) <= bound * (1 + 1e-5))
            np.testing.assert_array_equal(rounded[k], found[0][2][k])
        assert np.any(found[0][2][k] != found[0][1][k])


def test_a_tape_has_the_gradients_of_all():
    """Gradients of a tape are means over processes, sparse ones too, in the structure asked for."""

    def build(rank):
        def gradients(part, wrap):
            with wrap(tf.GradientTape()) as tape, tf.variable_scope("", reuse=tf.AUTO_REUSE):
                loss = _loss(part)
            table, kernel, _, idle = tf.trainable_variables()
            found = tape.gradient(loss, {"table": table, "other": [kernel, idle]})
            return found["table"], found["other"]

        table, [kernel, idle] = gradients(
            slice(rank * BATCH, (rank + 1) * BATCH), hvd.DistributedGradientTape
        )
        assert isinstance(table, tf.IndexedSlices)
        assert idle is None
        expected, [whole, _] = gradients(slice(None), lambda tape: tape)
        return [], [tf.convert_to_tensor(table), kernel, tf.convert_to_tensor(expected), whole]

    if not tf.resource_variables_enabled():
        pytest.skip("a tape watches no reference variable")
    for _, (table, kernel, expected, whole) in run_job(SIZE, build):
        np.testing.assert_allclose(table, expected, atol=1e-6)
        np.testing.assert_allclose(kernel, whole, atol=1e-6)

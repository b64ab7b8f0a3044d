"""What tables are: which ids have rows, what look-ups give, what is refused."""

import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, create_clones, deploy, embeddings
from tests import clusters, harness, laws
from tests.embeddings import many_ids, models
from tests.goldens import NUM_EXAMPLES, Golden, LogicalDevices, cpu_config

# Variables of tables are resource variables in both modes.
pytestmark = pytest.mark.one_mode


def _ids_by_step(table, steps):
    """The ids that have rows after each of some steps, whose ids are given."""
    ids = tf.placeholder(tf.int64, [None])

    def model_fn():
        tf.losses.add_loss(tf.reduce_sum(embeddings.look_up(table, ids)))

    model = deploy(LogicalDevices(), model_fn, optimizer=harness.sgd())
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        harness.start(session)
        found = []
        for of_step in steps:
            session.run(model.train_op, {ids: of_step})
            rows = session.run("t/index/ids/Read/ReadVariableOp:0")
            found.append(sorted(set(rows) - {-1}))
        return found


def _table(**settings):
    return embeddings.GrowingTable(name="t", width=2, **settings)


def _splitmix(number):
    """One output of splitmix64, by the text of Steele et al."""
    mask = 2**64 - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def _least(number, ids):
    """The ids that get rows where there are rows for so many: those of the least hash."""
    return sorted(sorted(ids, key=_splitmix)[:number])


@pytest.mark.parametrize(
    ("table", "steps", "expected"),
    [
        pytest.param(
            _table(max_rows=10), [[7, 7, 3], [5]], [[3, 7], [3, 5, 7]], id="a row when first seen"
        ),
        pytest.param(
            _table(max_rows=10, min_steps=2),
            [[7, 7, 3], [3, 5], [7]],
            [[], [3], [3, 7]],
            id="in the second step, however often in the first",
        ),
        pytest.param(
            _table(max_rows=3),
            [[1], [2], [3], [4], [5]],
            [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [3, 4, 5]],
            id="the oldest go, to nine tenths and at least one below the limit",
        ),
        pytest.param(
            _table(max_rows=3, drop="rarest"),
            [[1, 2], [1, 2], [1, 3], [2, 4], [5]],
            [[1, 2], [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 5]],
            id="the rarest go: 1 and 2 were in three steps, 3 and 4 in one",
        ),
        pytest.param(
            _table(max_rows=3, drop_after=1),
            [[1, 2], [3], [4], [5]],
            [[1, 2], [1, 2, 3], [1, 2, 3, 4], [4, 5]],
            id="all that no step has used for long go when the table is full",
        ),
        pytest.param(
            _table(max_rows=2, drop="never"),
            [[1, 2, 3], [4]],
            [_least(2, [1, 2, 3])] * 2,
            id="none goes, and further ids get none",
        ),
        pytest.param(
            _table(max_rows=2, new_per_step=1),
            [[1, 2, 3, 4]],
            [_least(3, [1, 2, 3, 4])],
            id="one step makes no more rows than there is room for",
        ),
    ],
)
def test_which_ids_have_rows(table, steps, expected):
    """Rows are made and dropped as the fields of the table say."""
    assert _ids_by_step(table, steps) == expected


@pytest.mark.parametrize(
    "clones",
    [
        {"num_clones": 1},
        {"num_clones": 2},
        {"num_clones": 2, "all_reduce": True},
        {"num_clones": 1, "accumulate_steps": 2},
    ],
    ids=str,
)
def test_who_gets_the_last_rows_depends_on_no_division(clones):
    """Of 48 new ids of a step, in two look-ups, the same 5 get rows, whoever looks them up."""
    ids = np.arange(2 * NUM_EXAMPLES).reshape(NUM_EXAMPLES, 2)
    table = _table(max_rows=5, drop="never")

    def model_fn(features, labels):
        del labels
        each = [tf.reduce_sum(embeddings.look_up(table, features[:, i])) for i in range(2)]
        tf.losses.add_loss(tf.add_n(each))

    golden = Golden("two look-ups", ids, ids, model_fn)
    values = harness.Replica(LogicalDevices(**clones), golden)(steps=1).values
    assert sorted(set(values["t/index/ids"]) - {-1}) == _least(5, ids.ravel().tolist())


def test_a_run_of_one_clone():
    """By all-reduce, too, its rows are to be had without those of the other clone."""
    config = LogicalDevices(num_clones=2, all_reduce=True)
    run = harness.Replica(config, models.golden(models.growing()))
    with run.open() as session:
        run.start()
        alone = [session.run(clone.outputs) for clone in run.model.clones]
        together = session.run([clone.outputs for clone in run.model.clones])
    np.testing.assert_allclose(alone, together, rtol=1e-6)


@pytest.mark.parametrize("clones", [{"num_clones": 1}, {"num_clones": 2, "all_reduce": True}])
def test_a_look_up_without_training_sees_the_rows_of_the_step(clones):
    """In a step it comes after the look-up that makes rows, though that one's ids are late."""
    table = _table(max_rows=10, initial=embeddings.Constant(3.0), without_row=0.0)
    seen = []

    def model_fn():
        late = tf.numpy_function(lambda: time.sleep(0.3) or np.array([7, 9]), [], tf.int64)
        late.set_shape([2])
        seen.append(embeddings.look_up(table, tf.constant([7, 8]), is_training=False))
        tf.losses.add_loss(tf.reduce_sum(embeddings.look_up(table, late)))

    replica = harness.Replica(LogicalDevices(**clones), model_fn, lambda: harness.sgd(0.0))
    with replica.open() as session:
        replica.start()
        rows, _ = session.run([seen, replica.model.train_op])
    assert [found.tolist() for found in rows] == [[[3.0, 3.0], [0.0, 0.0]]] * len(seen)


def test_chances_are_kept():
    """With a probability of 1/4 about a quarter of 4,000 ids get rows; in each run the same."""
    steps = [range(4000)]
    [ids] = _ids_by_step(_table(max_rows=4000, probability=0.25), steps)
    assert len(ids) == pytest.approx(1000, abs=4 * (4000 * 0.25 * 0.75) ** 0.5)
    with tf.Graph().as_default():
        assert _ids_by_step(_table(max_rows=4000, probability=0.25), steps) == [ids]


def test_initial_rows_follow_from_the_id():
    """Value j of a row is made of output j of a generator that starts from the id alone."""
    ids = np.array([0, 5, 2**62])
    starts = [[_splitmix(int(i)) + j * 0x9E3779B97F4A7C15 for j in range(3)] for i in ids]
    numbers = [[_splitmix(start % 2**64) for start in row] for row in starts]
    even = (np.array([[n >> 41 for n in row] for row in numbers]) + 0.5) / 2**23
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        uniform = session.run(embeddings.Uniform(0.5)(tf.constant(ids), 3))
        normal = session.run(embeddings.Normal(2.0)(tf.constant(np.arange(20_000)), 3))
        again = session.run(embeddings.Normal(2.0)(tf.constant([7], tf.int64), 3))
        other = session.run(embeddings.Normal(2.0, seed=1)(tf.constant([7], tf.int64), 3))
    np.testing.assert_allclose(uniform, even - 0.5, atol=1e-7)
    np.testing.assert_allclose([normal.mean(), normal.std()], [0, 2], atol=5 * 2 / 60_000**0.5)
    np.testing.assert_array_equal(again[0], normal[7])
    assert (again != other).all()


def _unmixed(z):
    """The number of which the output of splitmix64 is z: its steps backwards."""
    mask = 2**64 - 1
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        z ^= (z >> shift) ^ (z >> 2 * shift)
        z = z * pow(factor, -1, 2**64) & mask
    return (z - 0x9E3779B97F4A7C15) & mask


@pytest.mark.parametrize(
    ("output", "chance"),
    [(0, 2**-24), (2**41, 3 * 2**-24), (2**63, 0.5 + 2**-24), (2**64 - 1, 1 - 2**-24)],
)
def test_first_values_are_finite(output, chance):
    """Also where the generator gives its least and its largest numbers, a row is of finite ones."""
    number = _unmixed(output)
    assert _splitmix(number) == output
    id_ = np.array([_unmixed(number)], np.uint64).view(np.int64)
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        [[even]] = session.run(embeddings.Uniform(1.0)(tf.constant(id_), 1))
        [[normal]] = session.run(embeddings.Normal(1.0)(tf.constant(id_), 1))
    assert even == 2 * chance - 1
    assert normal == pytest.approx(statistics.NormalDist().inv_cdf(chance), rel=1e-5)


def _by_hand(rows, ids, weights, combiner):
    """One combined row, in numbers of NumPy."""
    if not ids:
        return np.zeros(rows.shape[1])
    weights = np.array(weights if weights else [1.0] * len(ids))
    total = (rows[ids] * weights[:, None]).sum(0)
    divisors = {"sum": 1.0, "mean": weights.sum(), "sqrtn": np.sqrt((weights**2).sum())}
    return total / divisors[combiner]


@pytest.mark.parametrize(
    ("combiner", "kind", "weighted"),
    laws.covering(
        [["sum", "mean", "sqrtn"], ["ragged", "sparse", "dense", "strings"], [False, True]],
        lambda *cell: True,
    ),
)
def test_look_ups_combine_as_by_hand(combiner, kind, weighted):
    """Ids of each kind, with weights or without, give the combination that NumPy gives."""
    lists = [[1, 4], [2, 3]] if kind == "dense" else [[1, 4, 1], [], [3]]
    weights = [[0.5 + i for i in range(len(each))] for each in lists]
    ragged, its_weights = tf.ragged.constant(lists, tf.int64), tf.ragged.constant(weights)
    ids = {
        "ragged": lambda: (ragged, its_weights),
        "sparse": lambda: (ragged.to_sparse(), its_weights.to_sparse()),
        "dense": lambda: (tf.constant(lists), tf.constant(weights)),
        "strings": lambda: (ragged.with_values(tf.as_string(ragged.values)), its_weights),
    }[kind]()
    table = embeddings.GrowingTable(name="t", width=3, max_rows=9)
    found = embeddings.look_up(table, ids[0], ids[1] if weighted else None, combiner=combiner)
    every = np.arange(6)
    every = tf.strings.to_hash_bucket_fast(tf.as_string(every), tf.int64.max) if (
        kind == "strings") else tf.constant(every)  # fmt: skip
    rows = table.initial(every, 3)
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        harness.start(session)
        found, rows = session.run([found, rows])
    expected = [
        _by_hand(rows, each, of_each if weighted else None, combiner)
        for each, of_each in zip(lists, weights, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_rows_keep_the_structure_of_ids():
    """Without a combiner each id has its row, in ragged ids as in those of several dimensions."""
    table = models.fixed(10)
    ragged = embeddings.look_up(table, tf.ragged.constant([[3], [], [1, 3]], tf.int64))
    cube = embeddings.look_up(table, tf.constant([[[1], [2]]]))
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        harness.start(session)
        ragged, cube = session.run([ragged, cube])
        rows = session.run(table.initial(tf.range(4, dtype=tf.int64), models.WIDTH))
    assert cube.shape == (1, 2, 1, models.WIDTH)
    np.testing.assert_array_equal(cube[0, :, 0], rows[1:3])
    np.testing.assert_array_equal(ragged.values, rows[[3, 1, 3]])
    assert ragged.row_splits.tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        pytest.param(harness.adam, {}, id="one clone"),
        pytest.param(harness.momentum, {"num_clones": 2}, id="clones"),
        pytest.param(harness.adam, {"num_ps_tasks": 2}, id="servers"),
    ],
)
def test_a_table_with_enough_rows_is_a_fixed_one(make, fields):
    """A growing table trains as one that has had all rows from the start."""
    runs = []
    for table in (models.growing(), models.fixed(64)):
        [target] = clusters.workers(1) if "num_ps_tasks" in fields else [""]
        run = harness.Replica(LogicalDevices(**fields), models.golden(table), make)
        runs.append(run(target, models.STEPS))
    grown, fixed = runs
    np.testing.assert_allclose(grown.losses, fixed.losses, rtol=1e-6)
    found, expected = models.by_id(grown.values), models.by_id(fixed.values)
    for key, value in fixed.values.items():
        part = re.search(r"/part_(\d)", key)
        start = int(part[1]) * len(value) if part else 0
        name = re.sub(r"/part_\d", "", key)
        expected |= {f"{name}[{start + i}]": row for i, row in enumerate(np.atleast_1d(value))}
    shared = [key for key in found if key in expected]
    assert len(shared) >= 2 * (models.IDS.max() + 1)
    harness.assert_close(
        {key: found[key] for key in shared}, {key: expected[key] for key in shared}
    )


def test_asynchronous_clones_and_replicas_share_rows():
    """Whoever sees an id makes its row; all others find it, each in its turn."""
    golden = models.golden(models.growing())
    one = harness.one_in_turn(golden)
    clones = harness.clones_in_turn(LogicalDevices(num_clones=2, asynchronous=True), golden)
    replicas = harness.train_replicas(LogicalDevices(num_replicas=2, num_ps_tasks=2), golden)
    for run in (clones, *replicas):
        harness.assert_close(models.by_id(run.values), models.by_id(one.values))


def test_a_dropped_row_leaves_nothing_behind():
    """A row that is made where another one was dropped starts with fresh slots."""
    ids = tf.placeholder(tf.int64, [None])
    table = _table(max_rows=1, new_per_step=1, initial=embeddings.Constant(1.0))

    def model_fn():
        tf.losses.add_loss(tf.reduce_sum(embeddings.look_up(table, ids)))

    model = deploy(LogicalDevices(), model_fn, optimizer=tf.train.MomentumOptimizer(0.5, 0.5))
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        harness.start(session)
        for step in ([1], [2], [1, 3], [4]):
            session.run(model.train_op, {ids: step})
        names = [v.op.name for v in tf.global_variables()]
        values = dict(zip(names, session.run(tf.global_variables()), strict=True))
    [row] = np.flatnonzero(values["t/index/ids"] == 4)
    # The gradient is 1: momentum 1 after the first step, and the value 1 - 0.5.
    assert values["t/values/Momentum"][row].tolist() == [1, 1]
    assert values["t/values"][row].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: _table(max_rows=0), "max_rows must be at least 1, got 0", id="rows"),
        pytest.param(
            lambda: _table(max_rows=1, drop="some"),
            "drop must be one of oldest, rarest, never, got 'some'",
            id="drop",
        ),
        pytest.param(
            lambda: _table(max_rows=1, probability=0),
            "probability must be more than 0 and at most 1, got 0",
            id="probability",
        ),
        pytest.param(
            lambda: _table(max_rows=1, drop="never", drop_after=1),
            "drop_after must not go with drop='never', got 1",
            id="never and after",
        ),
        pytest.param(
            lambda: embeddings.FixedTable(name="", width=1, num_rows=1), "name must be", id="name"
        ),
        pytest.param(
            lambda: embeddings.look_up(_table(max_rows=1), tf.constant([1.0])),
            "table t: ids must be int32, int64 or string, got float32",
            id="dtype",
        ),
        pytest.param(
            lambda: embeddings.look_up(_table(max_rows=1), tf.sparse.from_dense([[1]])),
            "table t: combiner must be given for ids in a SparseTensor, got None",
            id="sparse",
        ),
        pytest.param(
            lambda: embeddings.look_up(_table(max_rows=1), tf.constant([1]), combiner="max"),
            "combiner must be one of mean, sum, sqrtn, got 'max'",
            id="combiner",
        ),
        pytest.param(
            lambda: embeddings.look_up(
                _table(max_rows=1), tf.ragged.constant([[1]]), tf.constant([[1.0]]), combiner="sum"
            ),
            "table t: weights must be a RaggedTensor as ids are, got",
            id="weights",
        ),
        pytest.param(lambda: embeddings.Uniform(0), "limit must be more than 0, got 0", id="limit"),
        pytest.param(
            lambda: deploy(
                DeploymentConfig(clone_on_cpu=True, all_reduce=True, global_parts=1),
                models.golden(models.growing()).model_fn,
                (tf.constant(models.IDS), tf.constant(models.LABELS)),
            ),
            "table items: a table that grows must be without global_parts",
            id="elastic",
        ),
    ],
)
def test_refusals(make, message):
    """What cannot be is refused when it is asked for, in one line."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("table", "ids", "message"),
    [
        (_table(max_rows=4), [3, -2], "table t: ids must be at least 0, got"),
        (
            embeddings.FixedTable(name="t", width=1, num_rows=4),
            [4],
            "table t: ids must be less than num_rows=4, got",
        ),
    ],
    ids=["negative", "beyond"],
)
def test_ids_that_cannot_be(table, ids, message):
    """An id that no table can have ends the step, and the table stays as it was."""
    rows = embeddings.look_up(table, tf.constant(ids))
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        harness.start(session)
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(rows)
        if isinstance(table, embeddings.GrowingTable):
            assert (session.run("t/index/ids/Read/ReadVariableOp:0") == -1).all()


def test_look_ups_stay_out_of_loops():
    """A look-up in a loop is refused, as all clones look up together."""
    with pytest.raises(ValueError, match="look_up must be called outside of loops"):
        tf.cond(
            tf.constant(True),
            lambda: embeddings.look_up(_table(max_rows=1), tf.constant([1])),
            lambda: tf.zeros([1, 2]),
        )


def test_clones_send_each_id_once():
    """Two clones on servers that ask two tables get all rows by one message from each server."""
    first, second = models.growing(), models.growing(name="others")
    golden = models.golden(first, second)
    config = LogicalDevices(num_clones=2, num_ps_tasks=2)
    parts = iter([(golden.features, golden.labels)] * 2)
    clones = create_clones(config, lambda: golden.model_fn(*map(tf.constant, next(parts))))
    gathers = [op for op in tf.get_default_graph().get_operations() if op.type == "ResourceGather"]
    of_values = [op for op in gathers if op.inputs[0].op.name.endswith("/values")]
    assert len(of_values) == 4  # two tables on two servers, and no more for two clones
    crossing = {
        tensor.name
        for op in tf.get_default_graph().get_operations()
        for tensor in op.inputs
        if "job:worker" in op.device and "job:ps" in tensor.op.device
        if tensor.dtype == tf.float32 and "look_up" in tensor.name
    }
    assert len(crossing) == 4, crossing  # the rows, and which there are
    assert len(clones) == 2


def test_columns_share_a_table():
    """Hashed, crossed and weighted columns give the rows that look-ups of their ids give."""
    columns = tf.feature_column
    table = embeddings.GrowingTable(name="t", width=3, max_rows=99)
    city = columns.categorical_column_with_hash_bucket("city", 2**60)
    weighted = columns.weighted_categorical_column(city, "share")
    cross = columns.crossed_column(["city", "hour"], 2**60)
    features = {
        "city": tf.constant([["Rome", "Bonn"], ["Bonn", "Bonn"]]),
        "share": tf.constant([[1.0, 3.0], [1.0, 2.0]]),
        "hour": tf.constant([["1"], ["2"]]),
    }
    of_table = [
        embeddings.embedding_column(each, table, combiner="sum") for each in (weighted, cross)
    ]
    dense = columns.input_layer(features, of_table)
    hashed = tf.strings.to_hash_bucket_fast(["Rome", "Bonn"], 2**60)
    direct = embeddings.look_up(table, hashed)
    assert [v.op.name for v in tf.trainable_variables()] == ["t/values", "t/shared"]
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        harness.start(session)
        dense, (rome, bonn) = session.run([dense, direct])
        ids = session.run("t/index/ids/Read/ReadVariableOp:0")
    assert (ids >= 0).sum() == 2 + 3  # cities; crosses
    # Columns stand in the order of their names: city_X_hour, then city_weighted.
    np.testing.assert_allclose(dense[:, 3:], [rome + 3 * bonn, 3 * bonn], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.one_mode
def test_memory_of_a_row():
    """A row takes its values, 20 bytes of the index's variables, and those of the hash table.

    These are some 70 bytes with TensorFlow 2.21, and 120 or 160, by the machine, with 2.16.
    """
    most = 180 if tf.__version__.startswith("2.16.") else 140
    command = [sys.executable, "-m", "tests.embeddings.many_ids"]
    # Only then all memory that is given back is the system's.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "100000"}
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    num_rows, num_bytes = map(int, output.stdout.split())
    assert num_rows == many_ids.NUM_IDS
    assert 4 * many_ids.WIDTH + 20 < num_bytes <= 4 * many_ids.WIDTH + 20 + most

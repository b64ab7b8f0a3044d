"""`tf.contrib.tfprof.ProfileContext`: which calls are traced, and what is written."""

import concurrent.futures

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import tfprof

pytestmark = pytest.mark.one_mode


def test_a_graph_is_analyzed(tmp_path):
    """Numbers of parameters and of floating-point operations are those of a product of matrices."""
    weights = tf.get_variable("weights", [3, 4])
    tf.matmul(tf.placeholder(tf.float32, [5, 3]), weights)
    options = {"output": f"file:outfile={tmp_path / 'profile'}"}
    for of_kind, attribute, expected in (
        (tfprof.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, "total_parameters", 3 * 4),
        (tfprof.FLOAT_OPS_OPTIONS, "total_float_ops", 2 * 5 * 3 * 4),
    ):
        profile = tfprof.print_model_analysis(
            tf.get_default_graph(), tfprof_options={**of_kind, **options}
        )
        assert expected in [getattr(child, attribute) for child in profile.children]


def _calls(context, count, **options):
    """The sizes of what each call of a session traced."""
    result = tf.reduce_sum(tf.ones([10, 10]))
    sizes = []
    run = tf.Session.run
    with context, tf.Session() as session:
        for _ in range(count):
            metadata = tf.RunMetadata()
            assert session.run(result, run_metadata=metadata, **options) == 100
            sizes.append(len(metadata.step_stats.dev_stats))
    assert tf.Session.run is run
    return [bool(size) for size in sizes]


@pytest.mark.parametrize(
    ("options", "traced", "files"),
    [
        pytest.param({"enabled": False}, [], [], id="disabled"),
        pytest.param({"trace_steps": [], "dump_steps": []}, [], [], id="nothing asked"),
        pytest.param({"trace_steps": [1, 3], "dump_steps": [3]}, [1, 3], ["profile_3"], id="asked"),
        pytest.param({}, [10], ["profile_10"], id="default"),
    ],
)
def test_calls_that_are_traced(options, traced, files, tmp_path):
    """Calls are counted from 0; a profile has what was traced so far."""
    context = tfprof.ProfileContext(str(tmp_path), **options)
    assert [n for n, has in enumerate(_calls(context, 12)) if has] == traced
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    assert all(path.stat().st_size > 0 for path in tmp_path.iterdir())
    assert (context.profiler is not None) == bool(traced)


def test_next_step(tmp_path):
    """A program may ask for the next call, and its own options stay."""
    context = tfprof.ProfileContext(str(tmp_path), trace_steps=[], dump_steps=[], debug=True)
    context.trace_next_step()
    assert _calls(context, 2, options=tf.RunOptions(timeout_in_ms=60_000)) == [True, False]
    context.dump_next_step()
    assert _calls(context, 1) == [True]
    assert [path.name for path in tmp_path.iterdir()] == ["profile_2"]


def test_sessions_of_several_threads(tmp_path):
    """Calls of several threads at once all run; of those at the same time one is traced."""
    result = tf.reduce_sum(tf.ones([10, 10]))
    graph, calls = tf.get_default_graph(), range(40)
    context = tfprof.ProfileContext(str(tmp_path), trace_steps=calls, dump_steps=calls)

    def run(_):
        with tf.Session(graph=graph) as session:
            return [session.run(result) for _ in range(10)]

    with context, concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [[100.0] * 10] * 4
    assert 1 <= len(list(tmp_path.iterdir())) <= 40


def test_folder_is_needed():
    """Without a folder there must be nothing to do, as where a program has no flag for it."""
    with tfprof.ProfileContext(None, enabled=False):
        pass
    with pytest.raises(ValueError, match="profile_dir must be a folder, got None"):
        tfprof.ProfileContext(None)

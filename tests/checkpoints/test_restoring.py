"""Fine-tuning: what is restored, what is trained, and what is refused before training."""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, slim, train
from model_deploy.training import (
    FineTuneOptions,
    check_start,
    find_checkpoint,
    restore_fn,
    variables_to_train,
)
from tests.goldens import LogicalDevices, cpu_config

FORMATS = {"V1": tf.train.SaverDef.V1, "V2": tf.train.SaverDef.V2}


def _save(path, write_version=tf.train.SaverDef.V2, **shapes):
    """Writes a checkpoint of float32 variables, each full of its number, from 1 on."""
    with tf.Graph().as_default(), tf.Session() as session:
        for i, (name, shape) in enumerate(shapes.items(), 1):
            tf.get_variable(name.replace("__", "/"), initializer=np.full(shape, i, np.float32))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver(write_version=write_version).save(session, str(path))


def _network(units=2):
    """Two layers, `net/fc` 3 x 4 and `net/fc4` 4 x units, without biases."""
    options = {"biases_initializer": None, "activation_fn": None}
    with tf.variable_scope("net"):
        hidden = slim.fully_connected(tf.ones([1, 3]), 4, scope="fc", **options)
        return slim.fully_connected(hidden, units, scope="fc4", **options)


def _lines(options):
    """The table of the default graph; and the function."""
    shown = []
    function = restore_fn(options, shown.append)
    return shown[0].splitlines(), function


@pytest.mark.one_mode
@pytest.mark.parametrize("write_version", FORMATS.values(), ids=FORMATS)
def test_restores_by_name(tmp_path, write_version, variable_kind):
    """Variables of the same name and shape get the values of the checkpoint, in either format."""
    path = _save(
        tmp_path / "m.ckpt", write_version, net__fc__weights=[3, 4], net__fc4__weights=[4, 2]
    )
    _network()
    lines, function = _lines(FineTuneOptions(checkpoint_path=path))
    assert lines == [
        f"from {path}: 2 restored, 0 skipped, 0 missing, 0 mis-shaped",
        "  restored    net/fc/weights   [3, 4]",
        "  restored    net/fc4/weights  [4, 2]",
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        function(session)
        values = session.run(tf.global_variables())
    np.testing.assert_array_equal(values[0], np.full([3, 4], 1))
    np.testing.assert_array_equal(values[1], np.full([4, 2], 2))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("shapes", "options", "counts", "line"),
    [
        (
            {"net__fc4__weights": [4, 5]},
            {"checkpoint_exclude_scopes": " net/fc4/ "},
            "1 restored, 1 skipped, 0 missing, 0 mis-shaped",
            "  skipped     net/fc4/weights  [4, 2]  [4, 5] in the checkpoint",
        ),
        (
            {},
            {"ignore_missing_vars": True},
            "1 restored, 0 skipped, 1 missing, 0 mis-shaped",
            "  missing     net/fc4/weights  [4, 2]",
        ),
    ],
)
def test_variables_that_start_anew(tmp_path, shapes, options, counts, line):
    """An excluded variable keeps its own shape; `net/fc` does not hold `net/fc4`. With
    `ignore_missing_vars` what the checkpoint lacks starts anew.
    """
    path = _save(tmp_path / "m.ckpt", net__fc__weights=[3, 4], **shapes)
    _network()
    lines, function = _lines(FineTuneOptions(checkpoint_path=path, **options))
    assert lines == [f"from {path}: {counts}", "  restored    net/fc/weights   [3, 4]", line]
    assert function is not None


@pytest.mark.one_mode
def test_a_partitioned_variable(tmp_path):
    """A variable in parts is one row, and its parts get their rows of the checkpoint."""
    path = _save(tmp_path / "m.ckpt", w=[4, 2])
    with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
        tf.get_variable("w", [4, 2])
    lines, function = _lines(FineTuneOptions(checkpoint_path=path))
    assert lines[1:] == ["  restored    w  [4, 2]"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        function(session)
        for part in session.run(tf.global_variables()):
            np.testing.assert_array_equal(part, np.ones([2, 2]))


BAD_PLANS = {
    "shape": (
        {"net__fc__weights": [3, 4], "net__fc4__weights": [4, 5]},
        {},
        "checkpoint_exclude_scopes must hold the variables that have another shape in .*m.ckpt, "
        "got None without net/fc4/weights; use --checkpoint_exclude_scopes=net/fc4$",
    ),
    "shapes beside excluded": (
        {"net__fc__weights": [3, 5], "net__fc4__weights": [4, 5]},
        {"checkpoint_exclude_scopes": "net/fc4"},
        "got 'net/fc4' without net/fc/weights; use --checkpoint_exclude_scopes=net/fc4,net/fc$",
    ),
    "missing": (
        {"net__fc__weights": [3, 4]},
        {},
        "checkpoint_path must hold the variables that are not excluded, got .*m.ckpt without "
        "net/fc4/weights; .* --checkpoint_exclude_scopes=net/fc4 or --ignore_missing_vars$",
    ),
    "nothing": (
        {"w": [1]},
        {"ignore_missing_vars": True},
        "must hold a variable that is not excluded, got .*m.ckpt, of which nothing would be",
    ),
    "scope of nothing": (
        {"w": [1]},
        {"checkpoint_exclude_scopes": "net/fc4,net/f"},
        "checkpoint_exclude_scopes must be scopes of variables, got 'net/f'; "
        "there are net/fc, net/fc4$",
    ),
}


@pytest.mark.one_mode
@pytest.mark.parametrize(("shapes", "options", "message"), BAD_PLANS.values(), ids=BAD_PLANS)
def test_refuses(tmp_path, shapes, options, message):
    """What does not fit is refused with the option that helps."""
    path = _save(tmp_path / "m.ckpt", **shapes)
    _network()
    with pytest.raises(ValueError, match=message):
        restore_fn(FineTuneOptions(checkpoint_path=path, **options), lambda text: None)


@pytest.mark.one_mode
def test_another_type(tmp_path):
    """A variable of another type is as one of another shape, and the table says so."""
    assert restore_fn(FineTuneOptions()) is None  # nothing to restore
    path = _save(tmp_path / "m.ckpt", w=[1])
    tf.get_variable("w", [1], tf.float64)
    shown = []
    with pytest.raises(ValueError, match=r"without w; use --checkpoint_exclude_scopes=w$"):
        restore_fn(FineTuneOptions(checkpoint_path=path), shown.append)
    assert shown[0].splitlines()[1] == "  mis-shaped  w  [1]  [1] float32 in the checkpoint"


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trainable_scopes": "a,,b"}, "must be scopes with commas between, got 'a,,b'"),
        (
            {"checkpoint_exclude_scopes": "a"},
            "checkpoint_exclude_scopes must come with a checkpoint_path, got 'a' without",
        ),
        ({"ignore_missing_vars": True}, "must come with a checkpoint_path, got True without"),
    ],
)
def test_rejects(options, message):
    """Options that say nothing, or nothing without another, name themselves."""
    with pytest.raises(ValueError, match=message):
        FineTuneOptions(**options)


@pytest.mark.one_mode
def test_no_such_checkpoint(tmp_path):
    """A name without a checkpoint, a folder without one and a file of something else say so."""
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path / "none", tmp_path / "notes.txt"):
        with pytest.raises(ValueError, match=f"must be a checkpoint such as .*, got {path}$"):
            find_checkpoint(str(path))
    with pytest.raises(ValueError, match=f"must be a folder with checkpoints .*, got {tmp_path}$"):
        find_checkpoint(str(tmp_path))


@pytest.mark.one_mode
def test_variables_to_train():
    """Scopes choose among the trainable variables, by whole parts of names. One with nothing to
    train lists those that there are; `deploy` refuses an empty list from a function.
    """
    _network()
    first, second = tf.trainable_variables()
    assert variables_to_train(None) == [first, second]
    assert variables_to_train("net/fc") == [first]
    assert variables_to_train("net") == [first, second]
    assert variables_to_train("net/fc4, net/fc/weights") == [first, second]
    message = "trainable_scopes must be scopes of variables, got 'fc4'; there are net/fc, net/fc4$"
    with pytest.raises(ValueError, match=message):
        variables_to_train("fc4")
    with pytest.raises(ValueError, match="variables_to_train must name at least one variable"):
        deploy(LogicalDevices(), tf.no_op, variables_to_train=list)


@pytest.mark.slow
def test_fine_tuning_a_deployment(tmp_path):
    """Two clones start from the checkpoint and change what is trained alone; then they resume."""
    start = _save(tmp_path / "m.ckpt", net__fc__weights=[3, 4], net__fc4__weights=[4, 2])
    # Outputs are 3 * 1 * 4 * 2 = 24; the gradient of their sum by each weight of fc4 is 3.
    expected = {"net/fc/weights": 1.0, "net/fc4/weights": 2.0 - 0.5 * 3}
    for steps in (1, 2):
        with tf.Graph().as_default():
            model = deploy(
                LogicalDevices(num_clones=2),
                lambda: tf.losses.add_loss(tf.reduce_sum(_network())),
                optimizer=tf.train.GradientDescentOptimizer(0.5),
                variables_to_train=lambda: variables_to_train("net/fc4"),
            )
            function = restore_fn(FineTuneOptions(checkpoint_path=start))
            options = {"init_fn": function, "session_config": cpu_config()}
            train(model, tmp_path / "run", max_steps=steps, **options)
        reader = tf.train.load_checkpoint(str(tmp_path / "run"))
        for name, value in expected.items():
            assert np.unique(reader.get_tensor(name)) == [value]
        expected["net/fc4/weights"] -= 0.5 * 3


@pytest.mark.one_mode
def test_where_a_run_starts(tmp_path):
    """Either a run's own checkpoint or another one is clear, both are not."""
    run = tmp_path / "run"
    check_start(str(run), "m.ckpt")
    path = _save(run / "model.ckpt-3", w=[1], global_step=[])
    check_start(str(run), None)
    with pytest.raises(ValueError, match="no checkpoint with resume='never', got"):
        check_start(str(run), "m.ckpt", "never")
    message = f"checkpoint_path must not be given where a run goes on from {path}, got m.ckpt: to"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_start(str(run), "m.ckpt")
    with pytest.raises(ValueError, match=re.escape(message)):
        check_start(str(tmp_path / "new"), "m.ckpt", str(path))
    other = _save(tmp_path / "other" / "model.ckpt", w=[1])
    with pytest.raises(ValueError, match="resume must be a checkpoint with a global_step, got"):
        check_start(str(tmp_path / "new"), None, str(other))

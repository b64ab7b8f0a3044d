"""`train` with rotated steps: checkpoints, evaluations and ends see whole steps."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, train
from tests import harness
from tests.checkpoint_values import checkpoint_values
from tests.goldens import cpu_config
from tests.rotation.models import DEEP, rotated

LAST = 5


def _run(folder, config, max_steps, *, batches=None, rewritten=False, **options):
    """Trains in a graph of its own, each step on another batch; with `batches` the inputs end."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)

        def model_fn():
            data = tf.data.Dataset.range(1, 1 + (batches or 100))
            data = data.map(lambda k: (DEEP.features / tf.cast(k, tf.float32), DEEP.labels))
            iterator = tf.data.make_initializable_iterator(data)
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            DEEP.model_fn(*iterator.get_next())

        model = deploy(config, model_fn, optimizer=harness.momentum())
        proto = cpu_config(rewritten=rewritten)
        return train(model, folder, max_steps=max_steps, session_config=proto, hooks=(), **options)


@pytest.mark.slow
@pytest.mark.one_mode
def test_checkpoints_are_those_of_plain_steps(tmp_path):
    """Evaluated in between, continued, and ended by the end of the inputs: all have equal bits.

    TensorFlow's own rewriting may fuse ops of one of two graphs, which rounds otherwise.
    """
    seen = {}
    for rotate in (False, True):
        config, folder = dataclasses.replace(rotated(), rotate_steps=rotate), tmp_path / str(rotate)

        def evaluate(path, rotate=rotate):
            seen[rotate, len(seen)] = checkpoint_values(path)
            return {"accuracy": 0.0}

        result = _run(folder, config, 3, evaluate=evaluate, eval_every_n_steps=2)
        assert result.global_step == 3
        result = _run(folder, config, None, batches=LAST - 3)
        assert result.global_step == LAST
        seen[rotate, len(seen)] = checkpoint_values(folder / f"model.ckpt-{LAST}")
    plain, turned = (
        [seen[key] for key in sorted(seen) if key[0] is kind] for kind in (False, True)
    )
    assert [each["global_step"] for each in turned] == [2, 3, LAST]
    for one, other in zip(turned, plain, strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            np.testing.assert_array_equal(one[name], value, err_msg=name)


@pytest.mark.one_mode
@pytest.mark.parametrize("batches", [None, LAST], ids=["endless", "inputs that end"])
def test_checkpoints_take_no_batches(batches, tmp_path):
    """Steps after a checkpoint have the batches of a run without one, in rewritten graphs."""
    found = []
    for every in (None, 1):
        folder = tmp_path / str(every)
        options = {"batches": batches, "rewritten": True, "save_interval_steps": every}
        result = _run(folder, rotated(), None if batches else LAST, **options)
        assert result.global_step == LAST
        found.append(checkpoint_values(folder / f"model.ckpt-{LAST}"))
    np.testing.assert_equal(found[1], found[0])


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"check_numerics": True}, "check_numerics must be False with rotate_steps=True, got True"),
        ({"verify_every_n_steps": 2}, "verify_every_n_steps must be None with rotate_steps=True"),
    ],
)
def test_what_looks_at_whole_steps(tmp_path, option, message):
    """Checks of all values of a step are not to be had."""
    with pytest.raises(ValueError, match=message):
        _run(tmp_path, rotated(), 1, **option)

"""A slow worker of a real cluster is named right, within 20 of its steps."""

import pytest

from model_deploy.training.pace.input_work import HAS_MODELS
from tests.processes.slow_workers import SLOW, name_slow_worker

pytestmark = [pytest.mark.one_mode, pytest.mark.slow]


@pytest.mark.skipif(
    not HAS_MODELS, reason="TensorFlow 2.16 does not tell how long a pipeline works for a batch"
)
def test_a_slow_worker_is_named(tmp_path):
    """A worker whose input is slow is named with that, and nobody before.

    `python -m tests.processes.slow_workers` has all ways to train and all causes: on a machine that
    does other work beside, computation and links vary too much.
    """
    [named] = name_slow_worker(tmp_path, "synchronous", ["input"])
    assert (named.worker, named.part) == (SLOW, "input")
    assert named.factor >= 1.5
    assert named.steps <= 20

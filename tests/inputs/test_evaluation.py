"""Evaluation batches: every example exactly once."""

import numpy as np
import pytest

from model_deploy import inputs
from tests.inputs import sessions

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(("batch_size", "sizes"), [(4, [4, 4, 3]), (11, [11]), (12, [11])])
def test_every_example_once(batch_size, sizes):
    """All examples come in order, the last partial batch included."""
    dataset = inputs.get_dataset("synthetic", "test", num_examples=11, image_size=4)
    batches = sessions.eval_values(dataset, batch_size=batch_size)
    assert [len(batch["label"]) for batch in batches] == sizes
    assert np.concatenate([batch["index"] for batch in batches]).tolist() == list(range(11))
    labels = np.concatenate([batch["label"] for batch in batches])
    assert labels.tolist() == dataset.source.arrays[1].tolist()


def test_next_again_gives_the_same_batch():
    """Two calls of `next` give tensors of the same batch; a batch size below 1 is an error. The 360
    test digits make ceil(360 / batch size) batches.
    """
    digits = inputs.get_dataset("digits", "test")
    for batch_size, num_batches in ((100, 4), (90, 4), (89, 5), (360, 1)):
        batches = inputs.eval_batches(digits, batch_size=batch_size, preprocessing="lenet")
        assert batches.num_batches == num_batches
    dataset = inputs.get_dataset("synthetic", "test", num_examples=6, image_size=4)
    options = {"preprocessing": "lenet", "include_index": True}

    def build():
        batches = inputs.eval_batches(dataset, batch_size=2, **options)
        return next(batches)["index"], next(batches)["index"]

    for first, second in sessions.collect(build):
        np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        inputs.eval_batches(dataset, batch_size=0, **options)

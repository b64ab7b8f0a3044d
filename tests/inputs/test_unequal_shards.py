"""Replicas that take unequal numbers of batches cut the sequence that all others cut."""

import pytest
import tensorflow as tf

from model_deploy import inputs
from tests.inputs import sessions


def _dataset():
    return inputs.get_dataset("synthetic", "train", num_examples=50, image_size=4)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(4,), (3, 1), (1, 2, 1)])
def test_unequal_replicas_cut_one_sequence(counts):
    """From any position on they get consecutive pieces of what one clone would get in one batch."""
    options = {"position": 2, "num_epochs": 2}
    whole = sessions.train_indices(_dataset(), batch_size=12, **options)
    cut = [[] for _ in whole]
    for i, count in enumerate(counts):
        steps = sessions.train_indices(
            _dataset(),
            batch_size=3,
            num_clones=count,
            first_clone=sum(counts[:i]),
            global_clones=sum(counts),
            **options,
        )
        for whole_step, step in zip(cut, steps, strict=True):
            whole_step.extend(step)
    assert cut == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_clone": 1}, "first_clone must be 0 without global_clones, got 1"),
        ({"global_clones": 4, "num_shards": 2}, "num_shards must be 1 with global_clones, got 2"),
        (
            {"global_clones": 4, "num_clones": 3, "first_clone": 2},
            "first_clone must be from 0 to global_clones - num_clones = 4 - 3, got 2",
        ),
        ({"global_clones": 4}, "position must be the global step with global_clones, got None"),
    ],
)
def test_what_does_not_fit(options, message):
    """Clones that are not among those of all replicas are refused, and batches that are counted."""
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        inputs.train_batches(_dataset(), preprocessing="lenet", batch_size=1, **options)

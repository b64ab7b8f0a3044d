"""Every layer, activation and loss of Keras trains in each division of a batch as in one clone."""

import functools

import pytest

from tests import harness
from tests.goldens import LogicalDevices
from tests.keras_layers import every_layer, roundings
from tests.keras_layers.layer_table import GROUPS, KINDS, LEFT_OUT, LOSSES, LOSSES_LEFT_OUT
from tests.keras_layers.models import KERASES

pytestmark = pytest.mark.one_mode

# The turn, in which a layer is of one library or the other, and settings.
_DIVISIONS = {
    "called": (0, {"num_clones": 2, "copy_clones": False}),
    "called by all-reduce": (0, {"num_clones": 2, "all_reduce": True}),
    "copied in parts": (1, {"copy_clones": True, "accumulate_steps": 2}),
}
# Sums of some thousand terms in another order; in 16 bits a distance of neighbours near 1.
_TOLERANCE, _OF_16_BITS = 1e-5, 2.0**-7
_NORMS = {"called": {}, "all-reduce": {"all_reduce": True}}
# Small steps: with large ones differences of rounding grow from step to step.
_slowly = functools.partial(harness.sgd, 0.02)
_TRAINED = [group for group in GROUPS if group not in ("tables", "norms", "random")]


@functools.cache
def _one_clone(group, turn):
    return roundings.one_clone(every_layer.golden(group, turn), _slowly)


@pytest.mark.parametrize("library", KERASES.values(), ids=KERASES)
def test_every_layer_and_loss_is_in_the_table(library):
    """Each class of layers and losses is in a row, by one of its names, or left out for a reason.

    Activations have no rows: the library's own list is the table.
    """
    named = {name for table, _ in KINDS.values() for name in table} | LEFT_OUT.keys()
    layers = every_layer.layers_of(library).values()
    assert [names for names in layers if not named.intersection(names)] == []
    named = LOSSES.keys() | LOSSES_LEFT_OUT.keys()
    assert set(every_layer.losses_of(library)) <= named


@pytest.mark.slow
@pytest.mark.parametrize("division", _DIVISIONS)
@pytest.mark.parametrize("group", _TRAINED)
def test_every_layer_trains_as_in_one_clone(group, division):
    """Losses, weights and states of all layers of a group are those of one clone."""
    turn, settings = _DIVISIONS[division]
    golden = every_layer.golden(group, turn)
    run = harness.Replica(LogicalDevices(**settings), golden, _slowly)
    harness.assert_same(run(), _one_clone(group, turn), _TOLERANCE, 4 * _TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("group", _TRAINED)
def test_every_layer_trains_in_16_bits(group):
    """Losses, weights and states are as near to those of one clone in 32 bits as rounding lets
    them be.
    """
    config = LogicalDevices(num_clones=2, precision="bfloat16", copy_clones=True)
    run = harness.Replica(config, every_layer.golden(group, 0), _slowly)()
    one = _one_clone(group, 0)
    roundings.assert_near(run, one, "bfloat16")
    harness.assert_same(run, one, _OF_16_BITS, 4 * _OF_16_BITS)


def test_a_layer_with_a_table_is_called_for_each_clone():
    """It trains as in one clone where clones are called; copies refuse the table by its name."""
    golden = every_layer.golden("tables", 0)
    with pytest.raises(ValueError, match=r"tables from outside, got clone_0/.*HashTableV2"):
        harness.Replica(LogicalDevices(num_clones=2, copy_clones=True), golden)
    run = harness.Replica(LogicalDevices(num_clones=2, copy_clones=False), golden, _slowly)
    harness.assert_same(run(), _one_clone("tables", 0), _TOLERANCE, _TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("division", _NORMS)
def test_batch_norms_in_common_train_as_in_one_clone(division):
    """Batch norms of both libraries over all clones are those of one clone with the whole batch."""
    config = LogicalDevices(num_clones=2, sync_batch_norm=True, **_NORMS[division])
    run = harness.Replica(config, every_layer.golden("norms", 0), _slowly)
    harness.assert_same(run(), _one_clone("norms", 0), 2e-5, 1e-5)


@pytest.mark.slow
def test_random_layers_draw_by_seed_and_step():
    """Two runs of clones that draw numbers are the same to the last bit, and learn from them."""
    config = LogicalDevices(num_clones=2, copy_clones=True)
    first, second = (
        harness.Replica(config, every_layer.golden("random", 0), by_step=True)() for _ in range(2)
    )
    harness.assert_equal(second, first)
    assert first.losses[-1] < first.losses[0]

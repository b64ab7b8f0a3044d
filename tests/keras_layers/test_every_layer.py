"""Every layer of Keras 3 and tf-keras trains in each division of a batch as one clone does."""

import functools

import pytest

from tests import harness, laws
from tests.goldens import LogicalDevices
from tests.keras_layers import every_layer
from tests.keras_layers.layer_table import KINDS, LEFT_OUT
from tests.keras_layers.models import KERASES

pytestmark = pytest.mark.one_mode

_KINDS = [kind for kind in KINDS if kind not in ("norms", "random")]
# A way and a feature; of called clones but for the copied ones.
_DIVISIONS = {
    "called in parts": ("together", "parts"),
    "copied": ("together", "copied"),
    "all-reduce": ("all-reduce", "plain"),
    "bfloat16": ("together", "bfloat16"),
}
_NORMS = {
    "called": ("together", "common norms"),
    "all-reduce": ("all-reduce", "common norms"),
}

_golden = functools.cache(every_layer.golden)


@pytest.mark.parametrize("library", KERASES)
def test_every_layer_is_in_the_table(library):
    """Each class of layers is in a row, by one of its names, or left out with a reason."""
    named = {name for table, _ in KINDS.values() for name in table} | LEFT_OUT.keys()
    missing = [
        names
        for names in every_layer.layers_of(KERASES[library]).values()
        if not named.intersection(names)
    ]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("division", _DIVISIONS)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("library", KERASES)
def test_every_layer_trains_as_in_one_clone(library, kind, division):
    """Losses, weights and states of all layers of a kind are those of one clone."""
    way, feature = _DIVISIONS[division]
    laws.check(way, laws.FEATURES[feature], _golden(library, kind), "resource")


@pytest.mark.slow
@pytest.mark.parametrize("division", _NORMS)
@pytest.mark.parametrize("library", KERASES)
def test_batch_norms_in_common_train_as_in_one_clone(library, division):
    """Batch norms over all clones are those of one clone with the whole batch."""
    way, feature = _NORMS[division]
    laws.check(way, laws.FEATURES[feature], _golden(library, "norms"), "resource")


@pytest.mark.slow
@pytest.mark.parametrize("library", KERASES)
def test_random_layers_draw_the_same_in_copies(library):
    """Copies of a clone that draws numbers train as called clones do, to the last bit."""
    called, copied = (
        harness.Replica(
            LogicalDevices(num_clones=2, copy_clones=copy),
            _golden(library, "random"),
            by_step=library == "tf_keras",
        )()
        for copy in (False, True)
    )
    harness.assert_equal(copied, called)

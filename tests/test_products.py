"""Several features at once, in any way to train: random products of what `laws` has."""

import itertools

import pytest

from tests import harness, laws

_PRODUCTS = laws.products(seed=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("product", "variable_kind"),
    [(product, cell[-1]) for product, cell in _PRODUCTS.items()],
    ids=list(_PRODUCTS),
    indirect=["variable_kind"],
)
def test_random_products(product, variable_kind, monkeypatch):
    """Several features at once, in graphs that TensorFlow rewrites: all equal one clone."""
    del variable_kind
    monkeypatch.setattr(harness, "rewrites", True)
    laws.check(*_PRODUCTS[product])


def test_every_two_features_meet():
    """Every two features that go together, whatever the way and the model, are in a product."""
    settings = [set(wanted.settings.items()) for _, wanted, _, _ in _PRODUCTS.values()]
    for pair in itertools.combinations(laws.FEATURES, 2):
        both = {item for name in pair for item in laws.FEATURES[name].settings.items()}
        if not any(both <= each for each in settings):
            assert _never_go_together(pair), pair


def _never_go_together(pair):
    """Whether each way, model and kind has a reason against two features, or one of them asks for
    nothing.
    """
    return not all(laws.FEATURES[name].settings for name in pair) or all(
        laws.why_not_together(pair, *cell)
        for cell in itertools.product(laws.WAYS, laws.MODELS, laws.KINDS)
    )

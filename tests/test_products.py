"""Several features at once, in any way to train: random products of what `laws` has."""

import pytest

from tests import harness, laws

_PRODUCTS = laws.products(24, seed=1)


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

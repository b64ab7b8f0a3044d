"""The command that measures the bounds of the training figures."""

import json

import numpy as np
import pytest

from tests.nets import reference, sensitivity


def test_every_network_is_measured():
    """The file has each network with reference numbers, and no other."""
    assert sorted(reference.sensitivities()) == reference.names()


@pytest.mark.slow
def test_measured_again():
    """What the file says of a network is a property of it: measured anew, it is much the same."""
    found, written = sensitivity.measure("lenet"), reference.sensitivities()["lenet"]
    assert found.keys() == written.keys()
    for kind, values in found.items():
        ratios = np.array(values) / np.array(written[kind])
        assert 0.5 < ratios.min() <= ratios.max() < 2, kind


def test_other_networks_keep_their_numbers(monkeypatch, tmp_path):
    """Measuring some networks writes theirs, with two digits, and keeps those of the others."""
    path = tmp_path / "sensitivities.json"
    path.write_text('{"one": {"logits": [0.5]}, "two": {"logits": [0.25]}}')
    monkeypatch.setattr(reference, "SENSITIVITIES", path)
    sensitivity.write({"two": {"logits": [0.0123456], "gradient_norms": [1e-7, 2e-7]}})
    assert json.loads(path.read_text()) == {
        "one": {"logits": [0.5]},
        "two": {"logits": [0.012], "gradient_norms": [1e-7, 2e-7]},
    }


def test_unknown_network():
    """A name without reference numbers is named, before anything is measured."""
    message = r"^names must be of networks with reference numbers, got \['mnist_mlp'\]"
    with pytest.raises(ValueError, match=message):
        sensitivity.main(["lenet", "mnist_mlp"])

"""All tests here compute with channels first."""

import pytest

from tests import devices


@pytest.fixture(autouse=True)
def channels_first():
    """Skips where TensorFlow cannot."""
    devices.need_channels_first()

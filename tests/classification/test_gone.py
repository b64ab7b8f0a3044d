"""Settings that are gone."""

import dataclasses

import pytest

from model_deploy.classification.gone_settings import check_gone, gone
from model_deploy.commands import Options

pytestmark = pytest.mark.one_mode


@dataclasses.dataclass(frozen=True)
class Sample(Options):
    """Options with a setting that is gone."""

    quantize_delay: int = gone("quantize_delay")


def test_only_its_one_value_passes():
    """The default passes, and so do options without such a setting. For other values the message
    names the field, its one value, the value received and what replaced it.
    """
    check_gone(Sample())
    check_gone(Options())
    with pytest.raises(ValueError, match=r"quantize_delay must be -1, got 5: .*TensorFlow Lite"):
        check_gone(Sample(quantize_delay=5))

"""The settings of networks of cells."""

import pytest

from nets.nasnet.cell_config import CellNetworkConfig


@pytest.fixture
def config():
    """A config with the defaults."""
    return CellNetworkConfig(num_cells=6, num_conv_filters=8)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("num_cells", 0, "a whole number of at least 1, got 0"),
        ("num_conv_filters", True, "a whole number of at least 1, got True"),
        ("stem_multiplier", 0.0, "a number greater than 0, got 0.0"),
        ("filter_scaling_rate", -2, "a number greater than 0, got -2"),
        ("drop_path_keep_prob", 0, r"a number in \(0, 1\], got 0"),
        ("dense_dropout_keep_prob", 1.5, r"a number in \(0, 1\], got 1.5"),
        ("num_reduction_layers", -1, "number of at least 0, got -1"),
        ("use_aux_head", 2, "True or False, got 2"),
        ("skip_reduction_layer_input", "no", "True or False, got 'no'"),
        ("data_format", "NWHC", "NHWC or NCHW, got 'NWHC'"),
        ("use_bounded_activation", 3, "True or False, got 3"),
        ("total_training_steps", 0, "a whole number of at least 1, got 0"),
    ],
)
def test_config_rejects(config, name, value, rule):
    """A bad value is named however it gets into the config, and leaves it unchanged."""
    message = f"^{name} must be .*{rule}"
    before = getattr(config, name)
    with pytest.raises(ValueError, match=message):
        CellNetworkConfig(**{"num_cells": 6, "num_conv_filters": 8, name: value})
    with pytest.raises(ValueError, match=message):
        config.set_hparam(name, value)
    with pytest.raises(ValueError, match=message):
        setattr(config, name, value)
    assert getattr(config, name) == before


def test_config_has_no_other_setting(config):
    """A misspelt setting is named with those that there are."""
    with pytest.raises(ValueError, match=r"setting must be one of num_cells, .*, got 'num_cell'"):
        config.set_hparam("num_cell", 3)


def test_switches_take_the_numbers_of_old_code(config):
    """0 and 1 are switch positions, as in TF-Slim's configs."""
    config.set_hparam("use_aux_head", 0)
    assert not config.use_aux_head


def test_override_from_dict(config):
    """Several settings change at once, each checked, and all can be read."""
    assert config.override_from_dict({"num_cells": 9, "data_format": "NCHW"}) is config
    values = config.values()
    assert (values["num_cells"], values["data_format"]) == (9, "NCHW")
    assert values["num_conv_filters"] == 8
    with pytest.raises(ValueError, match=r"^num_cells must be"):
        config.override_from_dict({"num_cells": 0})

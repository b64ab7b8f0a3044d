"""The settings of networks of cells."""

import pytest

from nets.nasnet import nasnet, pnasnet
from nets.nasnet.cell_config import CellNetworkConfig


@pytest.fixture
def config():
    """A config with the defaults."""
    return CellNetworkConfig(num_cells=6, num_conv_filters=8)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        pytest.param("num_cells", 0, "a whole number of at least 1, got 0", id="no-cells"),
        pytest.param("num_cells", 2.5, "a whole number of at least 1, got 2.5", id="half-a-cell"),
        pytest.param("num_cells", "6", "a whole number of at least 1, got '6'", id="text"),
        pytest.param("num_conv_filters", True, "a whole number of at least 1, got True", id="bool"),
        pytest.param("stem_multiplier", 0.0, "a number greater than 0, got 0.0", id="no-stem"),
        pytest.param("filter_scaling_rate", -2, "a number greater than 0, got -2", id="rate"),
        pytest.param("drop_path_keep_prob", 0, r"a number in \(0, 1\], got 0", id="drop-all"),
        pytest.param("drop_path_keep_prob", None, r"a number in \(0, 1\], got None", id="none"),
        pytest.param("dense_dropout_keep_prob", 1.5, r"a number in \(0, 1\], got 1.5", id="share"),
        pytest.param("num_reduction_layers", -1, "number of at least 0, got -1", id="reductions"),
        pytest.param("use_aux_head", 2, "True or False, got 2", id="aux-head"),
        pytest.param("skip_reduction_layer_input", "no", "True or False, got 'no'", id="skip"),
        pytest.param("data_format", "NWHC", "NHWC or NCHW, got 'NWHC'", id="layout"),
        pytest.param("use_bounded_activation", 3, "True or False, got 3", id="bounded"),
        pytest.param("total_training_steps", 0, "a whole number of at least 1, got 0", id="steps"),
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


@pytest.mark.parametrize(
    "make",
    [
        nasnet.cifar_config,
        nasnet.mobile_imagenet_config,
        nasnet.large_imagenet_config,
        pnasnet.mobile_imagenet_config,
        pnasnet.large_imagenet_config,
    ],
)
def test_each_call_makes_a_config_of_its_own(make):
    """Changing a network's config does not change the next one."""
    changed = make()
    changed.num_cells += 3
    assert make().num_cells == changed.num_cells - 3


def test_override_from_dict(config):
    """Several settings change at once, each checked, and all can be read."""
    assert config.override_from_dict({"num_cells": 9, "data_format": "NCHW"}) is config
    values = config.values()
    assert (values["num_cells"], values["data_format"]) == (9, "NCHW")
    assert values["num_conv_filters"] == 8
    with pytest.raises(ValueError, match=r"^num_cells must be"):
        config.override_from_dict({"num_cells": 0})

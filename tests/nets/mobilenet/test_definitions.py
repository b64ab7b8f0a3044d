"""The layer tables of MobileNets and the arithmetic on them."""

import math

import pytest

from nets.mobilenet.definitions import Conv, ConvDefs, ExpandedConv, PoolToPixel, strides_and_rates

STRIDES = [2, 1, 2, 1, 2, 2, 1, 1, 2, 1]


@pytest.fixture
def conv_defs():
    """A network of three layers and a pooling."""
    layers = (Conv(40, stride=2), ExpandedConv(20), PoolToPixel(), Conv(100))
    return ConvDefs(layers, abs, abs, {})


def widths(conv_defs):
    """Returns the widths of all layers that have one."""
    return [la.num_outputs for la in conv_defs.layers if not isinstance(la, PoolToPixel)]


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        pytest.param({}, [24, 16, 48], id="default"),  # 20, 10 and 50, next multiple of 8
        pytest.param({"divisible_by": 1}, [20, 10, 50], id="any-number"),
        pytest.param({"divisible_by": 5, "min_depth": 15}, [20, 15, 50], id="least-number"),
        pytest.param({"keep_last": True}, [24, 16, 100], id="keep-last"),
    ],
)
def test_thinned(conv_defs, keywords, expected):
    """Half the width is rounded as asked for, and nothing but the widths changes."""
    thin = conv_defs.thinned(0.5, **keywords)
    assert widths(thin) == expected
    assert thin.layers[2] == PoolToPixel()
    assert [la.stride for la in thin.layers] == [la.stride for la in conv_defs.layers]


def test_wider_networks_widen_the_last_layer(conv_defs):
    """`keep_last` keeps the last layer from getting thinner, not from getting wider."""
    assert widths(conv_defs.thinned(2.0, keep_last=True)) == [80, 40, 200]


@pytest.mark.parametrize("output_stride", [1, 2, 4, 8, 16, 32])
def test_strides_and_rates(output_stride):
    """Strides multiply to the output stride, and what each layer lost of them dilates it."""
    pairs = strides_and_rates(STRIDES, output_stride)
    assert math.prod(stride for stride, _ in pairs) == output_stride
    seen = 1
    built = 1
    for original, (stride, rate) in zip(STRIDES, pairs, strict=True):
        assert rate == seen // built
        seen *= original
        built *= stride


def test_no_output_stride_changes_nothing():
    """Without an output stride the layers keep their own."""
    assert strides_and_rates(STRIDES, None) == [(stride, 1) for stride in STRIDES]


@pytest.mark.parametrize("output_stride", [0, -8, 3, 64, "8"])
def test_bad_output_stride(output_stride):
    """An output stride that the strides never reach is named with those that they do."""
    message = (
        rf"^output_stride must be None or one of \[1, 2, 4, 8, 16, 32\], got {output_stride!r}"
    )
    with pytest.raises(ValueError, match=message):
        strides_and_rates(STRIDES, output_stride)


def test_inner_size():
    """A block widens to a multiple of 8 channels, and not at all with expansion 1."""
    assert ExpandedConv(24, expansion=3.67).inner_size(24) == 88
    assert ExpandedConv(24, expansion=1).inner_size(13) == 13


def test_stride_without_a_convolution_to_take_it():
    """A fused block with nothing but the projection cannot have a stride."""
    with pytest.raises(ValueError, match=r"^stride must be 1 in a fused block .* to 16, got 2"):
        ExpandedConv(16, expansion=1, stride=2, fused=True)

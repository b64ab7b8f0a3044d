"""Which types of ops compute with channels first, and what changes in each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.internals import NewOp
from model_deploy.rewrites.layouts.axes import (
    FIRST,
    RANKS,
    broadcast_first,
    keep_order,
    moved,
    permuted,
    to_first,
)
from model_deploy.rewrites.making import Form

_LISTS = ("strides", "dilations", "ksize")


def form_of(new: NewOp) -> Form | None:
    """Returns how to make an op with a `data_format` with channels first; None for other ops."""
    if new.type in _WITH_LAYOUT:
        return _with_layout(new, _WITH_LAYOUT[new.type])
    return None


def has_layout(op_type: str) -> bool:
    """Whether ops of a type have a `data_format` for images."""
    return op_type in _WITH_LAYOUT


def form_between(new: NewOp) -> Form | None:
    """Returns the form of an op that can follow one with channels first; None for other ops."""
    make_form = _BETWEEN.get(new.type)
    return make_form(new) if make_form is not None else None


def _with_layout(new: NewOp, place: int) -> Form | None:
    """Returns the form of an op with a `data_format`, whose images are input number `place`."""
    first = FIRST.get(new.attrs["data_format"].s)
    if first is None:
        return None
    attrs = {"data_format": tf.AttrValue(s=first)}
    for name in _LISTS:
        if name in new.attrs:
            attrs[name] = _integers(permuted(new.attrs[name].list.i))
    if "explicit_paddings" in new.attrs and new.attrs["explicit_paddings"].list.i:
        pairs = list(new.attrs["explicit_paddings"].list.i)
        sides = permuted(list(zip(pairs[::2], pairs[1::2], strict=True)))
        attrs["explicit_paddings"] = _integers([number for pair in sides for number in pair])
    # A `Backprop` op gets the shape of its result as the first input.
    sizes = {0: _in_order_of_first(len(first))} if "BackpropInput" in new.type else {}
    return Form([place], attrs, sizes, 1, len(first))


# Type of op -> number of the input that has the images.
_WITH_LAYOUT = {
    "AvgPool": 0,
    "AvgPool3D": 0,
    "Conv2D": 0,
    "Conv2DBackpropInput": 2,
    "Conv3D": 0,
    "Conv3DBackpropInputV2": 2,
    "DepthwiseConv2dNative": 0,
    "FusedBatchNorm": 0,
    "FusedBatchNormV2": 0,
    "FusedBatchNormV3": 0,
    "MaxPool": 0,
    "MaxPool3D": 0,
}


def _bias(new: NewOp) -> Form | None:
    if new.attrs["data_format"].s != b"NHWC" or new.inputs[0].shape.rank not in RANKS:
        return None
    attrs = {"data_format": tf.AttrValue(s=b"NCHW")}
    return Form([0], attrs, {}, 1, new.inputs[0].shape.rank)


def _elementwise(new: NewOp) -> Form | None:
    """Returns the form of an op on images and scalars or vectors with one number per channel."""
    ranks = [each.shape.rank for each in new.inputs]
    if None in ranks or max(ranks) not in RANKS or any(1 < r < max(ranks) for r in ranks):
        return None
    rank = max(ranks)
    images = [place for place, each in enumerate(ranks) if each == rank]
    others = [place for place, each in enumerate(ranks) if each < rank]
    broadcast = dict.fromkeys(others, lambda x: broadcast_first(x, rank))
    return Form(images, {}, broadcast, 1, rank)


def _reduction(new: NewOp) -> Form | None:
    axes = tf.get_static_value(new.inputs[1])
    rank = new.inputs[0].shape.rank
    if axes is None or rank not in RANKS:
        return None
    keeps = new.attrs["keep_dims"].b
    if not keeps and not keep_order(axes.reshape(-1), rank):
        return None
    there = [moved(int(axis), rank) for axis in axes.reshape(-1)]
    other = {1: lambda old: tf.constant(there, old.dtype)}
    return Form([0], {}, other, 1 if keeps else 0, rank)


def _squeeze(new: NewOp) -> Form | None:
    axes = list(new.attrs["squeeze_dims"].list.i)
    rank = new.inputs[0].shape.rank
    if not axes or rank not in RANKS or not keep_order(axes, rank):
        return None
    there = _integers([moved(axis, rank) for axis in axes])
    return Form([0], {"squeeze_dims": there}, {}, 0, rank)


def _concat(new: NewOp) -> Form | None:
    axis = tf.get_static_value(new.inputs[-1])
    rank = new.inputs[0].shape.rank
    if axis is None or rank not in RANKS:
        return None
    last = len(new.inputs) - 1
    there = moved(int(axis), rank)
    axis = {last: lambda old: tf.constant(there, old.dtype)}
    return Form(range(last), {}, axis, 1, rank)


def _padding(new: NewOp) -> Form | None:
    rank = new.inputs[0].shape.rank
    return Form([0], {}, {1: _in_order_of_first(rank)}, 1, rank) if rank in RANKS else None


def _in_order_of_first(rank: int) -> Callable[[Any], Any]:
    """Returns a function that reorders a tensor with one row per axis; a constant stays one."""

    def reorder(per_axis: Any) -> Any:
        known = tf.get_static_value(per_axis)
        if known is not None:
            return tf.constant(known[to_first(rank)], per_axis.dtype)
        return tf.gather(per_axis, to_first(rank))

    return reorder


def _integers(numbers: Sequence[int]) -> Any:
    return tf.AttrValue(list=tf.AttrValue.ListValue(i=numbers))


_ELEMENTWISE = """
    Abs Add AddN AddV2 Cast DivNoNan Elu Exp Identity LeakyRelu Log Maximum Minimum Mul Neg RealDiv
    Relu Relu6 Rsqrt SelectV2 Selu Sigmoid Softplus Softsign Sqrt Square SquaredDifference
    StopGradient Sub Tanh
    """.split()  # noqa: SIM905 - not one a line
_BETWEEN: Mapping[str, Callable[[NewOp], Form | None]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _reduction),
    **dict.fromkeys(("MirrorPad", "Pad", "PadV2"), _padding),
    "BiasAdd": _bias,
    "ConcatV2": _concat,
    "Squeeze": _squeeze,
}

"""Processor time of single ops in float32 and in bfloat16, by which `rewrites.precision` decides.

    python -m benchmarks.precision_ops [--batch=4]

One thread, the least of some runs: other load on the machine changes little.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

_RUNS = 7
_TYPES = (tf.float32, tf.bfloat16)
Build = Callable[..., Any]
raw = tf.raw_ops


def _elementwise() -> dict[str, Build]:
    """Functions of a value; gradients take it for the value and for the output's gradient."""
    return {
        "cast": lambda x: tf.cast(x, tf.bfloat16 if x.dtype == tf.float32 else tf.float32),
        "Relu": lambda x: raw.Relu(features=x),
        "ReluGrad": lambda x: raw.ReluGrad(gradients=x, features=x),
        "Relu6": lambda x: raw.Relu6(features=x),
        "Relu6Grad": lambda x: raw.Relu6Grad(gradients=x, features=x),
        "LeakyRelu": lambda x: raw.LeakyRelu(features=x),
        "Sigmoid": lambda x: raw.Sigmoid(x=x),
        "SigmoidGrad": lambda x: raw.SigmoidGrad(y=x, dy=x),
        "Tanh": lambda x: raw.Tanh(x=x),
        "TanhGrad": lambda x: raw.TanhGrad(y=x, dy=x),
        "AddV2": lambda x: raw.AddV2(x=x, y=x),
        "Mul": lambda x: raw.Mul(x=x, y=x),
        "Maximum": lambda x: raw.Maximum(x=x, y=x),
        "Pad": lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]),
        "ConcatV2": lambda x: tf.concat([x, x], 3),
        "MaxPool": lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"),
        "FusedBatchNormV3": _norm,
        "FusedBatchNormGradV3": _norm_gradient,
    }


def _channels(x: Any) -> Any:
    return tf.ones([x.shape[-1]])


def _norm(x: Any) -> Any:
    scale, none = _channels(x), tf.constant([], tf.float32)
    return raw.FusedBatchNormV3(x=x, scale=scale, offset=scale, mean=none, variance=none)[0]


def _norm_gradient(x: Any) -> Any:
    names = ("scale", "reserve_space_1", "reserve_space_2", "reserve_space_3")
    return raw.FusedBatchNormGradV3(y_backprop=x, x=x, **dict.fromkeys(names, _channels(x)))[0]


def _convolution(images: Any, filters: Any) -> tuple[Any, ...]:
    """A convolution of stride 1, and the gradients of its images and its filters."""
    depth = filters.shape[3] == 1
    kind = "DepthwiseConv2dNative" if depth else "Conv2D"
    settings = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    made = getattr(raw, kind)(input=images, filter=filters, **settings)
    gradient = tf.ones(made.shape, made.dtype)
    of_images = getattr(raw, f"{kind}BackpropInput")
    of_filters = getattr(raw, f"{kind}BackpropFilter")
    return (
        made,
        of_images(input_sizes=images.shape, filter=filters, out_backprop=gradient, **settings),
        of_filters(input=images, filter_sizes=filters.shape, out_backprop=gradient, **settings),
    )


def _ops(batch: int) -> Iterator[tuple[str, list[Any]]]:
    """Names, and ops in each of `_TYPES`."""
    for shape in ([batch, 56, 56, 64], [batch, 56, 56, 72], [batch, 112, 112, 64]):
        values = [_variable(shape, dtype) for dtype in _TYPES]
        for name, build in _elementwise().items():
            yield f"{name} {shape}", [build(each).op for each in values]
    for side, channels, filters in (
        (56, 64, [3, 3, 64, 1]),
        (28, 128, [5, 5, 128, 1]),
        (56, 64, [1, 1, 64, 64]),
        (14, 480, [1, 1, 480, 112]),
        (56, 64, [3, 3, 64, 64]),
    ):
        shape = [batch, side, side, channels]
        made = [_convolution(_variable(shape, t), _variable(filters, t)) for t in _TYPES]
        for what, pair in zip(
            ("forward", "images", "filters"), zip(*made, strict=True), strict=True
        ):
            yield f"convolution {shape} by {filters}, {what}", [each.op for each in pair]


def _variable(shape: list[int], dtype: Any) -> Any:
    """A variable's value, for what is computed from constants is computed once."""
    start = tf.cast(tf.random.uniform(shape, -1, 1), dtype)
    return tf.Variable(start, use_resource=True).read_value()


def _millisecs(call: Callable[[], Any]) -> float:
    """The least processor time of some calls, after one that is not counted."""
    found = []
    for _ in range(_RUNS + 1):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return 1000 * min(found[1:])


def main() -> None:
    """Prints a line for each op."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4)
    batch = parser.parse_args().batch
    tf.disable_eager_execution()
    ops = list(_ops(batch))
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        print("milliseconds in float32, in bfloat16")
        for name, pair in ops:
            single, half = (_millisecs(session.make_callable(op)) for op in pair)
            print(f"{name:<60} {single:8.3f} {half:8.3f}", flush=True)


if __name__ == "__main__":
    main()

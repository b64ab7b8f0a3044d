"""Cells of searched networks: blocks of two operations, wired as a search found them.

After B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable Architectures for Scalable
Image Recognition" (2018), https://arxiv.org/abs/1707.07012. A cell keeps a list of states: state 0
is the output of the cell before it, state 1 that of the cell before that, and each block appends
the sum of two operations on earlier states.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim

# Makes [batch, height / stride, width / stride, filters] of a state, filters and stride.
Operation = Callable[[Any, int, int], Any]
DropPath = Callable[[Any], Any]


class Input(NamedTuple):
    """One half of a block: an operation and the state that it reads."""

    operation: Operation
    state: int


class Cell(NamedTuple):
    """The wiring of a cell.

    Attributes:
      blocks: the two halves of each block; block `i` appends state `i + 2`.
      outputs: the states whose channels, one after the other, are the cell's output.
    """

    blocks: tuple[tuple[Input, Input], ...]
    outputs: tuple[int, ...]


def separable(kernel: int) -> Operation:
    """Returns a `kernel` x `kernel` separable convolution, done twice; the first one strides."""

    def operation(net: Any, filters: int, stride: int) -> Any:
        for layer in (1, 2):
            suffix = f"{kernel}x{kernel}_{layer}"
            net = slim.separable_conv2d(
                tf.nn.relu(net),
                filters,
                [kernel, kernel],
                depth_multiplier=1,
                stride=stride if layer == 1 else 1,
                scope=f"separable_{suffix}",
            )
            net = slim.batch_norm(net, scope=f"bn_sep_{suffix}")
        return net

    return operation


def max_pool(net: Any, filters: int, stride: int) -> Any:
    """Takes the largest of 3x3; a 1x1 convolution follows if the state has other channels."""
    net = slim.max_pool2d(net, [3, 3], stride=stride, padding="SAME", scope="max_pool_3x3")
    return net if net.shape.as_list()[3] == filters else _project(net, filters, "1x1", "bn_1")


def avg_pool(net: Any, filters: int, stride: int) -> Any:
    """Averages over 3x3; a 1x1 convolution follows if the state has other channels."""
    net = slim.avg_pool2d(net, [3, 3], stride=stride, padding="SAME", scope="avg_pool_3x3")
    return net if net.shape.as_list()[3] == filters else _project(net, filters, "1x1", "bn_1")


def identity(net: Any, filters: int, stride: int) -> Any:
    """Keeps the state; a 1x1 convolution takes its place if size or channels have to change."""
    if stride == 1 and net.shape.as_list()[3] == filters:
        return net
    return _project(tf.nn.relu(net), filters, "1x1", "bn_1", stride)


def _project(net: Any, filters: int, scope: str, norm_scope: str, stride: int = 1) -> Any:
    """Returns a normalized 1x1 convolution."""
    net = slim.conv2d(net, filters, [1, 1], stride=stride, scope=scope)
    return slim.batch_norm(net, scope=norm_scope)


def build_cell(
    net: Any, previous: Any, cell: Cell, filters: int, stride: int, drop_path: DropPath
) -> Any:
    """Builds a cell in the current variable scope.

    Args:
      net: output of the cell before it, `[batch, height, width, channels]` of known size.
      previous: output of the cell before that, `[batch, h, w, c]` of the same or twice the size;
        None takes `net` as it is.
      cell: the wiring.
      filters: channels of each block.
      stride: of the operations that read states 0 and 1; 1 or 2.
      drop_path: applied to what each operation makes, except identity.

    Returns:
      `[batch, height / stride, width / stride, len(cell.outputs) * filters]`.
    """
    previous = net if previous is None else _match(previous, net, filters)
    states = [_project(tf.nn.relu(net), filters, "1x1", "beginning_bn"), previous]
    for index, block in enumerate(cell.blocks):
        halves = []
        with tf.variable_scope(f"comb_iter_{index}"):
            for side, (operation, state) in zip(("left", "right"), block, strict=True):
                with tf.variable_scope(side):
                    half = operation(states[state], filters, stride if state < 2 else 1)
                    halves.append(half if operation is identity else drop_path(half))
        states.append(tf.add(*halves))
    with tf.variable_scope("cell_output"):
        return tf.concat([_output(states[state], state, filters) for state in cell.outputs], axis=3)


def _match(previous: Any, net: Any, filters: int) -> Any:
    """Brings the output of an earlier cell to the size of `net` and to `filters` channels."""
    if previous.shape.as_list()[1:3] != net.shape.as_list()[1:3]:
        return halve(tf.nn.relu(previous), filters)
    if previous.shape.as_list()[3] != filters:
        return _project(tf.nn.relu(previous), filters, "prev_1x1", "prev_bn")
    return previous


def _output(net: Any, state: int, filters: int) -> Any:
    """Gives a state that is part of the output the channels of the blocks."""
    if net.shape.as_list()[3] == filters:
        return net
    with tf.variable_scope(f"reduction_{state}"):
        return _project(net, filters, "path_conv", "path_bn")


def halve(net: Any, filters: int) -> Any:
    """Halves height and width by taking every second pixel, on two paths.

    The second path is shifted by one pixel, so that between them the paths see a pixel of every
    row and of every column. An odd filter goes to the second path.

    Args:
      net: `[batch, height, width, channels]`.
      filters: number of output channels, at least 2.

    Returns:
      `[batch, ceil(height / 2), ceil(width / 2), filters]`.
    """
    shifted = tf.pad(net, [[0, 0], [0, 1], [0, 1], [0, 0]])[:, 1:, 1:, :]
    first = slim.conv2d(net[:, ::2, ::2, :], filters // 2, [1, 1], scope="path1_conv")
    second = slim.conv2d(
        shifted[:, ::2, ::2, :], filters - filters // 2, [1, 1], scope="path2_conv"
    )
    return slim.batch_norm(tf.concat([first, second], axis=3), scope="final_path_bn")


def drop_path(net: Any, keep_prob: Any) -> Any:
    """Zeroes the whole path of each example with probability `1 - keep_prob`.

    Args:
      net: `[batch, height, width, channels]`.
      keep_prob: in (0, 1], a number or a scalar tensor; paths that stay are divided by it, so
        that the expected value does not change.
    """
    keep_prob = tf.cast(keep_prob, net.dtype)
    uniform = tf.random_uniform([tf.shape(net)[0], 1, 1, 1], dtype=net.dtype)
    return net / keep_prob * tf.floor(uniform + keep_prob)


def scheduled_keep_prob(keep_prob: float, depth: float, progress: Any) -> Any:
    """Returns the keep probability of ScheduledDropPath (section 3 of Zoph et al.).

    Paths are dropped more often the deeper the cell and the further the training:
    `1 - progress * depth * (1 - keep_prob)`.

    Args:
      keep_prob: that of the last cell at the end of training.
      depth: of the cell, counted from 1, over the number of cells; in (0, 1].
      progress: share of the training done, in [0, 1]; a number or a scalar tensor.
    """
    return 1.0 - progress * (depth * (1.0 - keep_prob))

"""The cells of searched networks: blocks of two operations, wired as a search found them.

After B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable Architectures for Scalable
Image Recognition" (2018), https://arxiv.org/abs/1707.07012. The functions take the layout of their
feature maps, `NHWC` or `NCHW`, from an arg scope that sets `data_format`.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet.feature_maps import (
    DATA_FORMAT_NCHW,
    DATA_FORMAT_NHWC,
    INVALID,
    drop_path,
    factorized_reduction,
    get_channel_dim,
    get_channel_index,
    global_avg_pool,
    normalized_conv,
    size_of,
)
from nets.nasnet.operations import CLIP_BY_VALUE_CAP, Operation

__all__ = [
    "CLIP_BY_VALUE_CAP",
    "DATA_FORMAT_NCHW",
    "DATA_FORMAT_NHWC",
    "INVALID",
    "NasNetABaseCell",
    "NasNetANormalCell",
    "NasNetAReductionCell",
    "arg_scope",
    "calc_reduction_layers",
    "drop_path",
    "factorized_reduction",
    "get_channel_dim",
    "get_channel_index",
    "global_avg_pool",
    "size_of",
]

arg_scope = slim.arg_scope


def calc_reduction_layers(num_cells: int, num_reduction_layers: int) -> list[int]:
    """Returns the cells that the map is halved before (or in), evenly spaced.

    >>> calc_reduction_layers(18, 2)
    [6, 12]
    """
    parts = num_reduction_layers + 1
    return [part * num_cells // parts for part in range(1, parts)]


class NasNetABaseCell:
    """A cell: blocks that each add up two operations on earlier states.

    State 0 is the cell's input, state 1 the input of the cell before; each block appends one.

    Args:
      num_conv_filters: channels of a block where `filter_scaling` is 1.
      operations: of each block the left and the right one, as `Operation` reads them.
      used_hiddenstates: of each state whether it is left out of the output.
      hiddenstate_indices: the states that the operations read.
      drop_path_keep_prob: share of the paths that the last cell keeps at the end of training.
      total_num_cells: of the network, for the schedule of drop path.
      total_training_steps: number of steps until `drop_path_keep_prob` is reached.
      use_bounded_activation: ReLU6 in place of ReLU, and all states within 6 of zero.
    """

    def __init__(
        self,
        num_conv_filters: float,
        operations: Sequence[str],
        used_hiddenstates: Sequence[int],
        hiddenstate_indices: Sequence[int],
        drop_path_keep_prob: float,
        total_num_cells: int,
        total_training_steps: int,
        use_bounded_activation: bool = False,
    ) -> None:
        self._num_conv_filters = num_conv_filters
        self._inputs = [
            (Operation.of(name, use_bounded_activation), state)
            for name, state in zip(operations, hiddenstate_indices, strict=True)
        ]
        self._used_hiddenstates = used_hiddenstates
        self._drop_path_keep_prob = drop_path_keep_prob
        self._total_num_cells = total_num_cells
        self._total_training_steps = total_training_steps
        self._bounded = use_bounded_activation
        self._activation_fn = tf.nn.relu6 if use_bounded_activation else tf.nn.relu

    def __call__(
        self,
        net: Any,
        scope: Any = None,
        filter_scaling: float = 1,
        stride: int = 1,
        prev_layer: Any = None,
        cell_num: int = -1,
        current_step: Any = None,
    ) -> Any:
        """Builds the cell.

        Args:
          net: output of the cell before it, a feature map of known size.
          scope: variable scope.
          filter_scaling: factor of `num_conv_filters`.
          stride: of the operations that read states 0 and 1; 1 or 2.
          prev_layer: output of the cell before that, of the same or twice the size; None takes
            `net` as it is.
          cell_num: number of the cell from 0, for the schedule of drop path.
          current_step: scalar for that schedule; None takes the global step, which is created if
            there is none.

        Returns:
          A map of height and width divided by `stride`, with the channels of a block for each
          state that is not used.
        """
        filters = int(self._num_conv_filters * filter_scaling)
        with tf.variable_scope(scope):
            states = self._first_states(net, prev_layer, filters)
            for index in range(len(self._inputs) // 2):
                halves = []
                with tf.variable_scope(f"comb_iter_{index}"):
                    for side in (0, 1):
                        operation, state = self._inputs[2 * index + side]
                        with tf.variable_scope(("left", "right")[side]):
                            half = operation(states[state], filters, stride if state < 2 else 1)
                            if not operation.keeps:
                                half = self._dropped(half, cell_num, current_step)
                            halves.append(half)
                    with tf.variable_scope("combine"):
                        both = halves[0] + halves[1]
                        states.append(tf.nn.relu6(both) if self._bounded else both)
            with tf.variable_scope("cell_output"):
                return self._output(states)

    def _first_states(self, net: Any, previous: Any, filters: int) -> list[Any]:
        """Returns both inputs with `filters` channels, and the second in the size of the first."""
        previous = net if previous is None else self._matched(previous, net, filters)
        net = normalized_conv(self._activation_fn(net), filters, "1x1", "beginning_bn")
        return [net, previous]

    def _matched(self, previous: Any, net: Any, filters: int) -> Any:
        if size_of(previous) != size_of(net):
            return factorized_reduction(self._activation_fn(previous), filters, 2)
        if get_channel_dim(previous.shape) != filters:
            return normalized_conv(self._activation_fn(previous), filters, "prev_1x1", "prev_bn")
        return previous

    def _dropped(self, net: Any, cell_num: int, current_step: Any) -> Any:
        """Applies ScheduledDropPath (section 3 of Zoph et al.).

        Paths are dropped more often the deeper the cell and the further the training.
        """
        if self._drop_path_keep_prob >= 1.0:
            return net
        if cell_num < 0:
            raise ValueError(f"cell_num must be at least 0 where paths are dropped, got {cell_num}")
        depth = (cell_num + 1) / self._total_num_cells
        step = tf.train.get_or_create_global_step() if current_step is None else current_step
        progress = tf.minimum(1.0, tf.cast(step, tf.float32) / self._total_training_steps)
        return drop_path(net, 1.0 - progress * (depth * (1.0 - self._drop_path_keep_prob)))

    def _output(self, states: list[Any]) -> Any:
        """Joins the states that are not used, in the size and channels of the last one."""
        size, filters = size_of(states[-1]), get_channel_dim(states[-1].shape)
        outputs = []
        for index, (net, is_used) in enumerate(zip(states, self._used_hiddenstates, strict=True)):
            if is_used:
                continue
            if size_of(net) == size and get_channel_dim(net.shape) == filters:
                outputs.append(net)
                continue
            with tf.variable_scope(f"reduction_{index}"):
                stride = 1 if size_of(net) == size else 2
                outputs.append(factorized_reduction(net, filters, stride))
        return tf.concat(outputs, axis=get_channel_index())


class NasNetANormalCell(NasNetABaseCell):
    """The cell of NASNet-A that is repeated (figure 4); arguments of `NasNetABaseCell`."""

    def __init__(
        self,
        num_conv_filters: float,
        drop_path_keep_prob: float,
        total_num_cells: int,
        total_training_steps: int,
        use_bounded_activation: bool = False,
    ) -> None:
        super().__init__(
            num_conv_filters,
            [
                *("separable_5x5_2", "separable_3x3_2"),
                *("separable_5x5_2", "separable_3x3_2"),
                *("avg_pool_3x3", "none"),
                *("avg_pool_3x3", "avg_pool_3x3"),
                *("separable_3x3_2", "none"),
            ],
            [1, 0, 0, 0, 0, 0, 0],
            [0, 1, 1, 1, 0, 1, 1, 1, 0, 0],
            drop_path_keep_prob,
            total_num_cells,
            total_training_steps,
            use_bounded_activation,
        )


class NasNetAReductionCell(NasNetABaseCell):
    """The cell of NASNet-A that halves the map (figure 4); arguments of `NasNetABaseCell`."""

    def __init__(
        self,
        num_conv_filters: float,
        drop_path_keep_prob: float,
        total_num_cells: int,
        total_training_steps: int,
        use_bounded_activation: bool = False,
    ) -> None:
        super().__init__(
            num_conv_filters,
            [
                *("separable_5x5_2", "separable_7x7_2"),
                *("max_pool_3x3", "separable_7x7_2"),
                *("avg_pool_3x3", "separable_5x5_2"),
                *("none", "avg_pool_3x3"),
                *("separable_3x3_2", "max_pool_3x3"),
            ],
            [1, 1, 1, 0, 0, 0, 0],
            [0, 1, 0, 1, 0, 1, 3, 2, 2, 0],
            drop_path_keep_prob,
            total_num_cells,
            total_training_steps,
            use_bounded_activation,
        )

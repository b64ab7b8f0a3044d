"""`tf.contrib.rnn`: the cells that TensorFlow's `rnn_cell` does not have, and loops over them."""

from model_deploy.tf1.contrib.written.rnn.cells import (
    GRUBlockCell,
    GRUBlockCellV2,
    LayerNormBasicLSTMCell,
    LSTMBlockCell,
    NASCell,
    UGRNNCell,
)
from model_deploy.tf1.contrib.written.rnn.convolutions import (
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
)
from model_deploy.tf1.contrib.written.rnn.fused import (
    FusedRNNCell,
    FusedRNNCellAdaptor,
    LSTMBlockFusedCell,
    TimeReversedFusedRNN,
)
from model_deploy.tf1.contrib.written.rnn.shapes import (
    best_effort_input_batch_size,
    transpose_batch_time,
)
from model_deploy.tf1.contrib.written.rnn.stacked import (
    stack_bidirectional_dynamic_rnn,
    stack_bidirectional_rnn,
)
from model_deploy.tf1.contrib.written.rnn.wrappers import (
    EmbeddingWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)

__all__ = [
    "Conv1DLSTMCell",
    "Conv2DLSTMCell",
    "Conv3DLSTMCell",
    "ConvLSTMCell",
    "EmbeddingWrapper",
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "InputProjectionWrapper",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LayerNormBasicLSTMCell",
    "NASCell",
    "OutputProjectionWrapper",
    "TimeReversedFusedRNN",
    "UGRNNCell",
    "best_effort_input_batch_size",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "transpose_batch_time",
]

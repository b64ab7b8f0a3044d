"""Cells around another cell: layers above and below it."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells
from model_deploy.tf1.contrib.written.rnn.linear import linear


class _Around(cells.RNNCell):
    """A cell around another one, whose state it has."""

    def __init__(self, cell: Any, reuse: Any = None) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell inside."""
        return self._cell.zero_state(batch_size, dtype)


class InputProjectionWrapper(_Around):
    """A linear layer below a cell.

    Args:
      cell: the cell.
      num_proj: the size of its inputs.
      activation: of the layer, or None.
      input_size: not used.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: Any = None,
    ) -> None:
        del input_size
        super().__init__(cell, reuse)
        self._size = num_proj
        self._activation = activation or tf.identity

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, depth]."""
        return self._cell(self._activation(linear([inputs], self._size)), state)


class OutputProjectionWrapper(_Around):
    """A linear layer above a cell.

    Args:
      cell: the cell.
      output_size: the size of the layer.
      activation: of the layer, or None.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        self._size = output_size
        self._activation = activation or tf.identity

    @property
    def output_size(self) -> int:
        """That of the layer."""
        return self._size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, depth]."""
        output, state = self._cell(inputs, state)
        return self._activation(linear([output], self._size)), state


class EmbeddingWrapper(_Around):
    """A table of embeddings below a cell, the variable `embedding`.

    Args:
      cell: the cell.
      embedding_classes: number of tokens.
      embedding_size: the size of the cell's inputs.
      initializer: of the table; by default that of the scope, or uniform with variance 1.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: Any = None,
    ) -> None:
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "embedding_classes and embedding_size must be over 0, got "
                f"{embedding_classes} and {embedding_size}"
            )
        super().__init__(cell, reuse)
        self._shape = embedding_classes, embedding_size
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: tokens, integers [batch]."""
        dtype = tf.nest.flatten(state)[0].dtype
        start = self._initializer or tf.get_variable_scope().initializer
        start = start or tf.random_uniform_initializer(-(3**0.5), 3**0.5)
        table = tf.get_variable("embedding", list(self._shape), dtype, start)
        embedded = tf.nn.embedding_lookup(table, tf.reshape(inputs, [-1]))
        return self._cell(embedded, state)

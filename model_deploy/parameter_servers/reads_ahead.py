"""`ReadsAhead`: a worker's copies of variables, which it gets before the step that needs them."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.collectives import packing
from model_deploy.config import DeploymentConfig
from model_deploy.parameter_servers.needed import needed_by
from model_deploy.rotation import local_variable

# Not a string: collections with other names do not go into checkpoints.
_READS_AHEAD = ("model_deploy", "reads_ahead")


class ReadsAhead:
    """Copies of variables on the worker, from which losses and gradients take them.

    Args:
      config: the deployment.
      values: what `share_reads` returned, tensors of their variables' shapes on the worker.
    """

    def __init__(self, config: DeploymentConfig, values: Sequence[Any]) -> None:
        self._config = config
        self._shared = {value.op.inputs[0].op.inputs[0].op: value for value in values}
        self._copies: dict[Any, tuple[Any, Any]] = {}

    def can_be_made(self, variable: Any) -> bool:
        """Whether the worker takes a variable, of fixed shape, by a shared read."""
        return variable.op in self._shared and variable.shape.is_fully_defined()

    def fill(self, variables: Sequence[Any]) -> list[Any]:
        """Returns ops that get the present values of variables of one device into their copies.

        What these ops wait for is taken from the control dependencies of the caller.  They come
        after the losses and gradients of their run have taken the copies' values.

        Args:
          variables: variables for which `can_be_made`.
        """
        source, destination = variables[0].device, self._config.inputs_device()
        with tf.device(source):
            # The value of a reference variable is in the variable's memory.
            read = [
                each.read_value()
                if internals.is_resource_variable(each)
                else tf.raw_ops.DeepCopy(x=each.read_value())
                for each in variables
            ]
        moved = packing.move_packed(read, source, destination, self._config.wire_dtype)
        filled = []
        for variable, value in zip(variables, moved, strict=True):
            copy, taken = self._copy(variable)
            with tf.device(destination), tf.control_dependencies([taken.op]):
                filled.append(copy.assign(value, read_value=False))
        return filled

    def give_to(self, computed: Sequence[Any]) -> None:
        """Lets losses and gradients, tensors of any shapes, take copies in place of variables.

        Other ops, such as summaries, read the variables themselves.
        """
        needed = needed_by([tensor.op for tensor in computed])
        for variable, (_, taken) in self._copies.items():
            for index, op in list(graph_walk.uses_of(self._shared[variable])):
                if op in needed:
                    internals.replace_input(op, index, taken)

    def _copy(self, variable: Any) -> tuple[Any, Any]:
        """Returns the copy of a variable, and the value that a run takes from it."""
        if variable.op not in self._copies:
            device = self._config.inputs_device()
            with tf.control_dependencies(None), tf.device(device):
                name = f"ahead/{variable.op.name}"
                copy = local_variable(name, self._shared[variable.op], device)
                taken = copy.read_value()
                taken.set_shape(variable.shape)
            self._copies[variable.op] = (copy, taken)
        return self._copies[variable.op]


def note_reads_ahead(reads: ReadsAhead) -> None:
    """Notes in the default graph what may be read ahead."""
    tf.add_to_collection(_READS_AHEAD, reads)


def noted_reads_ahead() -> ReadsAhead:
    """Returns what may be read ahead in the deployment that is being built."""
    found: ReadsAhead = tf.get_collection(_READS_AHEAD)[-1]
    return found

"""The facts about a network that a plan needs: its variables, in order, and its memory."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, placement
from model_deploy.deployment import DeployedModel
from model_deploy.plan.formulas import Load


@dataclasses.dataclass(frozen=True)
class Network:
    """A network, and the batch of a worker's step.

    Attributes:
      variable_bytes: bytes of each of the model's variables, in the order of creation, which is the
        order of the forward pass.
      is_trained: for each variable whether it is trained.
      state_bytes: bytes of all variables, the optimizer's included.
      activation_bytes: bytes that the forward pass keeps for the backward pass, on one device.
      clones: clones of a worker, one on each of its devices.
      batch_size: examples of a worker's step, over all clones.
      ps_strategy: as in `DeploymentConfig`.
    """

    variable_bytes: tuple[int, ...]
    is_trained: tuple[bool, ...]
    state_bytes: int
    activation_bytes: int
    clones: int
    batch_size: int
    ps_strategy: str = "round_robin"

    @property
    def trained_bytes(self) -> int:
        """The bytes of the variables that have gradients."""
        return sum(
            size
            for size, trained in zip(self.variable_bytes, self.is_trained, strict=True)
            if trained
        )

    def load(self, computation_secs: float, ps: int = 1, wire_share: float = 1.0) -> Load:
        """Returns the work of a step.

        Args:
          computation_secs: seconds of a worker's computation.
          ps: number of parameter servers that share the variables.
          wire_share: 1 / 2 for 16 bits on the wire.
        """
        chooser = placement.PsDeviceChooser("/job:ps", max(1, ps), self.ps_strategy)
        owners = [_ps_task_of(chooser, size) for size in self.variable_bytes]
        layers = [
            (size * wire_share, owner)
            for size, owner, trained in zip(
                self.variable_bytes, owners, self.is_trained, strict=True
            )
            if trained
        ]
        sizes, tasks = zip(*layers, strict=True)
        return Load(sizes, computation_secs, tasks, wire_share)


def network_of(model: DeployedModel, batch_size: int) -> Network:
    """Makes a deployed model's `Network`; reads `GLOBAL_VARIABLES`, `TRAINABLE_VARIABLES`.

    All gradients count as dense; activations of unknown shape count 0.

    Args:
      model: what `deploy` returned, with an optimizer.
      batch_size: examples of a step of this process, over all its clones.

    Raises:
      ValueError: if the model is not trained.
    """
    if model.train_op is None:
        raise ValueError("model must have an optimizer, got one that is not trained")
    graph = model.train_op.graph
    with graph.as_default():
        variables, trained = tf.global_variables(), tf.trainable_variables()
    step = tf.train.get_global_step(graph)
    sizes = {v.op.name: placement.tensor_bytes(v.shape, v.dtype) or 0 for v in variables}
    names = {variable.op.name for variable in trained}
    # The optimizer's variables come after all variables of the model.
    last = max(i for i, variable in enumerate(variables) if variable.op.name in names)
    own = [v.op.name for v in variables[: last + 1] if step is None or v.op.name != step.op.name]
    config = model.config
    return Network(
        tuple(sizes[name] for name in own),
        tuple(name in names for name in own),
        sum(sizes.values()),
        _kept_bytes(model),
        1 if config is None else config.num_clones,
        batch_size,
        "round_robin" if config is None else config.ps_strategy,
    )


def _ps_task_of(chooser: Any, size: int) -> int:
    node = tf.NodeDef(op="VarHandleOp")
    node.attr["dtype"].type = tf.uint8.as_datatype_enum
    node.attr["shape"].shape.dim.add().size = size
    return int(tf.DeviceSpec.from_string(chooser(node)).task)


def _kept_bytes(model: DeployedModel) -> int:
    """Returns the bytes of forward values, not variables, that one clone's backward pass uses."""
    forward = graph_walk.ancestors([model.total_loss.op])
    behind = graph_walk.ancestors([model.train_op.op], control_inputs=True) - forward
    kept = {
        tensor.name: placement.tensor_bytes(tensor.shape, tensor.dtype) or 0
        for op in behind
        for tensor in op.inputs
        if tensor.op in forward and not _is_read(tensor)
    }
    return sum(kept.values()) // max(1, len(model.clones))


def _is_read(tensor: Any) -> bool:
    ops: Iterable[Any] = (tensor.op, *(each.op for each in tensor.op.inputs))
    return any(placement.is_variable_op(op) for op in ops)

"""`needed_by`: the ops behind losses and gradients, without updates that they merely wait for."""

from collections.abc import Sequence
from typing import Any

from model_deploy import graph_walk, placement
from model_deploy.op_types import READS


def needed_by(ops: Sequence[Any]) -> set[Any]:
    """Returns the given ops and their ancestors, but not those of variables' updates alone."""
    taken = graph_walk.ancestors(ops)
    # Gradients also wait, by control inputs, for unused gradients of the same op's other inputs.
    before = graph_walk.ancestors(ops, control_inputs=True)
    updates = [op for op in before if _takes_variable(op) and op.type not in READS]
    return before - (graph_walk.ancestors(updates) - taken)


def _takes_variable(op: Any) -> bool:
    return any(placement.is_variable_op(tensor.op) for tensor in op.inputs)

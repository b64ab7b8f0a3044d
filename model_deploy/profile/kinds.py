"""Classifies the ops of a step: computation, update, transfer, input."""

import re

from model_deploy.op_types import changes_variable

# By precedence: if several ops of a device run at once, the first of these kinds counts.
KINDS = ("computation", "update", "transfer", "input")
WAITING = "waiting"

_INPUT = re.compile(r"Iterator|QueueDequeue|Dequeue|PrefetchDataset|RebatchDataset")
_TRANSFER = re.compile(
    r"^_?(Host|Nccl)?(Send|Recv)|^RecvTensor|^RecvBuf|^Collective|^Nccl|MEMCPY|^_CopyTo|^_CopyFrom"
)
# Updates as well: ops in which gradients wait for other gradients.
_BEFORE_UPDATE = re.compile(r"^(Resource)?(Conditional)?Accumulator|^Stage$|^Unstage$")
_LABEL = re.compile(r"^(?:\[[^]]*\] )?\S+ = (\w+)\(")  # perhaps after a note on memory


def op_type(node_name: str, label: str) -> str:
    """Returns the type of an op from TensorFlow's trace label, `name = Type(inputs)`.

    >>> op_type("clone_0/MatMul", "clone_0/MatMul = MatMul(x, y)")
    'MatMul'
    >>> op_type("conv/Relu", "[mklcpu 3.2MB 3.2MB] conv/Relu = _FusedConv2D(image, kernel)")
    '_FusedConv2D'
    >>> op_type("RecvTensor", "[32.0KB] edge_7 from /job:ps/task:0 to /job:worker/task:0")
    'RecvTensor'
    """
    found = _LABEL.match(label)
    return found[1] if found else node_name.rpartition("/")[2].partition(":")[0]


def kind_of(type_: str) -> str:
    """Returns the kind, one of `KINDS`, of a type of op.

    >>> [kind_of(each) for each in ("ResourceApplyMomentum", "_Recv", "IteratorGetNext", "Conv2D")]
    ['update', 'transfer', 'input', 'computation']
    """
    if _TRANSFER.search(type_):
        return "transfer"
    if _INPUT.search(type_):
        return "input"
    if changes_variable(type_) or _BEFORE_UPDATE.search(type_):
        return "update"
    return "computation"

"""The kinds of ops of a step: computation, update, transfer, input."""

import re

from model_deploy.op_types import changes_variable

# In the order in which they count where several ops of a device run at the same time.
KINDS = ("computation", "update", "transfer", "input")
WAITING = "waiting"

_INPUT = re.compile(r"Iterator|QueueDequeue|Dequeue|PrefetchDataset|RebatchDataset")
_TRANSFER = re.compile(
    r"^_?(Host|Nccl)?(Send|Recv)|^RecvTensor|^RecvBuf|^Collective|^Nccl|MEMCPY|^_CopyTo|^_CopyFrom"
)
# Beside ops that change a variable: where gradients wait for others.
_BEFORE_UPDATE = re.compile(r"^(Resource)?(Conditional)?Accumulator|^Stage$|^Unstage$")
_LABEL = re.compile(r"^(?:\[[^]]*\] )?\S+ = (\w+)\(")  # before it there may be a note of memory


def op_type(node_name: str, label: str) -> str:
    """The type of an op, of what TensorFlow's traces say of it: `name = Type(inputs)`.

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
    """One of `KINDS` for the type of an op.

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

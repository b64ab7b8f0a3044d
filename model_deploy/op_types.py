"""What ops do, by type: change a variable, get a batch, share memory; the one list for all."""

import re

# Types of ops that assign to a whole variable -> the method of a variable that does the same.
ASSIGNMENTS = {
    "AssignVariableOp": "assign",
    "AssignAddVariableOp": "assign_add",
    "AssignSubVariableOp": "assign_sub",
    "Assign": "assign",
    "AssignAdd": "assign_add",
    "AssignSub": "assign_sub",
}
# Types of ops that take a variable without changing it: `READS` return its value or rows of it,
# `READS_OF_RESOURCES` of resource variables, beside which they are.
READS_OF_RESOURCES = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")
READS = ("Identity", "Gather", "GatherNd", "GatherV2", *READS_OF_RESOURCES)
# Types of ops that get the next element of a `tf.data` iterator.
GET_NEXT = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional")
# Types of ops that get a batch from a `tf.data` iterator, or from TensorFlow 1's queues or
# another device.
GET_BATCH = (
    *GET_NEXT,
    *("MultiDeviceIteratorGetNextFromShard", "Unstage"),
    *("QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"),
)
# Types of ops whose output shares the memory of their input.
VIEWS = ("ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient")
_OTHER_READS = (
    *("DeepCopy", "Shape", "Size", "VariableShape"),
    *("IsVariableInitialized", "VarIsInitializedOp"),
)
_ROWS = re.compile(
    r"(Resource)?Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)$|(Resource)?StridedSliceAssign$"
)
_OPTIMIZERS = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")


def is_assignment(op_type: str) -> bool:
    """Whether ops of a type assign, or add, to a whole variable."""
    return op_type in ASSIGNMENTS


def changes_rows(op_type: str) -> bool:
    """Whether ops of a type change rows or a slice of a variable."""
    return bool(_ROWS.match(op_type))


def changes_variable(op_type: str) -> bool:
    """Whether ops of a type change a variable: assignments, scatters, and optimizers' apply ops.

    >>> [changes_variable(each) for each in ("AssignAdd", "ResourceApplyAdam", "ReadVariableOp")]
    [True, True, False]
    """
    return is_assignment(op_type) or changes_rows(op_type) or bool(_OPTIMIZERS.match(op_type))


def only_reads(op_type: str) -> bool:
    """Whether ops of a type take a variable without changing it."""
    return op_type in READS or op_type in _OTHER_READS

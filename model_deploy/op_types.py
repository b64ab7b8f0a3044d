"""Which ops change a variable, by their type: the one list that everybody asks."""

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
# Types of ops that take a variable and leave it as it is; the first ones give it, or rows of it.
READS = (
    *("Identity", "ReadVariableOp", "Gather", "GatherNd", "GatherV2"),
    *("ResourceGather", "ResourceGatherNd"),
)
_OTHER_READS = (
    *("DeepCopy", "Shape", "Size", "VariableShape"),
    *("IsVariableInitialized", "VarIsInitializedOp"),
)
_ROWS = re.compile(
    r"(Resource)?Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)$|(Resource)?StridedSliceAssign$"
)
_OPTIMIZERS = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")


def is_assignment(op_type: str) -> bool:
    """Whether ops of a type give a whole variable a value, or add to it."""
    return op_type in ASSIGNMENTS


def changes_rows(op_type: str) -> bool:
    """Whether ops of a type change rows, or a slice, of a variable."""
    return bool(_ROWS.match(op_type))


def changes_variable(op_type: str) -> bool:
    """Whether ops of a type change a variable: an assignment, rows, or a rule of an optimizer.

    >>> [changes_variable(each) for each in ("AssignAdd", "ResourceApplyAdam", "ReadVariableOp")]
    [True, True, False]
    """
    return is_assignment(op_type) or changes_rows(op_type) or bool(_OPTIMIZERS.match(op_type))


def only_reads(op_type: str) -> bool:
    """Whether ops of a type that take a variable leave it as it is."""
    return op_type in READS or op_type in _OTHER_READS

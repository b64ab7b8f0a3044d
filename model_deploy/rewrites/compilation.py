"""XLA: marks the ops of clones that are to be compiled, and those that cannot be.

TensorFlow compiles ops whose attribute `_XlaCompile` is true, as many as it can in one *cluster*,
and takes in neighbours unless their attribute is false.  A cluster never mixes two values of
`_XlaScope`: each part of a clone has its own value, and ops that belong to no clone an empty one.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, placement
from model_deploy.config import DeploymentConfig
from model_deploy.feature import Build, ComputeGradients, Feature
from model_deploy.parts import Call, Clone, Part

_COMPILE, _SCOPE = "_XlaCompile", "_XlaScope"

# Types of random ops: XLA draws other numbers from the same seed.
_RANDOM = re.compile("Random|Multinomial|Truncated|Dropout")
# Types of checks, which XLA drops.
_CHECKS = ("Assert", "CheckNumerics", "CheckNumericsV2")
# Types of ops whose value is fed, which clusters cannot contain.
_FED = ("Placeholder", "PlaceholderWithDefault")
# Types of ops that compute nothing in a step, so that it does not matter whether they are compiled.
_NO_WORK = ("Const", "NoOp", "ReadVariableOp", "VariableShape", *_FED)
_OPAQUE = (tf.resource, tf.variant, tf.string)


class Compilation(Feature):
    """Compiles each part of each clone, and its gradients, by XLA, apart from other parts."""

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        if config.xla and not internals.xla_kernels("MatMul", "CPU"):
            raise ValueError(
                "xla must be False with a TensorFlow that was built without XLA, got True"
            )
        return config.xla

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        with graph_walk.new_ops() as ops:
            outputs = build(call)
        _compile(part, ops)
        return outputs

    def around_gradients(
        self, clones: Sequence[Clone], losses: Any, compute: ComputeGradients
    ) -> ComputeGradients:
        parts = [clone.part for clone in clones if clone.part is not None]

        def computed(clone: Clone, terms: Sequence[Any]) -> Any:
            with graph_walk.new_ops() as ops:
                found = compute(clone, terms)
            for part in parts:  # ops of several parts, if gradients were copied
                _compile(part, [op for op in ops if op.name.startswith(part.scope)])
            return found

        return computed

    def finish(self, ops: Sequence[Any]) -> None:
        """Keeps ops that belong to no clone (sums, updates, inputs) out of clusters.

        TensorFlow would otherwise take ops beside a cluster into it.
        """
        for op in ops:
            if _attribute(op, _COMPILE) is None:
                internals.set_attribute(op, _COMPILE, tf.AttrValue(b=False))
                internals.set_attribute(op, _SCOPE, tf.AttrValue(s=b""))

    def set_up_session(self, proto: Any) -> None:
        """Turns off TensorFlow's fusing of matmul, bias and activation: XLA lacks that op."""
        rewriting = proto.graph_options.rewrite_options
        rewriting.remapping = rewriting.OFF

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        return {"compilation": describe_compilation(ops)}


def _compile(part: Part, ops: Sequence[Any]) -> None:
    """Marks the ops of a part for XLA, as far as XLA can compile them, in the part's own scope.

    Initial values are left alone, as they are computed once.  A `tf.xla.experimental.jit_scope` in
    `model_fn` is respected.  A copied op is compiled if its original can be: in a copy, an op in a
    loop of TensorFlow 1 cannot be told from other ops.

    Reads the collections `GLOBAL_VARIABLES` and `LOCAL_VARIABLES`.

    Args:
      part: the part.
      ops: the ops that building the part, or its gradients, added to the graph.
    """
    variables = tf.global_variables() + tf.local_variables()
    initial = graph_walk.ancestors({each.initializer for each in variables}.intersection(ops))
    name = tf.AttrValue(s=(part.scope.rstrip("/") or "clone").encode())
    copies = part.counterparts.ops if part.counterparts is not None else {}
    originals = {copy: original for original, copy in copies.items()}
    for op in ops:
        if op in initial:
            continue
        known = op
        if op.name in originals:
            known = op.graph.get_operation_by_name(originals[op.name])
        is_compiled = _attribute(known, _COMPILE)
        if is_compiled is None:
            is_compiled = _can_be_compiled(op)
        internals.set_attribute(op, _COMPILE, tf.AttrValue(b=is_compiled))
        if is_compiled:
            internals.set_attribute(op, _SCOPE, name)


def describe_compilation(ops: Iterable[Any]) -> str:
    """Returns one line: how many ops of the clones XLA compiles, and which not; '' without XLA.

    Variables, constants, and reads of variables do not count.

    Args:
      ops: all ops of a step, or of a graph.
    """
    compiled = 0
    others: Counter[str] = Counter()
    for op in ops:
        is_compiled = _attribute(op, _COMPILE)
        if is_compiled is None or _attribute(op, _SCOPE) == b"" or _does_no_work(op):
            continue
        if is_compiled:
            compiled += 1
        else:
            others[op.type] += 1
    if not compiled and not others:
        return ""
    count = compiled + others.total()
    if not others:
        return f"xla: all {count:,} ops of the clones are compiled"
    names = [f"{number:,} {name}" for name, number in sorted(others.items())]
    return f"xla: {compiled:,} of {count:,} ops of the clones are compiled, not {', '.join(names)}"


def _can_be_compiled(op: Any) -> bool:
    """Whether XLA has a kernel for an op that gives the same values as TensorFlow's."""
    if op.type in _CHECKS or op.type in _FED or _RANDOM.search(op.type):
        return False
    tensors = [*op.inputs, *op.outputs]
    if any(t.dtype.base_dtype in _OPAQUE or internals.is_reference(t) for t in tensors):
        return False
    # For the gradient of a loop of TensorFlow 1, XLA needs the maximum number of iterations.
    if internals.in_old_control_flow(op) or any(attr.type == "func" for attr in op.op_def.attr):
        return False
    device_type = tf.DeviceSpec.from_string(op.device).device_type or "CPU"
    return any(
        all(_has_types(op, name, types) for name, types in kernel.items())
        for kernel in internals.xla_kernels(op.type, device_type)
    )


def _has_types(op: Any, name: str, types: frozenset[tf.DType]) -> bool:
    value = op.get_attr(name)
    return all(each in types for each in (value if isinstance(value, list) else [value]))


def _does_no_work(op: Any) -> bool:
    """Whether an op is a variable, a constant, or a read of a variable."""
    if op.type in _NO_WORK or placement.is_variable_op(op):
        return True
    return op.type == "Identity" and internals.is_reference(op.inputs[0])


def _attribute(op: Any, name: str) -> Any:
    """Returns an attribute of an op; None if the op lacks it."""
    try:
        return op.get_attr(name)
    except ValueError:
        return None

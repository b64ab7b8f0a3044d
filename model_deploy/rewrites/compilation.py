"""XLA: which ops of a clone are to be compiled, and which cannot be.

TensorFlow compiles ops whose attribute `_XlaCompile` is true, as many as it can in one *cluster*,
and takes their neighbours into it unless theirs is false.  No cluster has ops with two values of
`_XlaScope`: each part of a clone has its own.  What belongs to no clone has an empty one.
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

# XLA draws other numbers from the same seed.
_RANDOM = re.compile("Random|Multinomial|Truncated|Dropout")
# XLA leaves out what only checks.
_CHECKS = ("Assert", "CheckNumerics", "CheckNumericsV2")
# What a caller gives in place of these is no part of a cluster.
_FED = ("Placeholder", "PlaceholderWithDefault")
# They compute nothing in a step, so nobody misses that they are not compiled.
_NO_WORK = ("Const", "NoOp", "ReadVariableOp", "VariableShape", *_FED)
_OPAQUE = (tf.resource, tf.variant, tf.string)


class Compilation(Feature):
    """Each part of each clone, and its gradients, is compiled apart from all others."""

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
            for part in parts:  # of several, if gradients of copies were copied
                _compile(part, [op for op in ops if op.name.startswith(part.scope)])
            return found

        return computed

    def finish(self, ops: Sequence[Any]) -> None:
        """Keeps all ops that belong to no clone out of clusters, such as sums, updates and inputs.

        Otherwise TensorFlow takes those that are beside a cluster into it.
        """
        for op in ops:
            if _attribute(op, _COMPILE) is None:
                internals.set_attribute(op, _COMPILE, tf.AttrValue(b=False))
                internals.set_attribute(op, _SCOPE, tf.AttrValue(s=b""))

    def set_up_session(self, proto: Any) -> None:
        """Leaves a product, its bias and its activation to XLA, which does not know them as one."""
        rewriting = proto.graph_options.rewrite_options
        rewriting.remapping = rewriting.OFF

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        return {"compilation": describe_compilation(ops)}


def _compile(part: Part, ops: Sequence[Any]) -> None:
    """Lets TensorFlow compile what it can of a part of a clone, apart from all other parts.

    Initial values stay as they are: they are computed just once.  Where `model_fn` itself asks for
    XLA, or not, by `tf.xla.experimental.jit_scope`, that is kept.  An op in a loop of TensorFlow 1
    looks like any other one in a copy: there the op that it stands for decides.

    Reads the collections `GLOBAL_VARIABLES` and `LOCAL_VARIABLES`.

    Args:
      part: the part.
      ops: those that building it, or its gradients, have added to the graph.
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
    """In a line, how many ops of the clones XLA compiles, and which it does not; '' without XLA.

    Variables, constants, and reads of variables do not count.

    Args:
      ops: those of a step, or of a graph.
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
    """Whether XLA has a kernel for an op and gives the values that TensorFlow gives."""
    if op.type in _CHECKS or op.type in _FED or _RANDOM.search(op.type):
        return False
    tensors = [*op.inputs, *op.outputs]
    if any(t.dtype.base_dtype in _OPAQUE or internals.is_reference(t) for t in tensors):
        return False
    # For the gradient of a loop of TensorFlow 1, XLA wants to know how long the loop can be.
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
    if op.type in _NO_WORK or placement.is_variable_op(op):
        return True
    return op.type == "Identity" and internals.is_reference(op.inputs[0])


def _attribute(op: Any, name: str) -> Any:
    """An attribute of an op; None where it has none of that name."""
    try:
        return op.get_attr(name)
    except ValueError:
        return None

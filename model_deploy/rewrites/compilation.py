"""XLA: which ops of a clone are to be compiled, and which cannot be.

TensorFlow compiles ops whose attribute `_XlaCompile` is true, as many as it can in one *cluster*,
and takes their neighbours into it unless theirs is false.  No cluster has ops with two values of
`_XlaScope`: each part of a clone has its own.  What belongs to no clone has an empty one.
"""

import copy
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, placement
from model_deploy.config import DeploymentConfig

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


def check_xla(config: DeploymentConfig) -> None:
    """Refuses `config.xla` where there is no XLA.

    Raises:
      ValueError: if this TensorFlow was built without it.
    """
    if config.xla and not internals.xla_kernels("MatMul", "CPU"):
        raise ValueError("xla must be False with a TensorFlow that was built without XLA, got True")


def session_config(config: DeploymentConfig, base: Any = None) -> Any:
    """What sessions of compiled clones need for all of it to be compiled.

    Otherwise TensorFlow first makes one op of a product, its bias and its activation, which XLA
    does not know.

    Args:
      config: the deployment; without `xla` nothing is added.
      base: a `tf.ConfigProto` to start from; it is not changed.

    Returns:
      A `tf.ConfigProto`.
    """
    proto = tf.ConfigProto() if base is None else copy.deepcopy(base)
    if config.xla:
        rewriting = proto.graph_options.rewrite_options
        rewriting.remapping = rewriting.OFF
    return proto


def compile_clone(
    config: DeploymentConfig,
    scope: str,
    ops: Iterable[Any],
    copies: Mapping[str, str] | None = None,
) -> None:
    """Lets TensorFlow compile what it can of a part of a clone, apart from all other parts.

    Initial values stay as they are: they are computed just once.  What `model_fn` says itself, by
    `tf.xla.experimental.jit_scope`, is kept.

    Reads the collections `GLOBAL_VARIABLES` and `LOCAL_VARIABLES`.

    Args:
      config: the deployment; without `xla` nothing is done.
      scope: name scope of the part.
      ops: what building it, or its gradients, has added to the graph.
      copies: names of its ops that are copies, by that of the op of which they are; an op in a
        loop of TensorFlow 1 looks like any other one in a copy.
    """
    if not config.xla:
        return
    ops = list(ops)
    variables = tf.global_variables() + tf.local_variables()
    initial = graph_walk.ancestors({each.initializer for each in variables}.intersection(ops))
    name = tf.AttrValue(s=(scope.rstrip("/") or "clone").encode())
    originals = {copy: original for original, copy in (copies or {}).items()}
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


def leave_the_rest(config: DeploymentConfig, ops: Iterable[Any]) -> None:
    """Keeps all ops that belong to no clone out of clusters, such as sums, updates and inputs.

    Otherwise TensorFlow takes those that are beside a cluster into it.

    Args:
      config: the deployment; without `xla` nothing is done.
      ops: the ops of the deployment.
    """
    if config.xla:
        for op in ops:
            if _attribute(op, _COMPILE) is None:
                internals.set_attribute(op, _COMPILE, tf.AttrValue(b=False))
                internals.set_attribute(op, _SCOPE, tf.AttrValue(s=b""))


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

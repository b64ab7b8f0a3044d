"""Which ops of a step must run once only, and which variables a step changes."""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.op_types import changes_variable, only_reads
from model_deploy.placement import is_variable_op

# Stateful types of ops that may run twice in a step: they make or hand on what lasts no longer than
# the step, find what is there already, look at values, or exchange them with other processes.
_REPEATED = re.compile(
    r"Assert$|Print(V2)?$|CheckNumerics|Collective|Nccl|VarHandleOp$|.*HashTable(V2|OfTensorsV2)?$"
    r"|LookupTable(Find|Size|Export)(V2)?$|.*Iterator(V2|FromStringHandle(V2)?)?$|OneShotIterator$"
    r"|.*Queue(V2)?$|TensorArray|Stack|TemporaryVariable$|DestroyTemporaryVariable$|Xla"
    r"|EnsureShape$|Variable(V2)?$"
)
# Types of ops that change what no snapshot of variables has.
_REFUSED = re.compile(
    r"LookupTable(Insert|Import|Remove)|.*Accumulator|Barrier|Queue(Enqueue|Close)"
    r"|Write.*Summary"
)
# Types of ops that change the variable of a `tf.random.Generator`.
_OF_GENERATORS = re.compile(r"Rng|Stateful(?!PartitionedCall)")
_CALLS_OF_PYTHON = ("PyFunc", "EagerPyFunc")
# Types of ops that hand on a variable.
_HANDED_ON = ("Identity", "Enter", "RefEnter", "Switch", "RefSwitch", "RefIdentity")


class StepOps(NamedTuple):
    """The ops of a step, as its second making needs to know them.

    Attributes:
      needed: all ops of the step.
      once: the ops that must run once: inputs, clocks, random numbers.
      changed: the ops of the variables that the step changes.
    """

    needed: set[Any]
    once: list[Any]
    changed: list[Any]


def ops_of_step(ends: Sequence[Any]) -> StepOps:
    """Sorts the ops of a step.

    An op is one of those that must run once if TensorFlow calls it stateful and it is none of a
    variable, an exchange, or another that may run twice.  A call of Python is such an op if it
    depends on no variable, as in inputs, and else counts as a function of its arguments.

    Args:
      ends: the ops that make the step when they are fetched.

    Raises:
      ValueError: naming an op that can neither run twice nor be left out the second time.
    """
    needed = graph_walk.ancestors(ends, control_inputs=True)
    ordered = [op for op in ends[0].graph.get_operations() if op in needed]
    bodies = _Bodies(ends[0].graph)
    once: set[Any] = set()
    changed: dict[Any, None] = {}
    changes = set()
    for op in ordered:
        if is_variable_op(op) or only_reads(op.type):
            continue
        variables = _variables_taken(op)
        calls = graph_walk.calls_functions(op)
        types = bodies.types(op) if calls else {op.type}
        if variables and (not calls or any(map(_changes, types))):
            changed.update(dict.fromkeys(variables))
            changes.add(op)
        if _must_run_once(op, types, variables):
            once.add(op)
    once |= _takers_of_unfed(once, ordered)
    _check(once, changes)
    return StepOps(needed, [op for op in ordered if op in once], list(changed))


def _must_run_once(op: Any, types: set[str], variables: Sequence[Any]) -> bool:
    """Whether an op must run once; `types` are those of the ops that it runs."""
    refused = sorted(each for each in types if _REFUSED.match(each))
    if refused:
        raise _refusal(op, f"{refused[0]} changes what is no variable")
    own = {each for each in types if internals.is_stateful(each) and not _may_repeat(each)}
    if not graph_walk.calls_functions(op):
        own = set() if variables else own
    if not own:
        return False
    if own <= set(_CALLS_OF_PYTHON):
        return not any(is_variable_op(each) for each in graph_walk.ancestors([op]))
    if variables:
        raise _refusal(op, f"{min(own)} is in a function that takes variables")
    return True


def _changes(op_type: str) -> bool:
    """Whether ops of a type, in a function that takes variables, may change one."""
    return changes_variable(op_type) or bool(_OF_GENERATORS.match(op_type))


def _may_repeat(op_type: str) -> bool:
    return bool(
        _REPEATED.match(op_type)
        or only_reads(op_type)
        or _changes(op_type)
        or op_type in graph_walk.CALLERS
    )


def _takers_of_unfed(once: set[Any], ordered: Sequence[Any]) -> set[Any]:
    """Returns the ops after `once` ones that take what no session can feed, such as variants."""
    found: set[Any] = set()
    for op in ordered:
        for tensor in op.inputs:
            if tensor.op in once | found and tensor.dtype in (tf.resource, tf.variant):
                found.add(op)
    return found


def _check(once: set[Any], changes: set[Any]) -> None:
    """Checks that ops that run once can be run before the step."""
    for op in once:
        if internals.in_old_control_flow(op):
            raise _refusal(op, f"{op.type} is in a loop or condition of TensorFlow 1")
    late = graph_walk.ancestors(once, control_inputs=True) & changes
    if late:
        first = min(late, key=lambda op: str(op.name))
        raise _refusal(first, "inputs, clocks or random numbers of the step wait for it")


def _variables_taken(op: Any) -> list[Any]:
    """Returns the ops of the variables that an op takes by reference or handle."""
    found = []
    for tensor in op.inputs:
        if tensor.dtype == tf.resource or internals.is_reference(tensor):
            source = tensor.op
            while source.type in _HANDED_ON and source.inputs:
                source = source.inputs[0].op
            if is_variable_op(source):
                found.append(source)
    return [] if op.type in _HANDED_ON else found


def _refusal(op: Any, reason: str) -> ValueError:
    return ValueError(
        "verify_every_n_steps must be None for a step that cannot be made twice, got op "
        f"{op.name}: {reason}"
    )


class _Bodies:
    """The types of ops in the functions of a graph."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    @functools.cached_property
    def _functions(self) -> dict[str, Any]:
        library = self._graph.as_graph_def().library.function
        return {each.signature.name: each for each in library}

    def types(self, op: Any) -> set[str]:
        """Returns the types of the ops that a call of functions runs."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = list(_called(op.node_def))
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self._functions:
                continue
            seen.add(name)
            for node in self._functions[name].node_def:
                found.add(node.op)
                waiting.extend(_called(node))
        return found


def _called(node: Any) -> Iterator[str]:
    """Yields the names of the functions that a node calls."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (each.name for each in value.list.func)

"""`Memory`: values of variables that outlive a graph, its session and its server."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.all_reduce import sendable_variables
from model_deploy.cluster import run_unless_refused

# Bytes of values that are loaded by one run: they travel in a message of 2 GiB at most.
_PACK_BYTES = 256 << 20


class Memory:
    """The values of the variables that this process keeps between two worlds.

    Attributes:
      values: by variable name an array of the variable's shape and dtype.
    """

    def __init__(self) -> None:
        self.values: dict[str, np.ndarray[Any, Any]] = {}

    @property
    def step(self) -> int | None:
        """The global step of the values; None without values."""
        step = self.values.get(tf.GraphKeys.GLOBAL_STEP)
        return None if step is None else int(step)

    def put_into(self, session: Any) -> None:
        """Loads known values into the variables of the default graph.

        Many at a time: TensorFlow prepares a graph for each run, which takes it some 10 ms.
        """
        known = [each for each in sendable_variables() if each.op.name in self.values]
        sizes = [self.values[each.op.name].nbytes for each in known]
        for first, last in _packs(sizes):
            pack = known[first:last]
            feeds = {each.initializer.inputs[1]: self.values[each.op.name] for each in pack}
            loads = [each.initializer for each in pack]
            run_unless_refused(functools.partial(session.run, loads, feeds))

    def reader(self) -> Callable[[str, Any], None]:
        """Returns a function (address, `tf.ConfigProto`) that reads and frees the variables.

        Adds ops to the default graph.  Variables must be freed, as they outlive sessions, and the
        server outlives its world.  (`tf.Session.reset` would wait for lost servers.)
        """
        graph = tf.get_default_graph()
        reads = {v.op.name: v.read_value() for v in sendable_variables()}
        free = [
            tf.raw_ops.DestroyResourceOp(resource=variable.handle)
            for variable in [*tf.global_variables(), *tf.local_variables()]
            if internals.is_resource_variable(variable)
        ]

        def take(target: str, config: Any) -> None:
            with tf.Session(target, graph, config) as session:
                self.values = run_unless_refused(lambda: session.run(reads))
                run_unless_refused(lambda: session.run(free))

        return take


def _packs(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields begin and end of stretches of at most `_PACK_BYTES`, or of a single larger value."""
    begin = total = 0
    for number, size in enumerate(sizes):
        if number > begin and total + size > _PACK_BYTES:
            yield begin, number
            begin, total = number, 0
        total += size
    if sizes:
        yield begin, len(sizes)


class CreatedHook(tf.train.SessionRunHook):
    """Calls a function with each newly created session.

    Args:
      created: the function.
    """

    def __init__(self, created: Callable[[Any], object]) -> None:
        self._created = created

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Calls the function."""
        del coord
        self._created(session)

"""`InputWork`: how long a pipeline works for a batch, also where nobody waits for it.

A worker that waits for others finds its next batch ready: what it would take by itself does not
show in its steps.  And of workers whose inputs are equally fast one always comes last, and
alone seems to wait for its input.  So workers are compared by what their inputs take, as
`tf.data` itself measures it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals

_GET_NEXT = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional")


class InputWork:
    """Adds up the work of pipelines; adds ops to the default graph.

    Args:
      ops: ops of a step, of which those count that get the next element of an iterator.
    """

    def __init__(self, ops: Iterable[Any]) -> None:
        iterators = {op.inputs[0].name: op.inputs[0] for op in ops if op.type in _GET_NEXT}
        self._models = []
        for iterator in iterators.values():
            with tf.device(iterator.device):
                self._models.append(tf.raw_ops.IteratorGetModelProto(iterator=iterator))
        self._nodes: list[dict[int, internals.PipelineNode]] = [{} for _ in self._models]
        self._secs = 0.0

    def secs(self, session: Any) -> float:
        """Returns the seconds that the slowest pipeline has worked so far: 0 without any.

        Args:
          session: the session of the steps.

        Raises:
          tf.errors.OpError: as `session.run`.
        """
        if not self._models:
            return 0.0
        try:
            models = session.run(self._models)
        except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):
            return self._secs  # not initialized yet, or a pipeline that is not tuned
        nodes = [internals.pipeline_nodes(model) for model in models]
        self._secs += max(map(work_between, self._nodes, nodes))
        self._nodes = nodes
        return self._secs


def work_between(
    before: Mapping[int, internals.PipelineNode], after: Mapping[int, internals.PipelineNode]
) -> float:
    """Returns the seconds that the busiest thread of a pipeline has worked between two looks.

    A stage without threads of its own works in that of the stage that takes from it.

    Args:
      before: the stages at the first look, by name; {} for the start.
      after: the stages at the second one, each after those that it takes from.
    """
    threads: dict[int, float] = {}
    for name, node in after.items():
        since = before[name].busy_secs if name in before else 0.0
        others = [each for each in node.inputs if each in after and not after[each].has_thread]
        busy = (node.busy_secs - since) / node.parallelism
        threads[name] = busy + sum(threads.get(each, 0.0) for each in others)
    return max(threads.values(), default=0.0)

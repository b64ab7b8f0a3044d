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
from model_deploy.op_types import GET_NEXT

# TensorFlow 2.16 tells nobody what its pipelines take: there only the wait for a batch counts.
HAS_MODELS = hasattr(tf.raw_ops, "IteratorGetModelProto")
_Nodes = Mapping[int, internals.PipelineNode]


class InputWork:
    """Adds up the work of pipelines; adds ops to the default graph.

    Args:
      ops: ops of a step, of which those count that get the next element of an iterator.
    """

    def __init__(self, ops: Iterable[Any]) -> None:
        iterators = {op.inputs[0].name: op.inputs[0] for op in ops if op.type in GET_NEXT}
        self._models = []
        for iterator in iterators.values() if HAS_MODELS else ():
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
        if all(_taken(*each) for each in zip(self._nodes, nodes, strict=True)):
            self._secs += max(map(work_between, self._nodes, nodes))
            self._nodes = nodes
        return self._secs


def _taken(before: _Nodes, after: _Nodes) -> int:
    """Returns how many batches were taken between two looks."""
    if not after:
        return 0
    root = min(after)
    return after[root].elements - (before[root].elements if root in before else 0)


def work_between(before: _Nodes, after: _Nodes) -> float:
    """Returns how long the busiest thread of a pipeline works for what was taken between two looks.

    Not how long it has worked: it may have filled a buffer meanwhile.  A stage without threads of
    its own works in that of the stage that takes from it.

    Args:
      before: the stages at the first look, by name; {} for the start.
      after: the stages at the second one, each after those that it takes from; the first name is
        that of the last stage.
    """
    none = internals.PipelineNode(0.0, 0, 0, 1.0, False, ())
    threads: dict[int, float] = {}  # seconds for each element that a stage makes
    works = [0.0]
    for name, node in after.items():
        first = before.get(name, none)
        made = node.made - first.made
        threads[name] = (node.busy_secs - first.busy_secs) / node.parallelism / made if made else 0
        for each in node.inputs:
            if each in after and not after[each].has_thread and node.made:
                threads[name] += threads[each] * after[each].made / node.made
        if node.has_thread or name == min(after):
            of_batch = node.elements / after[min(after)].elements
            works.append(threads[name] * of_batch * _taken(before, after))
    return max(works)

"""`Verification`: makes a step twice from the same values and batches, and compares the results."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.all_reduce import CopiesFingerprints
from model_deploy.deployment import DeployedModel
from model_deploy.verification.checks import check_can_verify
from model_deploy.verification.clone_gradients import CloneGradients
from model_deploy.verification.corruption import CorruptionError, describe, describe_copies
from model_deploy.verification.kept_values import KeptValues
from model_deploy.verification.once import OnceOps
from model_deploy.verification.step_ops import ops_of_step

# So often in a row the run goes back from the same step: then it is no accident.
_MOST_IN_A_ROW = 3


class Verification:
    """Steps that are made twice; adds ops to the default graph and changes control inputs.

    The inputs of the step are read once.  Both makings get their values, from the same values of
    all variables that the step changes, local ones included, so that both count as one.  They
    are runs of the same fetches and feeds, which TensorFlow rewrites alike.

    Args:
      model: what `deploy` returned, with an optimizer.
      report: the tensor that makes a step, of any shape.
      every: numbers of steps: each step that is a multiple of one of them is verified.
      last_step: a step that is verified as well, or None.

    Raises:
      ValueError: for a way to train, or a step, that cannot be made twice.
    """

    def __init__(
        self, model: DeployedModel, report: Any, every: Sequence[int], last_step: int | None = None
    ) -> None:
        check_can_verify(model)
        self._report = report
        self._every = list(every)
        self._last_step = last_step
        self._gradients = CloneGradients(model.clones, report)
        self._step = ops_of_step([each.op for each in (report, *self._gradients.tensors)])
        self._once = OnceOps(self._step)
        self._kept = KeptValues(self._step.changed)
        self._copies: CopiesFingerprints | None = None
        if model.config is not None and model.owns_variables:
            self._copies = CopiesFingerprints(model.config)
        self._checked = set(self._step.needed)
        self._failed_at, self._in_a_row = 0, 0

    def due(self, step: int) -> bool:
        """Whether a step is verified."""
        return step == self._last_step or any(step % each == 0 for each in self._every)

    def make(
        self,
        session: Any,
        step: int,
        fetches: dict[str, Any],
        feeds: dict[Any, Any],
        *,
        options: Any = None,
        metadata: Any = None,
    ) -> dict[str, Any]:
        """Makes a step twice; all replicas that make steps together must do so in the same steps.

        Args:
          session: the session.
          step: number of the step.
          fetches: `report`, and what hooks want, tensors of any shapes.
          feeds: what hooks feed.
          options: a `tf.RunOptions`, or None.
          metadata: a `tf.RunMetadata`, or None.

        Returns:
          The values of `fetches`.

        Raises:
          CorruptionError: if the makings differ, in this process or in another replica.
          ValueError: if a hook fetches what changes a variable, or reads inputs, by itself.
        """
        self._check_hooks(fetches)
        feeds = self._once.values(session, feeds)
        session.run(self._kept.keep)
        gradients = self._gradients
        both = {"step": fetches, "gradients": gradients.tensors, "added": gradients.added}
        first = session.run(both, feeds, options, metadata)
        session.run(self._kept.swap)
        second = session.run(both, feeds, options, metadata)
        reports = [made["step"]["report"].tobytes() for made in (first, second)]
        found = describe(
            gradients.differing(first["gradients"], second["gradients"]),
            self._kept.differences(session),
            loss_differs=reports[0] != reports[1],
        )
        found = self._with_copies(session, found)
        if found:
            self._failed_at, self._in_a_row = max(step, self._failed_at), self._in_a_row + 1
            raise CorruptionError(step, found)
        if step >= self._failed_at:
            self._in_a_row = 0
        values: dict[str, Any] = second["step"]
        return values

    @property
    def may_go_back(self) -> bool:
        """Whether the last difference may be an accident, as opposed to one after another."""
        return self._in_a_row < _MOST_IN_A_ROW

    def _with_copies(self, session: Any, found: list[str]) -> list[str]:
        """Returns what was found here and, with all-reduce, by comparing with all other clones."""
        if self._copies is None:
            return found
        found_by, fingerprints = self._copies.gather(session, bool(found))
        if found:
            return found
        if found_by:
            return [f"found by {' and '.join(found_by)}"]
        return describe_copies(self._copies.names, self._copies.places, fingerprints.tolist())

    def _check_hooks(self, fetches: dict[str, Any]) -> None:
        wanted = [getattr(each, "op", each) for each in tf.nest.flatten(fetches)]
        ends = [op for op in wanted if isinstance(op, tf.Operation) and op not in self._checked]
        if not ends:
            return
        self._checked.update(ends)
        others = graph_walk.ancestors(ends, control_inputs=True, known=self._step.needed)
        more = ops_of_step(ends)
        reads = [op.name for op in more.once if op in others]
        changes = [op.name for op in more.changed if op not in self._step.changed]
        again = self._once.runs_one(list(others))
        if reads or changes or again is not None:
            name = (reads or changes or [getattr(again, "name", "")])[0]
            raise ValueError(
                "hooks must fetch, in steps that verify_every_n_steps makes twice, what changes "
                f"nothing by itself, got a fetch that needs {name}"
            )

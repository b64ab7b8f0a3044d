"""`Copies`: `DeploymentConfig(copy_clones=True)`, clones that are copies of the first."""

from collections.abc import Sequence
from typing import Any

from model_deploy import placement
from model_deploy.accumulation import PartGradients
from model_deploy.config import DeploymentConfig
from model_deploy.copying.model import CopiedModel
from model_deploy.feature import Build, ComputeGradients, Feature
from model_deploy.losses import Losses
from model_deploy.parts import Call, Clone, Part


class Copies(Feature):
    """Builds the first part by `model_fn`; copies it, and its gradients, for all other parts."""

    _model: CopiedModel

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        return config.copy_clones and config.batches_per_step > 1

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        """Builds the first part, or copies it for another part and notes its `counterparts`."""
        if part.number == 0:
            self._model = CopiedModel(call)
            return self._model.build(build, part.scope)
        outputs, part.counterparts = self._model.copy(part)
        return outputs

    def around_gradients(
        self, clones: Sequence[Clone], losses: Losses, compute: ComputeGradients
    ) -> ComputeGradients:
        """Copies the first clone's gradients for clones whose losses are copies of its losses."""
        copies: dict[int, PartGradients] = {}
        own = {id(clone): loss for clone, loss in zip(clones, losses.clones, strict=True)}

        def computed_or_copied(clone: Clone, terms: Sequence[Any]) -> PartGradients:
            is_own = len(terms) == 1 and terms[0] is own[id(clone)]
            if is_own and id(clone) in copies:
                return copies[id(clone)]
            found = compute(clone, terms)
            if is_own and clone is clones[0]:
                copies.update(self._copied(clones, losses, found))
            return found

        return computed_or_copied

    def _copied(
        self, clones: Sequence[Clone], losses: Losses, original: PartGradients
    ) -> dict[int, PartGradients]:
        """Returns copied gradients by `id` of the clone, where the loss is a copy as well."""
        if any(placement.is_variable_op(op) for op in original.ops):
            return {}
        first = losses.clones[0]
        copied = [
            (clone, clone.part.counterparts, loss)
            for clone, loss in zip(clones, losses.clones, strict=True)
            if clone.part is not None and self in clone.part.features
            if clone.part.counterparts is not None and loss is not None
            if clone.part.counterparts.match(first, loss)
        ]
        values, variables = zip(*original.gradients, strict=True)
        every = self._model.copy_gradients(
            original.ops, list(values), [twins for _, twins, _ in copied]
        )
        found = {}
        for (clone, twins, loss), gradients in zip(copied, every, strict=True):
            ops = [twins.op(op) for op in original.ops if op.name in twins.ops]
            pairs = list(zip(gradients, variables, strict=True))
            found[id(clone)] = PartGradients(clone, [loss], pairs, ops)
        return found

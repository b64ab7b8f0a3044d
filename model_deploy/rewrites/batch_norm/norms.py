"""`BatchNorms`: synchronizes the batch norms of clones, and joins their sums over all clones."""

from collections.abc import Collection, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import internals
from model_deploy.collectives import Collectives, collectives_of
from model_deploy.config import DeploymentConfig
from model_deploy.feature import Build, ComputeGradients, Feature
from model_deploy.internals import NewOp
from model_deploy.parts import Call, Clone, Part
from model_deploy.rewrites.batch_norm import fused
from model_deploy.rewrites.batch_norm.lookup import computing_gradients, note_norms
from model_deploy.rewrites.batch_norm.moments import take_moments
from model_deploy.rewrites.batch_norm.parts import Norm, PartNorms


class BatchNorms(Feature):
    """Synchronizes batch norms, with `sync_batch_norm` and several clones.

    Args:
      config: the deployment.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        super().__init__(config)
        self._parts: list[PartNorms] = []
        self._joined: set[str] = set()

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        return config.batch_norm_clones > 1

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        """Synchronizes the batch norms that the part builds.

        Raises:
          ValueError: naming a batch norm that cannot be synchronized.
        """
        own = PartNorms()
        self._parts.append(own)

        def rule(new: NewOp) -> Any:
            if internals.normalizes_examples():
                return None
            if fused.is_in_training(new):
                return fused.normalize(own, new)
            if _is_moment_of_batch(new):
                own.unknown.append(new.name.removesuffix("/variance"))
            return None

        def moments(x: Any, axes: Any, keep_dims: bool) -> tuple[Any, Any]:
            return take_moments(own, x, axes, keep_dims)

        with internals.making_ops_by(rule), internals.taking_batch_moments_by(moments):
            outputs = build(call)
        if part.counterparts is not None:
            own.norms = [norm.copy(part.counterparts) for norm in self._parts[0].norms]
            own.counterparts = part.counterparts
        note_norms(own)
        if own.unknown and own is self._parts[0]:
            logging.warning(
                "sync_batch_norm leaves these moments to each clone, which tf.nn.moments takes "
                "and no known layer: %s",
                ", ".join(own.unknown),
            )
        return outputs

    def around_gradients(
        self, clones: Sequence[Clone], losses: Any, compute: ComputeGradients
    ) -> ComputeGradients:
        """Allows gradients of synchronized batch norms, whose sums `join` joins."""

        def computed(clone: Clone, terms: Sequence[Any]) -> Any:
            with computing_gradients():
                return compute(clone, terms)

        return computed

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        over = f"{self.config.batch_norm_clones} clones"
        if self.config.batch_norm_clones > self.config.num_clones:
            over += f" of {self.config.num_replicas} replicas"
        num_layers = len(self._parts[0].norms) if self._parts else 0
        return {
            "batch_norm": "sync_batch_norm: mean and variance of "
            f"{num_layers} batch norms are over {over}"
        }

    def join(self, collectives: Collectives | None = None) -> None:
        """Replaces each clone's own value by the sum over clones, where not done before.

        Collective ops follow the order in which parts of clones run: part after part, and in each
        part first the sums of the forward pass, then those of gradients.

        Args:
          collectives: the collective ops of the step, with all-reduce.

        Raises:
          ValueError: if the batch norms, or their gradients, differ between clones.
        """
        if not any(part.norms for part in self._parts):
            return
        if self.config.all_reduce and collectives is None:
            collectives = collectives_of(self.config, "batch norm")
        steps = self.config.accumulate_steps
        later = []
        for i in range(steps):
            parts = self._parts[i::steps]
            self._join_moments(parts, collectives)
            gradients = [
                {(place, number): op for place, number, op in part.all_gradients(self._parts[0])}
                for part in parts
            ]
            _check_gradients(gradients, parts[0])
            for key in gradients[0]:
                ops = [of_part[key] for of_part in gradients]
                if key[1] == 0:
                    self._join_ops(ops, collectives)
                else:  # gradients of losses that count once, after all parts
                    later.append(ops)
        for ops in later:
            self._join_ops(ops, collectives)

    def _join_moments(self, parts: list[PartNorms], collectives: Collectives | None) -> None:
        for place in range(max(len(part.norms) for part in parts)):
            norms = [part.norms[place] if place < len(part.norms) else None for part in parts]
            _check_alike(norms)
            for ops in zip(*(norm.sums for norm in norms if norm is not None), strict=True):
                self._join_ops(list(ops), collectives, together=True)

    def _join_ops(
        self, ops: list[Any], collectives: Collectives | None, *, together: bool = False
    ) -> None:
        """Connects the consumers of the clones' own values to the sum over clones.

        Args:
          ops: for each clone the op that takes its own value.
          collectives: see `join`.
          together: see `Collectives.together`.
        """
        first = ops[0]
        if first.name in self._joined:
            return
        self._joined.add(first.name)
        values = [op.inputs[0] for op in ops]
        graph = first.graph
        with (
            tf.name_scope(f"{first.name}/"),
            tf.control_dependencies(None),
            graph.colocate_with(None, ignore_existing=True),
            tf.device(None),
        ):
            if collectives is not None:
                label = f"batch norm {len(self._joined)} {values[0].shape}"
                sums = collectives.sum(values, label)
                sums = collectives.together(sums) if together else sums
            else:
                with tf.device(first.device):
                    sums = [tf.add_n(values, name="sum")] * len(values)
        for op, total in zip(ops, sums, strict=True):
            internals.replace_input(op, 0, total)


def _is_moment_of_batch(new: NewOp) -> bool:
    """Whether an op is the variance in `tf.nn.moments` over the batch axis and others."""
    if new.type != "Mean" or not new.name.endswith("/variance"):
        return False
    axes = tf.get_static_value(new.inputs[1])
    rank = new.inputs[0].shape.rank
    is_of_moments = new.name.split("/")[-2].startswith("moments")
    return is_of_moments and axes is not None and rank != 1 and 0 in axes.reshape(-1).tolist()


def _check_alike(norms: list[Norm | None]) -> None:
    """Checks that the clones' norms at one place have the same number of channels."""
    found = [None if norm is None else norm.channels for norm in norms]
    if len(set(found)) > 1:
        names = [norm.name if norm else "none" for norm in norms]
        raise ValueError(
            "sync_batch_norm needs the same batch norms in each clone, got "
            + ", ".join(f"{name} of {n} channels" for name, n in zip(names, found, strict=True))
        )


def _check_gradients(gradients: list[dict[tuple[int, int], Any]], part: PartNorms) -> None:
    """Checks that all clones have the same gradients of norms."""
    for keys in gradients[1:]:
        if other := set(keys) ^ set(gradients[0]):
            place, _ = min(other)
            raise ValueError(
                "with sync_batch_norm a loss must depend on a batch norm in each clone or in "
                f"none, got one that does not for {part.norms[place].name}"
            )

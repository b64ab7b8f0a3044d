"""`BatchNorms`: makes the batch norms of clones, and joins what they sum over all clones."""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import internals
from model_deploy.collectives import Collectives, collectives_of
from model_deploy.config import DeploymentConfig
from model_deploy.copying import Twins
from model_deploy.internals import NewOp
from model_deploy.rewrites.batch_norm import fused
from model_deploy.rewrites.batch_norm.lookup import note_norms
from model_deploy.rewrites.batch_norm.moments import take_moments
from model_deploy.rewrites.batch_norm.parts import Norm, Part


class BatchNorms:
    """The batch norms of the clones that one call of `create_clones` makes.

    Args:
      config: the deployment.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self._config = config
        self._parts: list[Part] = []
        self._joined: set[str] = set()

    @property
    def num_layers(self) -> int:
        """How many batch norms each clone has."""
        return len(self._parts[0].norms) if self._parts else 0

    @contextlib.contextmanager
    def of_next_part(self) -> Iterator[None]:
        """Synchronizes the batch norms that are built in a `with` block: those of one part.

        Raises:
          ValueError: for one that cannot be synchronized, naming it.
        """
        part = Part()
        self._parts.append(part)
        if self._config.batch_norm_clones == 1:
            yield
            return

        def rule(new: NewOp) -> Any:
            if internals.normalizes_examples():
                return None
            if fused.is_in_training(new):
                return fused.normalize(part, new)
            if _is_moment_of_batch(new):
                part.unknown.append(new.name.removesuffix("/variance"))
            return None

        def moments(x: Any, axes: Any, keep_dims: bool) -> tuple[Any, Any]:
            return take_moments(part, x, axes, keep_dims)

        with internals.making_ops_by(rule), internals.taking_batch_moments_by(moments):
            yield
        note_norms(part)
        if part.unknown and part is self._parts[0]:
            logging.warning(
                "sync_batch_norm leaves these moments to each clone, which tf.nn.moments takes "
                "and no known layer: %s",
                ", ".join(part.unknown),
            )

    def copied(self, twins: Twins) -> None:
        """Notes that the newest part is a copy of the first one."""
        part = self._parts[-1]
        part.norms = [norm.copy(twins) for norm in self._parts[0].norms]
        part.twins = twins
        note_norms(part)

    def join(self, collectives: Collectives | None = None) -> None:
        """Gives all that is summed the sum over the clones, as far as that was not done before.

        Parts of clones run one after the other, and so do collective ops: those of a part come
        before those of the next one, gradients after what they are the gradients of.

        Args:
          collectives: the collective ops of the step, with all-reduce.

        Raises:
          ValueError: if the clones have other batch norms, or other gradients of them.
        """
        if not any(part.norms for part in self._parts):
            return
        if self._config.all_reduce and collectives is None:
            collectives = collectives_of(self._config, "batch norm")
        steps = self._config.accumulate_steps
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
                else:  # of what counts once, after all parts
                    later.append(ops)
        for ops in later:
            self._join_ops(ops, collectives)

    def _join_moments(self, parts: list[Part], collectives: Collectives | None) -> None:
        for place in range(max(len(part.norms) for part in parts)):
            norms = [part.norms[place] if place < len(part.norms) else None for part in parts]
            _check_alike(norms)
            for ops in zip(*(norm.sums for norm in norms if norm is not None), strict=True):
                self._join_ops(list(ops), collectives)

    def _join_ops(self, ops: list[Any], collectives: Collectives | None) -> None:
        """Lets ops that hand on the clones' values hand on the sum."""
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
            else:
                with tf.device(first.device):
                    sums = [tf.add_n(values, name="sum")] * len(values)
        for op, total in zip(ops, sums, strict=True):
            internals.replace_input(op, 0, total)


def _is_moment_of_batch(new: NewOp) -> bool:
    """Whether an op is the variance in `tf.nn.moments`, over the first axis of several."""
    if new.type != "Mean" or not new.name.endswith("/variance"):
        return False
    axes = tf.get_static_value(new.inputs[1])
    rank = new.inputs[0].shape.rank
    is_of_moments = new.name.split("/")[-2].startswith("moments")
    return is_of_moments and axes is not None and rank != 1 and 0 in axes.reshape(-1).tolist()


def _check_alike(norms: list[Norm | None]) -> None:
    found = [None if norm is None else norm.channels for norm in norms]
    if len(set(found)) > 1:
        names = [norm.name if norm else "none" for norm in norms]
        raise ValueError(
            "sync_batch_norm needs the same batch norms in each clone, got "
            + ", ".join(f"{name} of {n} channels" for name, n in zip(names, found, strict=True))
        )


def _check_gradients(gradients: list[dict[tuple[int, int], Any]], part: Part) -> None:
    for keys in gradients[1:]:
        if other := set(keys) ^ set(gradients[0]):
            place, _ = min(other)
            raise ValueError(
                "with sync_batch_norm a loss must depend on a batch norm in each clone or in "
                f"none, got one that does not for {part.norms[place].name}"
            )

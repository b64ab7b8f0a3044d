"""One training step of a network: its gradients and update ops, with no random drops.

The graph is built once and can run on other weights and inputs than those of the reference.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.nets import graphs, reference


@dataclasses.dataclass(frozen=True)
class Figures:
    """What one training step computes.

    Attributes:
      logits: float32 `[2, 10]`.
      auxiliary_logits: the same of the auxiliary head; None without one.
      cross_entropy: of the logits against `graphs.LABELS`, the mean.
      regularization_loss: the sum of these losses.
      gradient_norms: of the cross entropy, for each variable that has a gradient.
      moving: the moving means and variances after the update ops, by name.
    """

    logits: np.ndarray
    auxiliary_logits: np.ndarray | None
    cross_entropy: float
    regularization_loss: float
    gradient_norms: dict[str, float]
    moving: dict[str, np.ndarray]

    @property
    def gradient_norm(self) -> float:
        """Norm of all gradients together."""
        return float(np.linalg.norm(list(self.gradient_norms.values())))


class Step:
    """The graph of one network's training step, and a session; closed at the end of `with`.

    Attributes:
      graph: others may build the network again in it, over the same variables.
      session: of the graph.
      structure: what the graph holds after the step was built.
      without_gradient: names of the variables that the cross entropy does not depend on.
    """

    def __init__(self, name: str, **changes: Any) -> None:
        """Builds the network as the reference did, but for the `changes` of its keywords."""
        expected = reference.load(name)
        self._shape = expected["training_loss_and_update"]["input_shape"]
        self.graph = tf.Graph()
        with self.graph.as_default():
            self._images = tf.placeholder(tf.float32, self._shape)
            keywords = {
                "is_training": True,
                "weight_decay": expected["weight_decay_used_here"],
                **graphs.without_drops(name),
                **changes,
            }
            logits, end_points = graphs.build(name, self._images, **keywords)
            self.structure = graphs.structure(end_points)
            self._fetches = self._add_gradients(logits, end_points)
            self._moving = {v.op.name: v for v in tf.global_variables() if "/moving_" in v.op.name}
        self.session = graphs.session(self.graph)

    def _add_gradients(self, logits: Any, end_points: dict[str, Any]) -> dict[str, Any]:
        cross_entropy = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=graphs.LABELS, logits=logits)
        )
        variables = tf.trainable_variables()
        gradients = dict(zip(variables, tf.gradients(cross_entropy, variables), strict=True))
        self.without_gradient = [v.op.name for v, g in gradients.items() if g is None]
        return {
            "logits": logits,
            "auxiliary_logits": end_points.get("AuxLogits", []),
            "cross_entropy": cross_entropy,
            "regularization_loss": tf.add_n(tf.losses.get_regularization_losses()),
            "gradient_norms": {
                v.op.name: tf.norm(g) for v, g in gradients.items() if g is not None
            },
            "updates": tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS)),
        }

    def __enter__(self) -> "Step":
        return self

    def __exit__(self, *exception: object) -> None:
        self.session.close()
        del self.session  # whose variables are freed now, not when the graph is

    def run(
        self,
        images: np.ndarray | None = None,
        weights: Callable[[str, list[int]], np.ndarray] | None = reference.weights,
    ) -> Figures:
        """Runs the step once.

        Args:
          images: float32 of the shape of the reference input; that input if None.
          weights: gives the value of the variable of this name and shape before the step; None
            leaves them as they are.
        """
        if images is None:
            images = reference.images(self._shape)
        if weights is not None:
            with self.graph.as_default():
                graphs.load_weights(self.session, weights)
        values = self.session.run(self._fetches, {self._images: images})
        del values["updates"]
        if isinstance(values["auxiliary_logits"], list):
            values["auxiliary_logits"] = None
        return Figures(moving=self.session.run(self._moving), **values)

    def regularized(self) -> list[str]:
        """Returns the names of the variables that the regularization losses read, sorted."""
        with self.graph.as_default():
            losses = tf.losses.get_regularization_losses()
        return sorted(itertools.chain.from_iterable(map(_variables_of, losses)))

    def initializers(self) -> dict[str, str]:
        """Returns what the variables start from; the step cannot run any more after this."""
        with self.graph.as_default():
            return {v.op.name: _distribution(v.initial_value) for v in tf.global_variables()}


def _variables_of(loss: Any) -> list[str]:
    """Returns the names of the variables that a loss reads."""
    names = []
    queue, seen = collections.deque([loss.op]), set()
    while queue:
        op = queue.popleft()
        if op.type in {"VarHandleOp", "VariableV2"}:
            names.append(op.name)
        if op not in seen:
            seen.add(op)
            queue.extend(tensor.op for tensor in op.inputs)
    return names


def _distribution(value: Any) -> str:
    """Describes the distribution that an initial value is drawn from, as the reference does."""
    constant = tf.get_static_value(value)
    if constant is not None:
        values = np.unique(constant)
        if len(values) > 1:
            return "constant_tensor"
        return {0: "zeros", 1: "ones"}.get(values[0], f"constant({values[0]:g})")
    product, start = value.op.inputs  # random * scale + start
    random, scale = product.op.inputs
    first = float(tf.get_static_value(start))
    if random.op.type == "TruncatedNormal":
        return f"truncated_normal(mean={first:g},stddev={tf.get_static_value(scale):g})"
    high, low = map(tf.get_static_value, scale.op.inputs)
    return f"uniform({low:g},{high:g})"

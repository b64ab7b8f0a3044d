"""`Feature`: what one setting does to a deployment, at a few named moments."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.parts import Call, Clone, Part, features_of

# Makes a call of `model_fn` and returns its result.
Build = Callable[[Call], Any]
# (clone, losses to differentiate, scalars) -> the clone's `accumulation.PartGradients`.
ComputeGradients = Callable[[Clone, Sequence[Any]], Any]


class Feature:
    """What one setting does to a deployment; subclasses override the moments that they need.

    A deployment has one object of each feature that its config asks for; `features.py` lists all
    features in nesting order.  State from one moment to a later one is an attribute of the object.

    Args:
      config: the deployment.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self.config = config

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        """Whether a config asks for this feature.

        Raises:
          ValueError: if the config asks for it and this TensorFlow does not support it.
        """
        del config
        return True

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        """Builds a part; its scopes are already open.

        Args:
          part: the part; its `ops` and `added` are not known yet.
          call: the call of `model_fn`, as outer features have changed it.
          build: makes a call inside the inner features; returns the result of `model_fn`.

        Returns:
          The outputs of the part: tensors of any shapes in any structure.
        """
        del part
        return build(call)

    def after_parts(self, ops: Sequence[Any]) -> None:
        """Is called when all parts are built, with all ops that they added to the graph."""

    def around_gradients(
        self, clones: Sequence[Clone], losses: Any, compute: ComputeGradients
    ) -> ComputeGradients:
        """Returns a function that computes gradients, to be used in place of `compute`.

        Args:
          clones: the clones whose gradients will be computed, one after the other.
          losses: the `Losses` of `clones`, scalars.
          compute: takes a clone and losses, scalars; returns `accumulation.PartGradients`.
        """
        del clones, losses
        return compute

    def join(self, collectives: Any) -> None:
        """Is called when all gradients are built; replaces clones' own values by shared ones.

        Args:
          collectives: the `Collectives` of the step, with all-reduce; else None.
        """

    def after_update(self, computed: Sequence[Any]) -> None:
        """Is called when the update is built, with its losses and gradients, of any shapes."""

    def finish(self, ops: Sequence[Any]) -> None:
        """Is called at the end of `deploy`, with the new ops that belong to no clone."""

    def set_up_session(self, proto: Any) -> None:
        """Adds the options that sessions need to a `tf.ConfigProto`."""

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        """Returns lines for the placement report, by attribute name of `PlacementReport`.

        Args:
          ops: the ops of one step.
        """
        del ops
        return {}


def join(clones: Sequence[Clone], collectives: Any = None) -> None:
    """Lets features join the values that clones share; repeated calls join only new values.

    Args:
      clones: the clones of one deployment.
      collectives: the `Collectives` of the step, with all-reduce; else None.
    """
    for feature in features_of(clones):
        feature.join(collectives)

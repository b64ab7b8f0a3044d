"""`Feature`: what one setting does to a deployment, at a few named moments."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.parts import Call, Clone, Part, features_of

# Makes a call of `model_fn`; gives its result.
Build = Callable[[Call], Any]
# Computes the gradients of one clone: of the clone and of the losses that count, scalars.
ComputeGradients = Callable[[Clone, Sequence[Any]], Any]


class Feature:
    """What one setting does to a deployment; a subclass has the moments that it needs.

    A deployment has one object of each feature that its config asks for; `features.py` has all,
    in the order in which they are nested.  What a feature has to remember from one moment to a
    later one is an attribute of it.

    Args:
      config: the deployment.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self.config = config

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        """Whether a deployment has this feature.

        Raises:
          ValueError: if the config asks for it and this TensorFlow does not have it.
        """
        del config
        return True

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        """Builds a part; its scopes are open.

        Args:
          part: the part; its `ops` and `added` are not known yet.
          call: the call of `model_fn`, as the features before have left it.
          build: makes a call with the features that come later; returns what `model_fn` did.

        Returns:
          The outputs of the part: tensors of any shapes in any structure.
        """
        del part
        return build(call)

    def after_parts(self, ops: Sequence[Any]) -> None:
        """All parts are built; `ops` are those that they have added to the graph."""

    def around_gradients(
        self, clones: Sequence[Clone], losses: Any, compute: ComputeGradients
    ) -> ComputeGradients:
        """Returns the function that computes gradients in place of `compute`.

        Args:
          clones: the clones whose gradients will be asked for, one after the other.
          losses: their `Losses`, scalars.
          compute: takes a clone and losses, scalars; returns `accumulation.PartGradients`.
        """
        del clones, losses
        return compute

    def join(self, collectives: Any) -> None:
        """All gradients are built; values that the clones share can be joined.

        Args:
          collectives: the `Collectives` of the step, with all-reduce; else None.
        """

    def after_update(self, computed: Sequence[Any]) -> None:
        """The update is built; losses and gradients `computed` are tensors of any shapes."""

    def finish(self, ops: Sequence[Any]) -> None:
        """The deployment is built; `ops` are those that belong to no clone."""

    def set_up_session(self, proto: Any) -> None:
        """Adds to a `tf.ConfigProto` the options that sessions need."""

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        """Lines for the placement report, by the attribute of `PlacementReport`.

        Args:
          ops: the ops of one step.
        """
        del ops
        return {}


def join(clones: Sequence[Clone], collectives: Any = None) -> None:
    """Lets features join the values that clones share; a value that is joined already stays so.

    Args:
      clones: the clones of one deployment.
      collectives: the `Collectives` of the step, with all-reduce; else None.
    """
    for feature in features_of(clones):
        feature.join(collectives)

"""The features that a deployment can have, in the order in which they are nested."""

from collections.abc import Sequence

from model_deploy.config import DeploymentConfig
from model_deploy.copying import Copies
from model_deploy.feature import Feature
from model_deploy.keras_layers import KerasLayers
from model_deploy.parameter_servers import SharedReads
from model_deploy.rewrites import BatchNorms, Compilation, Layout, Precision

# The outermost first, each with the reason for its place.
FEATURES: tuple[tuple[type[Feature], str], ...] = (
    (Compilation, "marks every op of a part, those that all others make as well"),
    (Layout, "a transposed batch norm is synchronized, and cast, with its channels first"),
    (
        BatchNorms,
        "takes the place of a batch norm before that is made in 16 bits: sums are float32",
    ),
    (Precision, "ops of a copy are made in the types of the first part, by no rule"),
    (Copies, "copies what the layers of the first part have made, their update ops as well"),
    (
        KerasLayers,
        "notes what layers do in the call of `model_fn` itself, which copies do not make",
    ),
    (SharedReads, "changes reads when all parts are built, and builds nothing in a part"),
)


def features_for(config: DeploymentConfig) -> Sequence[Feature]:
    """New objects of the features that a config asks for, the outermost first.

    Raises:
      ValueError: if this TensorFlow does not have one of them.
    """
    return [kind(config) for kind, _ in FEATURES if kind.is_wanted(config)]

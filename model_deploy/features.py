"""The table of all features, in the order in which they are nested."""

from collections.abc import Sequence

from model_deploy.config import DeploymentConfig
from model_deploy.copying import Copies
from model_deploy.embeddings import SharedLookUps
from model_deploy.feature import Feature
from model_deploy.keras_layers import KerasLayers
from model_deploy.parameter_servers import SharedReads
from model_deploy.rewrites import BatchNorms, Compilation, Layout, Precision

# The outermost first, each with the reason for its place.
FEATURES: tuple[tuple[type[Feature], str], ...] = (
    (SharedLookUps, "notes the look-ups of a part when inner features have made it, by a copy too"),
    (Compilation, "marks every op of a part for XLA, also the ops that inner features make"),
    (Layout, "transposes first: batch norms are synchronized, and cast, with channels first"),
    (
        BatchNorms,
        "replaces batch norms before they are made in 16 bits: sums over clones are float32",
    ),
    (Precision, "chooses types for the first part; copies get the types of what they copy"),
    (Copies, "copies all that layers of the first part have made, also their update ops"),
    (
        KerasLayers,
        "watches layers while `model_fn` runs, which it does not for a copy",
    ),
    (SharedReads, "changes reads when all parts are built, and builds nothing in a part"),
)


def features_for(config: DeploymentConfig) -> Sequence[Feature]:
    """Creates the features that a config asks for, the outermost first.

    Raises:
      ValueError: if this TensorFlow does not support one of them.
    """
    return [kind(config) for kind, _ in FEATURES if kind.is_wanted(config)]

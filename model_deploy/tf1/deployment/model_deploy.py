"""`deployment.model_deploy` of TF-Slim."""

from model_deploy import (
    Clone,
    DeployedModel,
    DeploymentConfig,
    create_clones,
    deploy,
    optimize_clones,
)

__all__ = [
    "Clone",
    "DeployedModel",
    "DeploymentConfig",
    "create_clones",
    "deploy",
    "optimize_clones",
]

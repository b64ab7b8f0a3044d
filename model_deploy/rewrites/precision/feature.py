"""`Precision`: `DeploymentConfig(precision=...)`, clones that compute in 16 bits."""

from collections.abc import Collection
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.feature import Build, Feature
from model_deploy.parts import Call, Part
from model_deploy.rewrites.precision.computing import computing_in
from model_deploy.rewrites.precision.report import describe_types


class Precision(Feature):
    """Builds each part with convolutions and matrix products in 16 bits."""

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        return config.precision != "float32"

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        device = self.config.clone_device(part.clone_index)
        with computing_in(self.config.precision, device):
            return build(call)

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        return {"precision": describe_types(ops, self.config.precision)}

"""`Layout`: `DeploymentConfig(data_format="NCHW")`, clones that compute with channels first."""

from collections.abc import Collection
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.feature import Build, Feature
from model_deploy.parts import Call, Part
from model_deploy.rewrites.layouts.making import computing_in_layout
from model_deploy.rewrites.layouts.report import describe_layout


class Layout(Feature):
    """Builds each part with channels first."""

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        return config.data_format == "NCHW"

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        with computing_in_layout(self.config.data_format):
            return build(call)

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        return {"layout": describe_layout(ops, self.config.data_format)}

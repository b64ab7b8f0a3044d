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

    def set_up_session(self, proto: Any) -> None:
        """Turns off TensorFlow's fusing of convolution, bias and activation in clusters of CPUs.

        On CPUs the fused op has bfloat16 in oneDNN alone, and a process that is sent such an op
        refuses it.
        """
        config = self.config
        is_elastic = config.first_batch is not None  # has a server, alone in its world or not
        is_sent = is_elastic or not config.is_alone
        if is_sent and config.clone_on_cpu and config.precision == "bfloat16":
            rewriting = proto.graph_options.rewrite_options
            rewriting.remapping = rewriting.OFF

    def describe(self, ops: Collection[Any]) -> dict[str, str]:
        return {"precision": describe_types(ops, self.config.precision)}

"""`SharedReads`: a worker gets each variable from its parameter server once per step."""

from collections.abc import Sequence
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.feature import Build, Feature
from model_deploy.parameter_servers.narrow_reads import narrow_reads
from model_deploy.parameter_servers.shared_gathers import share_gathers
from model_deploy.parameter_servers.shared_reads import pack_reads, share_reads
from model_deploy.parts import Call, Part


class SharedReads(Feature):
    """All clones share one read of each variable; small variables, and rows, travel in packs."""

    _values: Sequence[Any] = ()

    def __init__(self, config: DeploymentConfig) -> None:
        super().__init__(config)
        self._parts: list[Part] = []

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        return config.num_ps_tasks > 0

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        self._parts.append(part)
        return build(call)

    def after_parts(self, ops: Sequence[Any]) -> None:
        if all(part.counterparts is None for part in self._parts):
            for part in self._parts:
                share_gathers(self.config, part.ops)
        self._values = share_reads(self.config, ops)

    def after_update(self, computed: Sequence[Any]) -> None:
        pack_reads(narrow_reads(self.config, self._values, computed))

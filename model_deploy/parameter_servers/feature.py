"""`SharedReads`: a worker gets each variable from its parameter server once per step."""

from collections.abc import Sequence
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.feature import Feature
from model_deploy.parameter_servers.narrow_reads import narrow_reads
from model_deploy.parameter_servers.shared_gathers import share_gathers
from model_deploy.parameter_servers.shared_reads import pack_reads, share_reads


class SharedReads(Feature):
    """All clones share one read of each variable; small variables, and rows, travel in packs."""

    _values: Sequence[Any] = ()

    @classmethod
    def is_wanted(cls, config: DeploymentConfig) -> bool:
        return config.num_ps_tasks > 0

    def after_parts(self, ops: Sequence[Any]) -> None:
        share_gathers(self.config, ops)
        self._values = share_reads(self.config, ops)

    def after_update(self, computed: Sequence[Any]) -> None:
        pack_reads(narrow_reads(self.config, self._values, computed))

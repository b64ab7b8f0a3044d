"""`SharedReads`: a worker gets each variable from its parameter server once per step."""

from collections.abc import Sequence
from typing import Any

from model_deploy.config import DeploymentConfig
from model_deploy.feature import Build, Feature
from model_deploy.parameter_servers.narrow_reads import narrow_reads
from model_deploy.parameter_servers.reads_ahead import ReadsAhead, note_reads_ahead
from model_deploy.parameter_servers.shared_gathers import share_gathers
from model_deploy.parameter_servers.shared_reads import pack_reads, share_reads
from model_deploy.parts import Call, Part


class SharedReads(Feature):
    """All clones share one read of each variable; small variables, and rows, travel in packs."""

    _values: Sequence[Any] = ()
    _ahead: ReadsAhead | None = None

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
        if self.config.rotate_steps:
            self._ahead = ReadsAhead(self.config, self._values)
            note_reads_ahead(self._ahead)

    def after_update(self, computed: Sequence[Any]) -> None:
        values = self._values
        if self._ahead is not None:
            self._ahead.give_to(computed)
            values = [value for value in values if value.consumers()]
        pack_reads(narrow_reads(self.config, values, computed))

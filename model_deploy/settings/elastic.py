"""`ElasticSettings`: which parts of a step a replica takes while workers come and go."""

import dataclasses

from model_deploy.checks import check_whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElasticSettings:
    """Which part of a step a replica takes while workers come and go; see docs/elastic.md.

    Attributes:
      global_parts: number of parts per clone in an update over all replicas, which may take
        different numbers of parts (their `accumulate_steps`), by `all_reduce` or as synchronous
        replicas on parameter servers.  An update then begins only when all exchanged values have
        arrived.
      first_part: with `global_parts`, the number of this replica's first part.
      worker_task: index of this worker's TensorFlow server, if different from `replica_id`.
    """

    global_parts: int | None = None
    first_part: int = 0
    worker_task: int | None = None

    def check_elastic(self) -> None:
        """Checks each field alone.

        Raises:
          ValueError: for an invalid value, naming the field, the rule and the value.
        """
        check_whole("first_part", self.first_part, 0)
        if self.global_parts is not None:
            check_whole("global_parts", self.global_parts, 1)
        elif self.first_part:
            raise ValueError(f"first_part must be 0 without global_parts, got {self.first_part}")
        if self.worker_task is not None:
            check_whole("worker_task", self.worker_task, 0)

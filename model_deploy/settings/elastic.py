"""`ElasticSettings`: which part of a step a replica takes while workers come and go."""

import dataclasses

from model_deploy.checks import check_whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElasticSettings:
    """Which part of a step a replica takes while workers come and go; see docs/elastic.md.

    Attributes:
      global_parts: parts of a clone in an update over all replicas, where with `all_reduce`, or
        synchronous replicas on parameter servers, some take more than others; each counts by its
        `accumulate_steps`.  An update then begins only when all that replicas exchange has arrived.
      first_part: with `global_parts`, the number of this replica's first one.
      worker_task: index of this worker's task among TensorFlow's servers, where that is not
        `replica_id`.
    """

    global_parts: int | None = None
    first_part: int = 0
    worker_task: int | None = None

    def check_elastic(self) -> None:
        """Checks each field by itself.

        Raises:
          ValueError: for a value that breaks a rule, naming the field, the rule and the value.
        """
        check_whole("first_part", self.first_part, 0)
        if self.global_parts is not None:
            check_whole("global_parts", self.global_parts, 1)
        elif self.first_part:
            raise ValueError(f"first_part must be 0 without global_parts, got {self.first_part}")
        if self.worker_task is not None:
            check_whole("worker_task", self.worker_task, 0)

"""`WaySettings`: how clones and replicas update the variables."""

import dataclasses

from model_deploy.checks import check_bool, check_choice

# How variables are spread over parameter servers.
PS_STRATEGIES = ("round_robin", "balanced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WaySettings:
    """How clones and replicas update the variables.

    By default all clones of a replica make one update together, and each replica updates by itself.

    Attributes:
      all_reduce: each clone keeps a copy of the variables on its device, and all clones of all
        replicas exchange gradients; without parameter servers.
      asynchronous: each clone updates the variables by itself, see `DeployedModel.clone_updates`.
      replicas_to_aggregate: how many replicas, the fastest ones, make each update together on
        parameter servers.  None: each updates by itself, or with `global_parts` all together.
      rotate_steps: with all-reduce, let a third of a step's sums and updates be made by the next
        run of the session, beside its forward pass, see `DeployedModel.rest`.
      ps_strategy: how variables are spread over ps tasks: `round_robin` in the order of their
        creation, or `balanced` by bytes (see also `DeploymentConfig.partitioner`).
    """

    all_reduce: bool = False
    asynchronous: bool = False
    replicas_to_aggregate: int | None = None
    rotate_steps: bool = False
    ps_strategy: str = "round_robin"

    def check_way(self) -> None:
        """Checks each field alone.

        Raises:
          ValueError: for an invalid value, naming the field, the rule and the value.
        """
        check_bool("all_reduce", self.all_reduce)
        check_bool("asynchronous", self.asynchronous)
        check_bool("rotate_steps", self.rotate_steps)
        check_choice("ps_strategy", self.ps_strategy, PS_STRATEGIES)

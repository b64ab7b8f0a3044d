"""`WaySettings`: how clones and replicas make an update of the variables."""

import dataclasses

from model_deploy.checks import check_bool, check_choice

# How variables are spread over parameter servers.
PS_STRATEGIES = ("round_robin", "balanced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WaySettings:
    """How clones and replicas make an update of the variables.

    By default all clones of a replica make one update, and each replica makes its own.

    Attributes:
      all_reduce: each clone keeps its own copy of the variables, on its own device, and
        clones and replicas exchange gradients; without parameter servers.
      asynchronous: each clone updates the variables by itself, see `DeployedModel.clone_updates`.
      replicas_to_aggregate: how many replicas make one update together on parameter servers, the
        fastest ones.  None: each makes its own, or with `global_parts` all make one together.
      ps_strategy: how variables are spread over ps tasks: `round_robin` in the order
        in which they are made, or `balanced` by bytes (see also `partitioner`).
    """

    all_reduce: bool = False
    asynchronous: bool = False
    replicas_to_aggregate: int | None = None
    ps_strategy: str = "round_robin"

    def check_way(self) -> None:
        """Checks each field by itself.

        Raises:
          ValueError: for a value that breaks a rule, naming the field, the rule and the value.
        """
        check_bool("all_reduce", self.all_reduce)
        check_bool("asynchronous", self.asynchronous)
        check_choice("ps_strategy", self.ps_strategy, PS_STRATEGIES)

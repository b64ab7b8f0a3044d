"""`WaySettings`: how clones and replicas update the variables."""

import dataclasses
import math
import numbers

from model_deploy.checks import check_bool, check_choice, check_whole

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
      rotate_steps: let a step's exchange overlap with more of the computation.  With all-reduce a
        third of its sums and updates is made by the next run of the session, beside its forward
        pass, see `DeployedModel.rest`.  With `replicas_to_aggregate`, which must be all replicas,
        each variable is updated when its own gradients are there, and its new value comes to the
        workers beside the rest of the backward pass.
      ps_strategy: how variables are spread over ps tasks: `round_robin` in the order of their
        creation, or `balanced` by bytes, small ones beside those before them (see also
        `DeploymentConfig.partitioner`).
      local_steps: with `all_reduce`, steps that each replica makes by itself before the mean over
        replicas of what they have changed is applied; see docs/fewer_bytes.md.  None: each step is
        one of all replicas.
      outer_learning_rate: factor of that mean.
      outer_momentum: Nesterov momentum of these means, from 0 to less than 1.
      outer_parts: groups of variables that are exchanged at different steps.
      outer_overlap: steps from the begin of an exchange until its mean is applied; it travels
        beside these steps.  With `global_parts` at least 1.
      gradient_rank: with `all_reduce`, largest rank of the gradients of matrices, which are sent as
        two factors where that saves; what they lack is added to later gradients, see
        docs/fewer_bytes.md.  None: gradients are sent whole.
    """

    all_reduce: bool = False
    asynchronous: bool = False
    replicas_to_aggregate: int | None = None
    rotate_steps: bool = False
    ps_strategy: str = "round_robin"
    local_steps: int | None = None
    outer_learning_rate: float = 1.0
    outer_momentum: float = 0.0
    outer_parts: int = 1
    outer_overlap: int = 0
    gradient_rank: int | None = None

    def check_way(self) -> None:
        """Checks each field alone.

        Raises:
          ValueError: for an invalid value, naming the field, the rule and the value.
        """
        check_bool("all_reduce", self.all_reduce)
        check_bool("asynchronous", self.asynchronous)
        check_bool("rotate_steps", self.rotate_steps)
        check_choice("ps_strategy", self.ps_strategy, PS_STRATEGIES)
        if self.local_steps is not None:
            check_whole("local_steps", self.local_steps, 1)
        if self.gradient_rank is not None:
            check_whole("gradient_rank", self.gradient_rank, 1)
        check_whole("outer_parts", self.outer_parts, 1)
        check_whole("outer_overlap", self.outer_overlap, 0)
        _check_number("outer_learning_rate", self.outer_learning_rate)
        _check_number("outer_momentum", self.outer_momentum)
        if self.outer_learning_rate <= 0:
            raise ValueError(
                f"outer_learning_rate must be more than 0, got {self.outer_learning_rate}"
            )
        if not 0 <= self.outer_momentum < 1:
            raise ValueError(
                f"outer_momentum must be from 0 to less than 1, got {self.outer_momentum}"
            )


def _check_number(field: str, value: object) -> None:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(float(str(value))):
        raise ValueError(f"{field} must be a number, got {value!r}")

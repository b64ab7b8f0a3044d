"""`GrowingTable` and `FixedTable`: what a table of embeddings is, before it has variables."""

import dataclasses
from collections.abc import Callable
from typing import Any

from model_deploy.checks import check_choice, check_whole
from model_deploy.embeddings.initial_rows import Normal

# Which rows go first when a table is full.
DROPS = ("oldest", "rarest", "never")

# (ids, int64 [n]; width) -> rows, float32 [n, width].
InitialRows = Callable[[Any, int], Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Table:
    """What both kinds have.

    Attributes:
      name: scope of the variables.
      width: values in a row.
      initial: the first values of rows: a function of ids, int64 [n], and the width, which returns
        float32 [n, width].
    """

    name: str
    width: int
    initial: InitialRows = dataclasses.field(default_factory=Normal)

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise ValueError(f"name must be a name of a variable scope, got {self.name!r}")
        check_whole("width", self.width, 1)
        if not callable(self.initial):
            raise ValueError(
                f"initial must be a function of ids and width, such as Normal(), got "
                f"{self.initial!r}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedTable(_Table):
    """A table with a row for each id from 0 to `num_rows - 1`.

    Attributes:
      num_rows: number of rows.

    Raises:
      ValueError: naming the field, the rule and the value.
    """

    num_rows: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("num_rows", self.num_rows, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GrowingTable(_Table):
    """A table that makes a row for an id when the id is seen in training.

    Which ids have rows follows from the data alone where replicas make each step together: within a
    step rows are only made, and before a step's first look-up the rows beyond `max_rows` are
    dropped, to nine tenths of `max_rows`.  Where a step has not enough rows for its new ids, a hash
    of the ids says which get one, but on parameter servers the replica that comes first is served
    first.

    Attributes:
      max_rows: how many rows there are at most when a step begins.
      new_per_step: room for the rows that one step makes; further new ids of the step get none.  By
        default an eighth of `max_rows`, and at least 64.
      min_steps: an id gets a row in the step that is its `min_steps`-th; 1 for the first one.  By
        then the table remembers as many ids without a row as there may be rows.
      probability: chance of an id to get a row in a step, by the id and the step.
      drop: which rows go first when there are more than `max_rows`: the `oldest`, which no step has
        used for longest; the `rarest`, used by the fewest steps, of equals the oldest; or `never`,
        then new ids get no row once there are `max_rows`.
      drop_after: rows that no step has used for so many steps go before any other; None for none.
      without_row: None for a row that all ids without a row share, and that is trained; else the
        value in all places of such a row.

    Raises:
      ValueError: naming the field, the rule and the value.
    """

    max_rows: int
    new_per_step: int | None = None
    min_steps: int = 1
    probability: float = 1.0
    drop: str = "oldest"
    drop_after: int | None = None
    without_row: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("max_rows", self.max_rows, 1)
        if self.new_per_step is not None:
            check_whole("new_per_step", self.new_per_step, 1)
        check_whole("min_steps", self.min_steps, 1)
        if not 0 < self.probability <= 1:
            raise ValueError(
                f"probability must be more than 0 and at most 1, got {self.probability}"
            )
        check_choice("drop", self.drop, DROPS)
        if self.drop_after is not None:
            check_whole("drop_after", self.drop_after, 1)
            if self.drop == "never":
                raise ValueError(f"drop_after must not go with drop='never', got {self.drop_after}")

    @property
    def spare(self) -> int:
        """How many rows a step may make beyond `max_rows`."""
        if self.drop == "never":
            return 0
        if self.new_per_step is not None:
            return self.new_per_step
        return max(64, self.max_rows // 8)

"""The frame of all benchmarks: contenders take turns, a table of medians, goals.

A `Benchmark` names its contenders.  In each round each of them is measured once, one after the
other, so that what else the machine does meets all alike.  Ratios are taken within a round; of
the rounds, the medians count.  A turn begins when the machine is idle.
"""

import argparse
import contextlib
import dataclasses
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.machine import wait_until_idle

# Measures a contender once: numbers by quantity.
Measure = Callable[[], Mapping[str, float]]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the command line says.

    Attributes:
      rounds: how often each contender is measured, at least 1.
      quick: measure as little as shows that everything runs; the figures mean nothing.
      data_dir: folder with CIFAR-10; digits without it.
    """

    rounds: int = 5
    quick: bool = False
    data_dir: str | None = None

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds}")

    def amount(self, full: int, quick: int = 2) -> int:
        """`full`, or `quick` in a quick run."""
        return quick if self.quick else full


class Absent(NamedTuple):
    """Stands for a contender that cannot be measured here."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Goal:
    """What the ratio of two contenders is meant to be.

    >>> Goal("steps/s", "train", "slim", 3).verdict(2.5)
    'steps/s: train is to be at least 3 times slim; it is 2.50 times: short'

    Attributes:
      quantity: of which.
      contender: whose value is divided.
      other: by whose value.
      bound: of the ratio.
      at_most: whether it is an upper bound.
    """

    quantity: str
    contender: str
    other: str
    bound: float
    at_most: bool = False

    def is_reached(self, ratio: float) -> bool:
        """Whether `ratio` keeps to the bound."""
        return ratio <= self.bound if self.at_most else ratio >= self.bound

    def verdict(self, ratio: float | None) -> str:
        """One line; None for a ratio that could not be measured."""
        side = "at most" if self.at_most else "at least"
        goal = (
            f"{self.quantity}: {self.contender} is to be {side} {self.bound:g} times {self.other}"
        )
        if ratio is None:
            return f"{goal}: not measured"
        return (
            f"{goal}; it is {ratio:#.3g} times: {'reached' if self.is_reached(ratio) else 'short'}"
        )


def first(quantity: str, contender: str, others: Iterable[str]) -> tuple[Goal, ...]:
    """The goal to be ahead of all others, for a quantity of which more is better."""
    return tuple(Goal(quantity, contender, other, 1.0) for other in others)


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """Contenders on the same work.

    Attributes:
      title: of its table.
      does: what is measured, in a sentence or two.
      quantities: what each contender's measurement gives, in the order of the table.
      reference: the contender to which the others are compared.
      start: starts the contenders; gives the measure, or the reason of its absence, by name.
        What has to be ended goes on the exit stack.
      goals: what is to be reached.
    """

    title: str
    does: str
    quantities: tuple[str, ...]
    reference: str
    start: Callable[[contextlib.ExitStack], Mapping[str, Measure | Absent]]
    goals: tuple[Goal, ...] = ()


@dataclasses.dataclass(frozen=True)
class Result:
    """The measurements of a benchmark.

    Attributes:
      benchmark: which.
      values: for each contender and quantity, one number per round.
      absent: why the other contenders were not measured.
    """

    benchmark: Benchmark
    values: Mapping[str, Mapping[str, Sequence[float]]]
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def ratio(self, quantity: str, contender: str, other: str) -> float | None:
        """Median over the rounds of contender / other; None if one is absent or other is 0."""
        if contender not in self.values or other not in self.values:
            return None
        divisors = self.values[other][quantity]
        if not all(divisors):
            return None
        pairs = zip(self.values[contender][quantity], divisors, strict=True)
        return statistics.median(mine / its for mine, its in pairs)

    def verdicts(self) -> list[str]:
        """One line for each goal."""
        return [
            goal.verdict(self.ratio(goal.quantity, goal.contender, goal.other))
            for goal in self.benchmark.goals
        ]

    def text(self) -> str:
        """Title, description, a table for each quantity, and goals, as Markdown."""
        parts = [f"## {self.benchmark.title}", self.benchmark.does]
        parts += [self._table(quantity) for quantity in self.benchmark.quantities]
        lines = [f"- {name} was not measured: {reason}" for name, reason in self.absent.items()]
        lines += [f"- {verdict}" for verdict in self.verdicts()]
        if lines:
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def _table(self, quantity: str) -> str:
        reference = self.benchmark.reference
        rows = [["contender", quantity, "lowest", "highest", f"times {reference}"]]
        for name, by_quantity in self.values.items():
            each = by_quantity[quantity]
            ratio = self.ratio(quantity, name, reference)
            numbers = [_number(value) for value in (statistics.median(each), min(each), max(each))]
            rows.append([name, *numbers, "" if ratio is None else f"{ratio:.2f}"])
        # The reasons, which are long, follow the tables.
        rows += [[name, "-", "-", "-", "-"] for name in self.absent]
        return markdown_table(rows)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is the header; all columns but the first are right-aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([line(rows[0]), line(rule), *map(line, rows[1:])])


def run(benchmark: Benchmark, rounds: int, *, when_idle: bool = False) -> Result:
    """Starts the contenders and measures each of them once per round, by turns.

    Args:
      benchmark: what is measured.
      rounds: how often.
      when_idle: whether each turn waits for the machine to be idle.

    Raises:
      ValueError: if a measurement lacks a quantity.
    """
    with contextlib.ExitStack() as stack:
        started = benchmark.start(stack)
        absent = {name: each.reason for name, each in started.items() if isinstance(each, Absent)}
        measures = {name: each for name, each in started.items() if not isinstance(each, Absent)}
        values: dict[str, dict[str, list[float]]] = {
            name: {quantity: [] for quantity in benchmark.quantities} for name in measures
        }
        for _ in range(rounds):
            for name, measure in measures.items():
                if when_idle:
                    wait_until_idle()
                measured = measure()
                for quantity, numbers in values[name].items():
                    if quantity not in measured:
                        raise ValueError(
                            f"measurements of {name} must have {quantity}, got {list(measured)}"
                        )
                    numbers.append(measured[quantity])
    return Result(benchmark, values, absent)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that all benchmarks have."""
    parser.add_argument("--rounds", type=int, help="default: 5, quick: 1")
    parser.add_argument("--quick", action="store_true", help="only to see that it runs")
    parser.add_argument("--data_dir", help="folder with CIFAR-10; default: digits, without files")


def settings_from(flags: argparse.Namespace) -> Settings:
    """The settings that flags of `add_flags` stand for."""
    rounds = flags.rounds if flags.rounds is not None else (1 if flags.quick else 5)
    return Settings(rounds, flags.quick, flags.data_dir)


def run_command(
    describe: Callable[[Settings], Iterable[Benchmark]],
    doc: str,
    arguments: Sequence[str] | None = None,
) -> None:
    """The command of one file of benchmarks: prints the table of each.

    Args:
      describe: gives the benchmarks of the settings.
      doc: the help text.
      arguments: flags; those of the process by default.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    settings = settings_from(parser.parse_args(arguments))
    for benchmark in describe(settings):
        print(run(benchmark, settings.rounds, when_idle=not settings.quick).text())
        sys.stdout.flush()

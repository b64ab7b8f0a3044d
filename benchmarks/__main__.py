"""All benchmarks, one after the other; tables and a picture go to docs/benchmarks.md.

    python -m benchmarks [--rounds=5] [--quick] [--data_dir=<CIFAR-10>]
    python -m benchmarks --only=loop,ps_training [--write]

Each table is written when it is complete, in place of that with its title.  With --quick, or with
--only and without --write, nothing is written.
"""

import argparse
import importlib
import re
from collections.abc import Sequence

from benchmarks import frame, picture
from benchmarks.machine import describe_machine, describe_run
from model_deploy.commands import replaced_file

# In the order of the document.
MODULES = (
    "loop",
    "cifarnet",
    "keras_clones",
    "precision",
    "gpu",
    "inputs_training",
    "inputs_cifar10",
    "inputs_files",
    "inputs_prepared",
    "inputs_cores",
    "ps_training",
    "divided_cores",
    "wire",
    "slow_network",
    "local_steps",
    "rotated_steps",
    "horovod",
    "asynchronous_clones",
    "dlrm",
    "dlrm_ps",
    "sparse_embedding",
    "row_optimizers",
    "saving",
    "verification",
    "estimator",
    "start_up",
    "start_up_stages",
    "start_of_commands",
    "graph_building",
    "large_graph",
    "precision_networks",
    "precision_accuracy",
    "cifar10_accuracy",
)
DOCUMENT = picture.DOCUMENT
# What stands after this line is written anew; what stands before it is written by hand.
MARK = "<!-- Written by `python -m benchmarks`: -->"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints each table when it is complete, and writes the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    frame.add_flags(parser)
    parser.add_argument("--only", help=f"some of {','.join(MODULES)}")
    parser.add_argument("--write", action="store_true", help="write the tables of --only, too")
    flags = parser.parse_args(arguments)
    settings = frame.settings_from(flags)
    chosen = list(MODULES) if flags.only is None else flags.only.split(",")
    if unknown := set(chosen) - set(MODULES):
        names = ",".join(sorted(unknown))
        parser.error(f"--only must name some of {','.join(MODULES)}, got {names!r}")
    if flags.write and flags.quick:
        parser.error("--write must have figures that mean something, got --quick")
    is_whole = flags.only is None
    writes = not flags.quick and (flags.write or is_whole)
    measured = [f"## Results\n\n{describe_machine()}"] if is_whole else []
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        for benchmark in module.benchmarks(settings):
            result = frame.run(benchmark, settings.rounds, when_idle=not settings.quick)
            print(result.text(), flush=True)
            measured.append(f"{result.text()}\n{describe_run(settings.rounds)}")
            if writes:
                _write(measured)
    if writes:
        _write(measured, others=not is_whole)
        picture.draw_page(DOCUMENT.read_text())


def _write(measured: Sequence[str], *, others: bool = True) -> None:
    text = with_sections(DOCUMENT.read_text(), measured, others=others)
    with replaced_file(DOCUMENT, "w") as file:
        file.write(text)
    print(f"wrote {DOCUMENT}")


def with_sections(document: str, measured: Sequence[str], *, others: bool = True) -> str:
    """The document with sections in place of those with their titles; new ones come last.

    Args:
      document: the document.
      measured: sections, which begin with their titles.
      others: whether sections with other titles stay.

    Raises:
      ValueError: if the document does not have the mark once.
    """
    if document.count(MARK) != 1:
        raise ValueError(
            f"the document must have the line {MARK} once, got {document.count(MARK)} of them"
        )
    before, _, after = document.partition(MARK)
    old = re.split(r"^(?=## )", after, flags=re.MULTILINE)[1:] if others else []
    sections = {each.partition("\n")[0]: each.strip() for each in [*old, *measured]}
    return "\n\n".join([f"{before}{MARK}", *sections.values()]) + "\n"


if __name__ == "__main__":
    main()

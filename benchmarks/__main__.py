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
    chosen = flags.only.split(",") if flags.only else list(MODULES)
    if unknown := set(chosen) - set(MODULES):
        parser.error(f"--only must name some of {','.join(MODULES)}, got {','.join(unknown)}")
    if flags.write and flags.quick:
        parser.error("--write must have figures that mean something, got --quick")
    writes = not flags.quick and (flags.write or not flags.only)
    if writes and not flags.only:
        _write(f"## Results\n\n{describe_machine()}")
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        for benchmark in module.benchmarks(settings):
            result = frame.run(benchmark, settings.rounds)
            print(result.text(), flush=True)
            if writes:
                _write(f"{result.text()}\n{describe_run(settings.rounds)}")
    if writes:
        picture.draw_page(DOCUMENT.read_text())


def _write(section: str) -> None:
    DOCUMENT.write_text(with_section(DOCUMENT.read_text(), section))
    print(f"wrote {DOCUMENT}")


def with_section(document: str, section: str) -> str:
    """The document with a section in place of that with its title, or else after all others.

    Raises:
      ValueError: if the document does not have the mark once.
    """
    if document.count(MARK) != 1:
        raise ValueError(
            f"the document must have the line {MARK} once, got {document.count(MARK)} of them"
        )
    before, _, after = document.partition(MARK)
    sections = [each.strip() for each in re.split(r"^(?=## )", after, flags=re.MULTILINE)[1:]]
    titles = [each.partition("\n")[0] for each in sections]
    title = section.partition("\n")[0]
    if title not in titles:
        titles.append(title)
        sections.append("")
    sections[titles.index(title)] = section.strip()
    return "\n\n".join([f"{before}{MARK}", *sections]) + "\n"


if __name__ == "__main__":
    main()

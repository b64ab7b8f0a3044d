"""All benchmarks, one after the other; tables and a picture go to docs/benchmarks.md.

    python -m benchmarks [--only=loop,ps_training] [--rounds=5] [--quick] [--data_dir=<CIFAR-10>]

With --only or --quick nothing is written.
"""

import argparse
import importlib
from collections.abc import Sequence

from benchmarks import frame, picture
from benchmarks.machine import describe_machine

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
    flags = parser.parse_args(arguments)
    settings = frame.settings_from(flags)
    chosen = flags.only.split(",") if flags.only else list(MODULES)
    if unknown := set(chosen) - set(MODULES):
        parser.error(f"--only must name some of {','.join(MODULES)}, got {','.join(unknown)}")
    results = []
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        for benchmark in module.benchmarks(settings):
            results.append(frame.run(benchmark, settings.rounds))
            print(results[-1].text(), flush=True)
    if not (flags.only or flags.quick):
        text = replace_results(DOCUMENT.read_text(), results, describe_machine(), settings.rounds)
        DOCUMENT.write_text(text)
        print(f"wrote {DOCUMENT}")
        picture.draw_page(text)


def replace_results(
    document: str, results: Sequence[frame.Result], machine: str, rounds: int
) -> str:
    """The document with new tables after its `MARK`.

    Raises:
      ValueError: if the document does not have the mark once.
    """
    if document.count(MARK) != 1:
        raise ValueError(
            f"the document must have the line {MARK} once, got {document.count(MARK)} of them"
        )
    before, _ = document.split(MARK)
    measured = f"# Results\n\n{machine}\n- rounds: {rounds}"
    return (
        f"{before}{MARK}\n\n"
        + "\n\n".join(
            [measured.replace("# ", "## ", 1), *(result.text().rstrip() for result in results)]
        )
        + "\n"
    )


if __name__ == "__main__":
    main()

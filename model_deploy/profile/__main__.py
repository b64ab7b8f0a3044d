r"""`python -m model_deploy.profile`: where the time of profiled steps goes.

    python -m model_deploy.profile train_dir

prints what each device did in the mean step of `--profile_steps`, and draws one beside the trace.
"""

import argparse
from collections.abc import Sequence

from model_deploy.profile import picture, summary, traces


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables and draws the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.profile",
        description="Prints where the time of profiled steps goes, and draws one.",
    )
    parser.add_argument("train_dir", help="folder of a run with --profile_steps")
    parser.add_argument("--types", type=int, default=15, help="how many types of ops to list")
    options = parser.parse_args(arguments)
    try:
        path = traces.newest_trace(options.train_dir)
        ops = traces.read_trace(path)
        print(summary.report(ops, options.types))
        drawn = path.removesuffix(".trace.json") + ".png"
        step = picture.plot_step(ops, drawn)
        print(f"\nstep {step}: {drawn}; chrome://tracing and ui.perfetto.dev open {path}")
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()

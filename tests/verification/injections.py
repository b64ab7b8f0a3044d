"""Flips bits until so many were found in each case, and makes clean steps; prints a table.

    python -m tests.verification.injections [--v1] [--found=200] [--clean=10000] [--only=CASE,...]

A flip is of one random bit of a gradient, of a weight that an update has written, or of a batch, in
one of the two makings of a step.  Ends with 1 if one is missed, or a clean step is none.
"""

import argparse
import collections
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.verification import CorruptionError
from tests import modes
from tests.verification.steps import CASES, FOUND, HARMLESS, MISSED, steps_of


def injections(steps, number):
    """Injects until so many flips were found or missed; counts what became of all."""
    random, counts = np.random.default_rng(0), collections.Counter()
    while counts[FOUND] + counts[MISSED] < number:
        counts[steps.inject(random)] += 1
    return counts


def false_alarms(steps, number):
    """How many of so many clean steps, each made twice, seem to be corrupted."""
    alarms = 0
    for _ in range(number):
        try:
            steps.verify()
        except CorruptionError as error:
            print(error)
            alarms += 1
    return alarms


def main():
    """Prints a row for each case; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--v1", action="store_true", help="after tf.disable_v2_behavior()")
    parser.add_argument("--found", type=int, default=200, help="flips of each case")
    parser.add_argument("--clean", type=int, default=10_000, help="clean steps of all cases")
    parser.add_argument("--only", default=",".join(CASES), help="cases")
    flags = parser.parse_args()
    modes.set_for_programs(flags.v1)
    modes.enter()
    tf.disable_eager_execution()
    tf.get_logger().setLevel("ERROR")
    cases, wrong = flags.only.split(","), 0
    print("| case | found | missed | without harm | clean steps | false alarms | seconds |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        began, clean = time.monotonic(), -(-flags.clean // len(cases))
        with steps_of(case, injects=True) as steps:
            counts = injections(steps, flags.found)
        with steps_of(case) as steps:
            alarms = false_alarms(steps, clean)
        wrong += counts[MISSED] + alarms
        numbers = (counts[FOUND], counts[MISSED], counts[HARMLESS], clean, alarms)
        secs = time.monotonic() - began
        print(f"| {case} | {' | '.join(map(str, numbers))} | {secs:.0f} |", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

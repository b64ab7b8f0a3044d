"""Clusters of real processes in which one is killed or stopped while they train."""

import dataclasses
import random

import pytest

from tests.processes import fault_matrix
from tests.processes.faults import run_case

SEED, NUM_CASES = 86, 6
# Processes of all-reduce import TensorFlow each, through the launcher, and are slow to start.
NUM_ALL_REDUCE = 1


def _kinds(case):
    """What the chosen cases have to cover between them."""
    lost = {f"{case.mode}, lost"} if case.kills and not case.goes_on_without else set()
    return {case.mode, case.victim, case.signal, case.moment, *lost}


def _cases():
    """With `--v1` the first synchronous one."""
    cases = _choose()
    first = next(case for case in cases if case.mode == "synchronous")
    marks = {case: () if case is first else pytest.mark.one_mode for case in cases}
    return [pytest.param(case, id=str(case), marks=marks[case]) for case in cases]


def _choose():
    """Cases of the matrix that the seed draws, with every mode, task, signal and moment."""
    generator = random.Random(SEED)
    cases = fault_matrix.cases()
    wanted = set().union(*map(_kinds, cases))
    while True:
        chosen = generator.sample(cases, NUM_CASES)
        slow = sum(case.mode == "all_reduce" for case in chosen)
        if slow == NUM_ALL_REDUCE and set().union(*map(_kinds, chosen)) == wanted:
            break
    steps = iter(generator.sample(range(5, 40), NUM_CASES))
    return [
        dataclasses.replace(
            case, moment=next(steps) if isinstance(case.moment, int) else case.moment, stop_secs=3.0
        )
        for case in chosen
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", _cases())
def test_promises_hold(case, tmp_path):
    """The run ends at its last step with the weights that it should have, and leaves nothing."""
    run_case(case, tmp_path)

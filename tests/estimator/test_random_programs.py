"""One random program; `python -m tests.estimator.random_programs` makes many."""

import pytest

from tests.estimator import random_programs

# Clipped gradients of norms in common, and regularization, of clones' own variables.
_SEED = 6


@pytest.mark.one_mode
def test_a_program_ends_as_estimator_by_itself(tmp_path):
    """Deployed it ends where it ends by itself on whole batches, to rounding."""
    program, settings, stop = random_programs.draw(_SEED)
    assert (program.network, program.regularized) == ("norm", "by variables")
    assert program.clip is not None
    assert settings["all_reduce"]
    found = random_programs.difference(program, settings, stop, tmp_path)
    assert found < random_programs.tolerance(settings)

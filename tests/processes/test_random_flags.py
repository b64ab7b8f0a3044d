"""One draw of random flags; `python -m tests.processes.random_flags` makes many."""

import pytest

from tests.processes import random_flags

# Rotated steps with checks of the copies, and evaluations: the rest of a step is often done alone.
_SEED = 304


@pytest.mark.slow
@pytest.mark.one_mode
def test_flags_keep_their_promises(tmp_path):
    """A run with all of the flags ends as one that goes on in the middle and saves each step."""
    assert {"rotate_steps", "copies_check_every_n_steps"} <= random_flags.draw(_SEED).keys()
    assert random_flags.check(tmp_path, _SEED) == "as promised"

"""A slow worker of a real cluster is named right, within 20 of its steps."""

import pytest

from benchmarks import namespaces
from tests.processes.slow_workers import SLOW, name_slow_worker

pytestmark = [pytest.mark.one_mode, pytest.mark.slow]

needs_namespaces = pytest.mark.skipif(
    namespaces.missing() is not None, reason=str(namespaces.missing())
)


@pytest.mark.parametrize(
    ("mode", "causes"),
    [
        ("synchronous", ["computation", "input"]),
        pytest.param("all_reduce", ["exchange"], marks=needs_namespaces),
    ],
)
def test_a_slow_worker_is_named(tmp_path, mode, causes):
    """A worker that is stopped now and then, whose input is slow, or whose link is, is named with
    its part; and nobody before. `python -m tests.processes.slow_workers` has all cases.
    """
    for cause, named in zip(causes, name_slow_worker(tmp_path, mode, causes), strict=True):
        assert (named.worker, named.part) == (SLOW, cause)
        assert named.factor >= 1.5
        assert named.steps <= 20

"""Which gradients travel together."""

import pytest

from model_deploy.collectives import (
    FEW_MEMBERS_MOST_BYTES,
    LEAST_BYTES,
    left_packs,
    packs_of,
)

pytestmark = pytest.mark.one_mode

MIB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([0], [[0]]),
        ([5 * MIB], [[0]]),
        # A quarter of 16 MiB is 4, but 2 is the most; of less than 8 MiB it is less than 2.
        (
            [MIB] * 16,
            [[15, 14], [13, 12], [11, 10], [9, 8], [7, 6], [5], [4], [3], [2], [1], [0]],
        ),
        ([MIB / 4] * 6, [[5, 4], [3, 2], [1, 0]]),
        # A large one ends its pack, whatever is in it.
        ([1, 9 * MIB, 1], [[2], [1], [0]]),
    ],
)
def test_packs(sizes, expected):
    """A pack takes a quarter of what is left: at most 2 MiB, where there is more than 0.5."""
    assert packs_of(sizes, members=8) == expected


@pytest.mark.parametrize("sizes", [[10] * 1000, [1.5 * MIB] * 40, [MIB // 7] * 300])
def test_every_gradient_once(sizes):
    """The last goes first; no pack has more than the most; the end of a step waits for little."""
    packs = packs_of(sizes, members=2)
    assert [k for pack in packs for k in pack] == list(range(len(sizes)))[::-1]
    loads = [sum(sizes[k] for k in pack) for pack in packs]
    assert max(loads) <= FEW_MEMBERS_MOST_BYTES
    assert loads[-1] <= max(LEAST_BYTES, sizes[0])


@pytest.mark.parametrize(
    ("members", "count"), [(1, 4), (2, 11), (8, 11), (32, 7), (64, 4), (512, 4)]
)
def test_number_of_packs(members, count):
    """They are few where each takes many messages, and where none crosses a link."""
    assert len(packs_of([MIB] * 16, members)) == count


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([5], []),
        ([1] * 9, [1, 4, 7]),
        # Of 8 a third is 2.7: half of the second pack still fits.
        ([4, 4], [1]),
        ([1, 100], []),
    ],
)
def test_what_a_rotated_step_leaves(sizes, expected):
    """A third of the bytes, spread over the packs, and never the first one."""
    assert left_packs(sizes) == expected

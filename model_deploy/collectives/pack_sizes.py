"""Which gradients share a pack: large packs first, small ones at the end of a backward pass."""

from collections.abc import Sequence

# Each pack costs a round of messages, so small tensors share a pack of at most this size.
MOST_BYTES = 4 << 20
# The step waits for the last pack, which leaves when all gradients are computed: a pack holds at
# most this share of the bytes still to send, unless that is less than `LEAST_BYTES`.
_SHARE = 1 / 4
LEAST_BYTES = 1 << 19
# A ring of more members sends more messages per pack: the least size grows in proportion.
_FEW_MEMBERS = 8


def packs_of(sizes: Sequence[float], members: int) -> list[list[int]]:
    """Divides tensors into packs in the order of sending, from the last tensor to the first.

    >>> packs_of([300_000] * 5, members=2)
    [[4], [3], [2], [1], [0]]
    >>> packs_of([200_000] * 8 + [8_000_000], members=2)
    [[8], [7, 6], [5, 4], [3, 2], [1, 0]]

    Args:
      sizes: bytes of each tensor, in the order of the forward pass.
      members: number of processes that sum the tensors.

    Returns:
      The indices of each pack's tensors, all in descending order.
    """
    packs: list[list[int]] = []
    # A single process sends nothing over a link.
    least = MOST_BYTES if members == 1 else LEAST_BYTES * max(1, members / _FEW_MEMBERS)
    left, filled, limit = float(sum(sizes)), 0.0, 0.0
    for k in reversed(range(len(sizes))):
        if not packs or filled + sizes[k] > limit:
            packs.append([])
            filled, limit = 0.0, min(MOST_BYTES, max(least, left * _SHARE))
        packs[-1].append(k)
        filled += sizes[k]
        left -= sizes[k]
    return packs

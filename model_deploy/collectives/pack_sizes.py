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
# With few members a pack has at most this: what waits for a whole pack waits half as long.
FEW_MEMBERS_MOST_BYTES = 2 << 20
# Of the bytes a rotated step leaves this share, that of the forward pass in the computation.
LEFT_SHARE = 1 / 3


def packs_of(
    sizes: Sequence[float], members: int, most_bytes: int | None = None
) -> list[list[int]]:
    """Divides tensors into packs in the order of sending, from the last tensor to the first.

    >>> packs_of([300_000] * 5, members=2)
    [[4], [3], [2], [1], [0]]
    >>> packs_of([200_000] * 8 + [8_000_000], members=2)
    [[8], [7, 6], [5, 4], [3, 2], [1, 0]]

    Args:
      sizes: bytes of each tensor, in the order of the forward pass.
      members: number of processes that sum the tensors.
      most_bytes: size limit of a pack of several tensors; by default `MOST_BYTES`, with few
        members over links `FEW_MEMBERS_MOST_BYTES`.

    Returns:
      The indices of each pack's tensors, all in descending order.
    """
    packs: list[list[int]] = []
    growth = max(1, members / _FEW_MEMBERS)
    if most_bytes is None:
        few = FEW_MEMBERS_MOST_BYTES * growth
        most_bytes = MOST_BYTES if members == 1 else min(MOST_BYTES, int(few))
    # A single process sends nothing over a link.
    least = most_bytes if members == 1 else LEAST_BYTES * growth
    left, filled, limit = float(sum(sizes)), 0.0, 0.0
    for k in reversed(range(len(sizes))):
        if not packs or filled + sizes[k] > limit:
            packs.append([])
            filled, limit = 0.0, min(most_bytes, max(least, left * _SHARE))
        packs[-1].append(k)
        filled += sizes[k]
        left -= sizes[k]
    return packs


def left_packs(sizes: Sequence[float]) -> list[int]:
    """Which packs a rotated step leaves to the next run of the session: a third of the bytes.

    The forward pass is a third of the computation.  So however fast the links are, a third of the
    bytes beside it, and two thirds beside the backward pass, are hidden, or an even stream.  They
    are every third pack: gradients come 3 / 2 times as fast as they can leave where computation
    takes as long as the transfer, and the forward pass gets its packs as it goes on (Jayarajan et
    al., Priority-based parameter propagation for distributed DNN training, MLSys 2019, has the
    order).  The first pack stays, for it has the loss.

    >>> left_packs([2, 2, 2, 1, 1, 1, 1])
    [1, 4]

    Args:
      sizes: bytes of each pack, in the order of sending, from the last layer to the first.
    """
    left, left_bytes, bytes_so_far = [], 0.0, 0.0
    for i, size in enumerate(sizes):
        bytes_so_far += size
        if i > 0 and left_bytes + size / 2 <= LEFT_SHARE * bytes_so_far:
            left.append(i)
            left_bytes += size
    return left

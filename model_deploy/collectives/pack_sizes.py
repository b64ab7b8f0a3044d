"""Which gradients travel together: large packs first, small ones at the end of a backward pass."""

from collections.abc import Sequence

# A pack costs a round of messages, so small tensors travel together, up to this size.
MOST_BYTES = 4 << 20
# The last pack leaves when all is computed, and the step waits for it: a pack takes at most this
# share of what is left, unless that is less than `LEAST_BYTES`.
_SHARE = 1 / 4
LEAST_BYTES = 1 << 19
# In a ring of more members a pack takes more messages: then its least size grows in proportion.
_FEW_MEMBERS = 8


def packs_of(sizes: Sequence[float], members: int, most_bytes: int = MOST_BYTES) -> list[list[int]]:
    """The packs of tensors in the order in which they leave, from the last tensor to the first.

    >>> packs_of([300_000] * 5, members=2)
    [[4], [3], [2], [1], [0]]
    >>> packs_of([200_000] * 8 + [8_000_000], members=2)
    [[8], [7, 6], [5, 4], [3, 2], [1, 0]]

    Args:
      sizes: bytes of each tensor, in the order of the forward pass.
      members: how many processes sum them up.
      most_bytes: of a pack, unless it is a single tensor.

    Returns:
      The indices of each pack's tensors, all in descending order.
    """
    packs: list[list[int]] = []
    # Within a process nothing crosses a link.
    least = most_bytes if members == 1 else LEAST_BYTES * max(1, members / _FEW_MEMBERS)
    left, filled, limit = float(sum(sizes)), 0.0, 0.0
    for k in reversed(range(len(sizes))):
        if not packs or filled + sizes[k] > limit:
            packs.append([])
            filled, limit = 0.0, min(most_bytes, max(least, left * _SHARE))
        packs[-1].append(k)
        filled += sizes[k]
        left -= sizes[k]
    return packs

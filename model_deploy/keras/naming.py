"""Matches variables of a checkpoint with those of a Keras model that was made another time.

Keras numbers unnamed layers per process, so a model that is made again has other numbers, in the
same order: `dense_4` and `dense_5` in place of `dense` and `dense_1`.
"""

import collections
import re
from collections.abc import Collection, Iterable, Sequence

_PART = re.compile(r"(.*?)(?:_(\d+))?")


def match_names(wanted: Sequence[str], saved: Collection[str]) -> list[str | None]:
    """Returns the names in a checkpoint of a model's variables.

    Args:
      wanted: the names of the variables in the model, such as `sequential_1/dense_4/kernel`.
      saved: the names in the checkpoint.

    Returns:
      For each of `wanted` a name of `saved`: the same one if all are there, else the one whose
      numbers have the same rank among the numbers of each word; None for a missing name.
    """
    wanted = _numbered(wanted)
    if all(name in saved for name in wanted):
        return list(wanted)
    by_place = {place: name for name, place in _places(saved).items()}
    return [by_place.get(place) for place in _places(wanted).values()]


def _numbered(names: Iterable[str]) -> list[str]:
    """Makes names unique: of equal names the second gets `_1`, and so on."""
    counts: collections.Counter[str] = collections.Counter()
    found = []
    for name in names:
        found.append(f"{name}_{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return found


def _places(names: Iterable[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Splits each name into (word, rank of its number among all numbers of the word)."""
    parts = {name: [_word_and_number(part) for part in name.split("/")] for name in names}
    numbers: dict[str, set[int]] = collections.defaultdict(set)
    for split in parts.values():
        for word, number in split:
            numbers[word].add(number)
    order = {word: sorted(found) for word, found in numbers.items()}
    return {
        name: tuple((word, order[word].index(number)) for word, number in split)
        for name, split in parts.items()
    }


def _word_and_number(part: str) -> tuple[str, int]:
    match = _PART.fullmatch(part)
    assert match is not None  # everything matches
    return match[1], int(match[2] or 0)

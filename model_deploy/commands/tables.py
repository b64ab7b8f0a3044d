"""Formats tables of text for commands."""

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Returns the lines of a table, each column as wide as its widest cell.

    >>> aligned([["device", "ops"], ["GPU:0", "1,200"]])
    ['device    ops', 'GPU:0   1,200']

    Args:
      rows: the cells, as many in each row.
      left: numbers of the left-aligned columns; other columns are right-aligned.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

"""Tables of text, as commands print them."""

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """The lines of a table, each column as wide as its widest cell.

    >>> aligned([["device", "ops"], ["GPU:0", "1,200"]])
    ['device    ops', 'GPU:0   1,200']

    Args:
      rows: the cells, as many in each row.
      left: the numbers of the columns whose cells begin at the left; those of others end at the
        right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

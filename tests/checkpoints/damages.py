"""What befalls files: a flipped bit, a lost end, a lost file."""

KINDS = ("flip", "truncate", "remove")


def damage(file, kind, place=None, bit=0):
    """Damages a file; an empty one is removed.

    Args:
      file: its path.
      kind: one of `KINDS`.
      place: number of the byte that is flipped, or the first that is lost; the last if None.
      bit: number of the bit that is flipped.

    Returns:
      What was done, in words.
    """
    content = bytearray(file.read_bytes())
    if kind == "remove" or not content:
        file.unlink()
        return "removed"
    place = len(content) - 1 if place is None else place
    if kind == "truncate":
        file.write_bytes(content[:place])
        return f"truncated to {place} of {len(content)} bytes"
    content[place] ^= 1 << bit
    file.write_bytes(content)
    return f"bit {bit} of byte {place} flipped"

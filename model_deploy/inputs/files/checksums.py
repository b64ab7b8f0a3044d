"""CRC-32C, the checksum of TFRecord files, here for the record lengths.

TensorFlow checks the data of records.  The polynomial is that of G. Castagnoli et al.:
"Optimization of cyclic redundancy-check codes with 24 and 32 parity bits", 1993.
"""

_POLYNOMIAL = 0x82F63B78  # bits reversed
_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8


def _contribution(byte: int) -> int:
    """Returns the table entry of a byte."""
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_contribution, range(256)))


def crc32c(data: bytes) -> int:
    """Returns the CRC-32C of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = _ONES
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ _ONES


def masked_crc32c(data: bytes) -> int:
    """Returns the CRC-32C as TFRecord files store it: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _ONES

"""CRC-32C, the checksum of TFRecord files, with NumPy.

The register of a CRC is a linear function of the data, over bits: the exclusive or of
what each byte contributes, which depends on its value and on how many bytes follow.  A
table of that turns a block into one look-up and one reduction; blocks are joined by
adding the register to the first four bytes of the next one (G. Castagnoli et al.: "Optimization of
cyclic redundancy-check codes with 24 and 32 parity bits", 1993, for the polynomial).
"""

import numpy as np

_POLYNOMIAL = 0x82F63B78  # bits reversed
_BLOCK = 1024
_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8


def _byte_table() -> np.ndarray:
    """What a last byte of each value contributes: uint32 [256]."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


def _block_table() -> np.ndarray:
    """What each byte of a block contributes at its place: uint32 [_BLOCK, 256]."""
    last = _byte_table()
    table = np.empty([_BLOCK, 256], np.uint32)
    table[-1] = last
    for place in range(_BLOCK - 2, -1, -1):
        followed = table[place + 1]
        table[place] = (followed >> 8) ^ last[followed & 0xFF]
    return table


_TABLE = _block_table()
_FLAT_TABLE = _TABLE.reshape(-1)
_ROWS = np.arange(_BLOCK) * 256
_LAST: list[int] = _TABLE[-1].tolist()
_FIRST: list[list[int]] = _TABLE[:4].tolist()


def crc32c(data: bytes) -> int:
    """The CRC-32C of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    return (_short(data) if len(data) < 64 else _long(data)) ^ _ONES


def masked_crc32c(data: bytes) -> int:
    """The CRC-32C as TFRecord files store it: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _ONES


def _short(data: bytes) -> int:
    """Byte by byte, which is quicker for the 8 bytes of a length."""
    crc = _ONES
    for byte in data:
        crc = (crc >> 8) ^ _LAST[(crc ^ byte) & 0xFF]
    return crc


def _long(data: bytes) -> int:
    # Zeros in front change nothing, if the register's first value, all ones, is added
    # to the first four bytes of the data instead.
    num_blocks = -(-len(data) // _BLOCK)
    padded = np.zeros([num_blocks * _BLOCK], np.uint8)
    start = len(padded) - len(data)
    padded[start:] = np.frombuffer(data, np.uint8)
    padded[start : start + 4] ^= 0xFF
    places = padded.reshape([num_blocks, _BLOCK]) + _ROWS
    first, second, third, fourth = _FIRST
    crc = 0
    for block in np.bitwise_xor.reduce(_FLAT_TABLE.take(places), axis=1).tolist():
        crc = (
            block
            ^ first[crc & 0xFF]
            ^ second[(crc >> 8) & 0xFF]
            ^ third[(crc >> 16) & 0xFF]
            ^ fourth[crc >> 24]
        )
    return crc

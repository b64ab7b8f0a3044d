"""Memory that a worker has freed goes back to the system."""

import ctypes

import pytest

from model_deploy.elastic import heap
from tests import memory

pytestmark = pytest.mark.one_mode

# Blocks of the C library's heap that are too small to be mapped one by one: 80 MB.
BLOCK_BYTES, NUM_BLOCKS = 4_096, 20_000


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_freed_memory_goes_back():
    """Also that below a block which is still in use."""
    blocks = [bytes(BLOCK_BYTES) for _ in range(NUM_BLOCKS)]
    del blocks[:-1]
    before = memory.in_use()
    heap.give_back()
    assert before - memory.in_use() > BLOCK_BYTES * NUM_BLOCKS / 2
    assert len(blocks) == 1

"""Work on many sentences in several threads, such that results do not depend on how many there are.

Sentences are cut into blocks by their tokens alone. Each block is a call of a compiled function that holds no
interpreter lock; what blocks add up is kept by block and added in the order of the blocks, also by one thread.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 15
"""A block ends with the sentence in which it reaches so many tokens: about a millisecond of work."""


def thread_limit() -> int:
    """How many threads may run: the number of processors that this process may use, or less if the environment says so.

    `OMP_NUM_THREADS` and `NUMBA_NUM_THREADS` are read, as everywhere in numerical Python.
    """
    limit = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        asked = os.environ.get(name, "").split(",")[0].strip()
        if asked.isdecimal() and int(asked) > 0:
            limit = min(limit, int(asked))
    return limit


def blocks_of(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where blocks of sentences begin and end, [blocks + 1]; always at least one block."""
    sentences = len(offsets) - 1
    marks = np.arange(BLOCK, offsets[-1], BLOCK)
    ends = np.unique(np.searchsorted(offsets, marks))
    return np.concatenate([[0], ends[ends < sentences], [sentences]])


def run_blocks(work: Callable[[int], None], blocks: int, threads: int) -> None:
    """Call `work` with the number of every block, in up to so many threads; an exception in one is raised here."""
    threads = min(threads, blocks)
    if threads < 2:
        for block in range(blocks):
            work(block)
        return
    for _ in _pool(threads).map(work, range(blocks)):
        pass


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call; to start them anew each time takes as long as many a call."""
    return ThreadPoolExecutor(threads, "tagweave-chain")


if hasattr(os, "register_at_fork"):
    # Threads do not live on in a forked process.
    os.register_at_fork(after_in_child=_pool.cache_clear)

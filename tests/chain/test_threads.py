"""Blocks of sentences: results are the same bits whatever the number of threads."""

import os

import numpy as np
import pytest

from chain.examples import chain_of
from tagweave.chain import exponentials, forward_backward, threads
from tagweave.chain.posterior import prepare, run
from tagweave.errors import DataError


def test_blocks_hold_all_sentences_and_enough_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "BLOCK", 10)
    assert threads.blocks_of(np.array([0, 4, 8, 12, 16, 20, 40, 41])).tolist() == [0, 3, 5, 6, 7]
    assert threads.blocks_of(np.array([0, 100])).tolist() == [0, 1]
    assert threads.blocks_of(np.array([0, 0, 0])).tolist() == [0, 2]
    assert threads.blocks_of(np.array([0])).tolist() == [0, 0]
    assert threads.blocks_of(np.array([0, 10, 10])).tolist() == [0, 2]


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("token_wise", "own_start"), [(False, True), (True, False)])
def test_the_number_of_threads_changes_no_bit(
    mode: int, token_wise: bool, own_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "BLOCK", 50)
    lengths = np.random.default_rng(5).integers(0, 30, 100).tolist()
    chain = chain_of(4, 3, lengths, token_wise=token_wise, own_start=own_start, forbidden=0.2, spread=300.0)
    potentials, offsets = prepare(*chain)
    one = run(potentials, offsets, mode, 1)
    for count in (2, 5):
        for first, second in zip(one, run(potentials, offsets, mode, count), strict=True):
            np.testing.assert_array_equal(first, second)
    monkeypatch.setattr(threads, "BLOCK", 10**9)
    whole = run(potentials, offsets, mode, 1)
    for first, second in zip(one[:2], whole[:2], strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(one[2], whole[2], rtol=1e-12)


def test_one_thread_for_one_block_and_errors_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    done: list[int] = []
    threads.run_blocks(done.append, 1, 8)
    threads.run_blocks(done.append, 3, 1)
    assert done == [0, 0, 1, 2]
    monkeypatch.undo()

    def fail(block: int) -> None:
        raise ValueError(block)

    with pytest.raises(ValueError, match="0"):
        threads.run_blocks(fail, 4, 2)


def test_the_environment_limits_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "4")
    for asked, limit in (("", 4), ("2", 2), ("3,1", 3), ("16", 4), ("0", 4), ("many", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert threads.thread_limit() == limit
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert threads.thread_limit() == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("spread", [1.0, 400.0])
@pytest.mark.parametrize("name", ["transitions", "evidence"])
def test_no_number_is_found_wherever_it_is(name: str, spread: float, value: float) -> None:
    generator = np.random.default_rng(6)
    for seed in range(40):
        chain = chain_of(seed, 3, [4, 1, 5], token_wise=True, forbidden=0.6, spread=spread)
        place = (int(generator.choice([1, 2, 3, 6, 7, 8, 9])), *generator.integers(3, size=1 + (name == "transitions")))
        getattr(chain, name)[place] = value
        with pytest.raises(DataError, match=rf"{name}\[{place[0]}, {place[1]}"):
            forward_backward(*chain)


def test_exponentials_are_right_to_the_last_bits() -> None:
    generator = np.random.default_rng(7)
    numbers = -np.concatenate([generator.exponential(30, 5_000), generator.random(5_000), [0.0, 707.9]])
    values = numbers.copy()
    exponentials.exponentiate(values)
    np.testing.assert_allclose(values, np.exp(numbers), rtol=5e-16, atol=1e-307)
    special = np.array([0.0, -709.0, -1e300, -np.inf, np.nan])
    exponentials.exponentiate(special)
    np.testing.assert_array_equal(special, [1.0, 0.0, 0.0, 0.0, np.nan])

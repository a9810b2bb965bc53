"""The numpy face of the chain against a list of all label sequences."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from chain.enumeration import enumerate_sentences, likelihood_of_votes, scores_of
from chain.examples import Chain, VotesOfSources, chain_of, chains, votes_of_sources
from tagweave.chain import best_path, entropy, forward_backward, log_partition
from tagweave.errors import DataError

MANY = settings(max_examples=150, deadline=None)
SOME = settings(max_examples=60, deadline=None)


@MANY
@given(chains())
def test_everything_agrees_with_enumeration(chain: Chain) -> None:
    exact = enumerate_sentences(*chain)
    posterior = forward_backward(*chain, pairs="token")
    assert posterior.pair_marginals is not None
    np.testing.assert_allclose(posterior.log_partition, [e.log_partition for e in exact], rtol=0, atol=1e-10)
    np.testing.assert_allclose(posterior.marginals, np.concatenate([e.marginals for e in exact]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(posterior.pair_marginals, np.concatenate([e.pairs for e in exact]), rtol=0, atol=1e-10)
    # The entropy is a difference of two sums of potentials.
    largest = max(np.abs(part[np.isfinite(part)]).max(initial=0) for part in list(chain)[:3])
    np.testing.assert_allclose(entropy(*chain), [e.entropy for e in exact], rtol=0, atol=1e-10 + 1e-12 * largest)


@SOME
@given(votes_of_sources())
def test_log_partition_is_the_log_likelihood_of_the_votes(model: VotesOfSources) -> None:
    chain = model.chain()
    exact = [
        likelihood_of_votes(model.start, model.transitions, model.votes[first:last], model.emissions)
        for first, last in itertools.pairwise(model.offsets)
    ]
    np.testing.assert_allclose(log_partition(*chain), np.log(exact), rtol=0, atol=1e-10)
    results = enumerate_sentences(*chain)
    posterior = forward_backward(*chain)
    np.testing.assert_allclose(posterior.marginals, np.concatenate([e.marginals for e in results]), rtol=0, atol=1e-10)


@SOME
@given(chains())
def test_sums_of_pairs_are_those_of_the_tokens(chain: Chain) -> None:
    by_token = forward_backward(*chain, pairs="token").pair_marginals
    by_sentence = forward_backward(*chain, pairs="sentence")
    summed = forward_backward(*chain, pairs="sum")
    assert by_token is not None
    sums = [by_token[first:last].sum(0) for first, last in itertools.pairwise(chain.offsets)]
    np.testing.assert_allclose(by_sentence.pair_marginals, sums, rtol=0, atol=1e-12)
    np.testing.assert_allclose(summed.pair_marginals, by_token.sum(0), rtol=0, atol=1e-12)


@MANY
@given(chains())
def test_best_path_has_the_best_score(chain: Chain) -> None:
    path = best_path(*chain)
    for s, exact in enumerate(enumerate_sentences(*chain)):
        first, last = chain.offsets[s : s + 2]
        start = chain.start if chain.start.ndim == 1 else chain.start[s]
        moves = chain.transitions if chain.transitions.ndim == 2 else chain.transitions[first:last]
        own = scores_of(path[None, first:last], start, moves, chain.evidence[first:last])
        assert own[0] == pytest.approx(exact.best_score, rel=1e-13, abs=1e-13)


@SOME
@given(chains(widest=2.0))
def test_ties_go_to_the_lower_label_from_the_first_token_on(chain: Chain) -> None:
    # Small whole numbers: many paths with exactly the same score.
    start, transitions, evidence = (np.round(part) for part in list(chain)[:3])
    exact = enumerate_sentences(start, transitions, evidence, chain.offsets)
    assert (
        best_path(start, transitions, evidence, chain.offsets).tolist()
        == np.concatenate([e.best for e in exact]).astype(int).tolist()
    )


@SOME
@given(chains(widest=30.0))
def test_float32_is_as_good_as_its_numbers(chain: Chain) -> None:
    exact = enumerate_sentences(*chain.rounded())
    single = [part.astype(np.float32) for part in list(chain)[:3]]
    posterior = forward_backward(*single, chain.offsets, pairs="token")
    assert posterior.marginals.dtype == np.float32
    np.testing.assert_allclose(posterior.log_partition, [e.log_partition for e in exact], rtol=0, atol=1e-10)
    np.testing.assert_allclose(posterior.marginals, np.concatenate([e.marginals for e in exact]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(posterior.pair_marginals, np.concatenate([e.pairs for e in exact]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(posterior.marginals.sum(1), 1, rtol=0, atol=1e-6)
    summed = forward_backward(*single, chain.offsets, pairs="sum").pair_marginals
    np.testing.assert_allclose(summed, sum(e.pairs.sum(0) for e in exact), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_million_tokens_in_one_sentence(kind: type) -> None:
    chain = chain_of(7, 3, [1_000_000], spread=3.0)
    potentials = [part.astype(kind) for part in list(chain)[:3]]
    potentials[1][0, 2] = -np.inf
    posterior = forward_backward(*potentials, chain.offsets, pairs="sum")
    assert posterior.pair_marginals is not None
    assert np.isfinite(posterior.log_partition).all()
    assert np.abs(posterior.marginals.sum(1, dtype=np.float64) - 1).max() < 1e-6
    assert posterior.pair_marginals.sum() == pytest.approx(999_999, rel=1e-9)
    assert posterior.pair_marginals[0, 2] == 0
    # What is far away does not matter.
    piece = forward_backward(*potentials[:2], potentials[2][499_000:501_000], [0, 2_000])
    np.testing.assert_allclose(posterior.marginals[499_500:500_500], piece.marginals[500:1_500], rtol=0, atol=1e-6)
    assert len(best_path(*potentials, chain.offsets)) == 1_000_000


def test_evidence_beyond_the_range_of_doubles_is_still_exact() -> None:
    # Label 1 falls 1,200 nats behind and wins by 300 in the end: scaled probabilities alone would have lost it.
    evidence = np.array([[0.0, -400.0], [0.0, -400.0], [0.0, -400.0], [-1500.0, 0.0]])
    stay = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    posterior = forward_backward([0.0, 0.0], stay, evidence, [0, 4], pairs="sum")
    np.testing.assert_array_equal(posterior.marginals.round(12), [[0, 1]] * 4)
    assert posterior.log_partition[0] == pytest.approx(-1200, abs=1e-9)
    assert best_path([0.0, 0.0], stay, evidence, [0, 4]).tolist() == [1, 1, 1, 1]


def test_one_token_and_no_token() -> None:
    start, transitions = np.log([0.25, 0.75]), np.log(np.full((2, 2), 0.5))
    evidence = np.log([[0.5, 0.5], [0.4, 0.8]])
    posterior = forward_backward(start, transitions, evidence, [0, 0, 1, 1, 2, 2], pairs="sum")
    np.testing.assert_allclose(posterior.log_partition, [0, np.log(0.5), 0, np.log(0.7), 0], atol=1e-12)
    np.testing.assert_allclose(posterior.marginals, [[0.25, 0.75], [1 / 7, 6 / 7]], atol=1e-12)
    np.testing.assert_array_equal(posterior.pair_marginals, np.zeros((2, 2)))
    assert best_path(start, transitions, evidence, [0, 0, 1, 1, 2, 2]).tolist() == [1, 1]


def test_nothing_at_all() -> None:
    posterior = forward_backward(np.zeros(2), np.zeros((2, 2)), np.zeros((0, 2)), [0], pairs="token")
    assert posterior.log_partition.shape == (0,) and posterior.marginals.shape == (0, 2)
    assert best_path(np.zeros(2), np.zeros((2, 2)), np.zeros((0, 2)), [0, 0]).shape == (0,)


@pytest.mark.parametrize("token_wise", [False, True])
def test_a_sentence_is_computed_alone_and_inputs_stay(token_wise: bool) -> None:
    chain = chain_of(3, 4, [5, 1, 0, 30, 2], token_wise=token_wise, own_start=True, forbidden=0.2)
    copies = [part.copy() for part in chain]
    together = forward_backward(*chain)
    for s, (first, last) in enumerate(itertools.pairwise(chain.offsets)):
        moves = chain.transitions[first:last] if token_wise else chain.transitions
        alone = forward_backward(chain.start[s], moves, chain.evidence[first:last], [0, last - first])
        np.testing.assert_array_equal(alone.marginals, together.marginals[first:last])
        assert alone.log_partition[0] == together.log_partition[s]
    for part, copy in zip(chain, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_transitions_of_first_tokens_are_not_read() -> None:
    chain = chain_of(5, 3, [3, 2], token_wise=True)
    spoiled = chain.transitions.copy()
    spoiled[[0, 3]] = np.nan
    expected = forward_backward(*chain, pairs="token")
    met = forward_backward(chain.start, spoiled, chain.evidence, chain.offsets, pairs="token")
    np.testing.assert_array_equal(met.pair_marginals, expected.pair_marginals)
    np.testing.assert_array_equal(
        best_path(chain.start, spoiled, chain.evidence, chain.offsets),
        best_path(chain.start, chain.transitions, chain.evidence, chain.offsets),
    )


@pytest.mark.parametrize("function", [forward_backward, log_partition, entropy, best_path])
@pytest.mark.parametrize("where", ["start", "transitions", "evidence"])
def test_an_impossible_sentence_is_named(function, where: str) -> None:  # noqa: ANN001
    chain = chain_of(1, 2, [2, 3], own_start=True, token_wise=True)
    if where == "start":
        chain.start[1] = -np.inf
    elif where == "transitions":
        chain.transitions[4] = -np.inf
    else:
        chain.evidence[3] = -np.inf
    with pytest.raises(DataError, match=r"sentence 1 \(tokens 2 to 4\) has no possible label sequence"):
        function(*chain)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["start", "transitions", "evidence"])
def test_numbers_that_cannot_be_used_are_named(name: str, value: float) -> None:
    chain = chain_of(1, 2, [2, 3])
    getattr(chain, name)[..., 1] = value
    with pytest.raises(DataError, match=rf"{name}\[0|{name}\[1"):
        forward_backward(*chain)


@pytest.mark.parametrize(
    ("start", "transitions", "evidence", "offsets", "message"),
    [
        ((2,), (2, 2), (3, 2, 1), [0, 3], "evidence must be"),
        ((2,), (2, 2), (3, 0), [0, 3], "evidence must be"),
        ((3,), (2, 2), (3, 2), [0, 3], "start must be"),
        ((2,), (2, 3), (3, 2), [0, 3], "transitions must be"),
        ((2,), (2, 2, 2), (3, 2), [0, 3], "transitions must be"),
        ((2,), (2, 2), (3, 2), [0, 2], "offsets must"),
        ((2,), (2, 2), (3, 2), [0, 3, 1, 3], "offsets must"),
        ((2,), (2, 2), (3, 2), [], "offsets must"),
    ],
)
def test_shapes_that_do_not_fit(
    start: tuple[int, ...], transitions: tuple[int, ...], evidence: tuple[int, ...], offsets: list[int], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        forward_backward(np.zeros(start), np.zeros(transitions), np.zeros(evidence), offsets)


def test_unknown_kind_of_pairs_and_of_numbers() -> None:
    chain = chain_of(1, 2, [2])
    with pytest.raises(DataError, match="pairs is 'all'"):
        forward_backward(*chain, pairs="all")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="float32 or float64"):
        forward_backward(chain.start.astype(complex), *list(chain)[1:])


def test_importing_the_chain_does_not_load_torch() -> None:
    code = "import sys, tagweave.chain; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0

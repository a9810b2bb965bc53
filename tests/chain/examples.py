"""Random chains for the tests: packed, of mixed lengths, with forbidden moves, each with at least one possible path."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from chain.enumeration import Floats, Integers, evidence_of_votes, log


@dataclass(frozen=True)
class Chain:
    """Potentials and offsets, in the order of the functions under test."""

    start: Floats
    transitions: Floats
    evidence: Floats
    offsets: Integers

    def __iter__(self):  # noqa: ANN204
        return iter((self.start, self.transitions, self.evidence, self.offsets))

    def rounded(self) -> "Chain":
        """The same with numbers that float32 holds exactly, still as float64."""
        start, transitions, evidence = (a.astype(np.float32).astype(np.float64) for a in list(self)[:3])
        return Chain(start, transitions, evidence, self.offsets)


def chain_of(
    seed: int,
    labels: int,
    lengths: list[int],
    *,
    token_wise: bool = False,
    own_start: bool = False,
    forbidden: float = 0.0,
    spread: float = 1.0,
) -> Chain:
    """Potentials that need not be normalised; `spread` is their standard deviation, `forbidden` the share of -inf."""
    generator = np.random.default_rng(seed)
    offsets = np.cumsum([0, *lengths])
    tokens = int(offsets[-1])
    start = generator.normal(size=(len(lengths), labels) if own_start else labels) * spread
    transitions = generator.normal(size=(tokens, labels, labels) if token_wise else (labels, labels)) * spread
    evidence = generator.normal(size=(tokens, labels)) * spread
    # A path through each sentence on which nothing is forbidden.
    path = generator.integers(labels, size=tokens)
    firsts = [int(first) for first, length in zip(offsets, lengths, strict=False) if length]
    moves = np.setdiff1d(np.arange(tokens), firsts)
    for array in (start, transitions, evidence):
        banned = generator.random(array.shape) < forbidden
        if array is evidence:
            banned[np.arange(tokens), path] = False
        elif array is transitions:
            banned[(moves, path[moves - 1], path[moves]) if token_wise else (path[moves - 1], path[moves])] = False
        elif own_start:
            banned[np.flatnonzero(lengths), path[firsts]] = False
        else:
            banned[path[firsts]] = False
        array[banned] = -np.inf
    return Chain(start, transitions, evidence, offsets)


@st.composite
def chains(draw: st.DrawFn, longest: int = 6, most_labels: int = 5, widest: float = 400.0) -> Chain:
    """Any chain that can still be enumerated; the widest do not fit between the smallest and the largest double."""
    return chain_of(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, most_labels)),
        draw(st.lists(st.integers(0, longest), min_size=1, max_size=4)),
        token_wise=draw(st.booleans()),
        own_start=draw(st.booleans()),
        forbidden=draw(st.sampled_from([0.0, 0.2, 0.6])),
        spread=draw(st.sampled_from([1.0, 10.0, widest])),
    )


@dataclass(frozen=True)
class VotesOfSources:
    """A hidden Markov model over several sources, as probabilities, and votes drawn from it (-1 is silence)."""

    start: Floats
    transitions: Floats
    emissions: Floats
    votes: Integers
    offsets: Integers

    def chain(self) -> Chain:
        """The model as potentials."""
        evidence = evidence_of_votes(self.votes, self.emissions)
        return Chain(log(self.start), log(self.transitions), evidence, self.offsets)


def _distributions(generator: np.random.Generator, shape: tuple[int, ...], zeros: float) -> Floats:
    """Rows that sum to one, some entries exactly zero."""
    weights: NDArray[np.float64] = generator.exponential(size=shape) * (generator.random(shape) >= zeros)
    weights[..., 0] += (weights.sum(-1) == 0).astype(float)
    return weights / weights.sum(-1, keepdims=True)


@st.composite
def votes_of_sources(draw: st.DrawFn) -> VotesOfSources:
    """Votes of up to four sources on up to six tokens with up to five labels."""
    labels, sources = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 6 if labels < 4 else 4), min_size=1, max_size=3))
    zeros = draw(st.sampled_from([0.0, 0.4]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    start = _distributions(generator, (labels,), zeros)
    transitions = _distributions(generator, (labels, labels), zeros)
    emissions = _distributions(generator, (sources, labels, labels), zeros)
    votes = []
    for length in lengths:
        following = start
        for _ in range(length):
            label = generator.choice(labels, p=following)
            following = transitions[label]
            row = [generator.choice(labels, p=emissions[k, label]) for k in range(sources)]
            votes.append([vote if generator.random() < 0.7 else -1 for vote in row])
    offsets = np.cumsum([0, *lengths])
    return VotesOfSources(start, transitions, emissions, np.array(votes, np.int64), offsets)

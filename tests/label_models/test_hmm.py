from itertools import product

import numpy as np
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.label_models import HMM
from tagweave.observations import observe
from tagweave.soft_labels import SoftLabels


def simulated(sentences: int = 300, seed: int = 0) -> Corpus:
    """Sentences with hidden PER and LOC tokens, seen by a reliable, a confused and a narrow source."""
    chance = np.random.default_rng(seed)
    moves = np.array([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.6, 0.1, 0.3]])
    confusion = {
        "reliable": np.array([[0.97, 0.02, 0.01], [0.2, 0.78, 0.02], [0.2, 0.02, 0.78]]),
        "confused": np.array([[0.95, 0.03, 0.02], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]),
        "narrow": np.array([[0.99, 0.0, 0.01], [0.99, 0.0, 0.01], [0.4, 0.0, 0.6]]),
    }
    types = ("O", "LOC", "PER")
    documents = []
    for number in range(sentences):
        labels = [0]
        for _ in range(int(chance.integers(1, 20))):
            labels.append(int(chance.choice(3, p=moves[labels[-1]])))
        said = {name: [int(chance.choice(3, p=rows[label])) for label in labels] for name, rows in confusion.items()}
        sources = {name: [Span(t, t + 1, types[v]) for t, v in enumerate(votes) if v] for name, votes in said.items()}
        gold = [Span(t, t + 1, types[label]) for t, label in enumerate(labels) if label]
        documents.append(Document(f"d{number}", ["w"] * len(labels), entities=gold, sources=sources))
    return Corpus.from_documents(documents, types[1:])


def with_taggers(corpus: Corpus, count: int) -> Corpus:
    """With more sources, which give a probability for every label."""
    for number in range(count):
        chance = np.random.default_rng(number)
        said = chance.dirichlet(np.full(5, 0.3), int(corpus.offsets[-1])).astype(np.float32)
        corpus = corpus.with_source(f"tagger {number}", SoftLabels(corpus.types, corpus.offsets, said))
    return corpus


def labels_of(corpus: Corpus) -> list[tuple[int, int, int, str]]:
    return [
        (number, token, token, span.type)
        for number, document in enumerate(corpus)
        for span in document.entities or ()
        for token in range(span.start, span.end)
    ]


@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("silence", ["never", "token", "sentence"])
@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_the_objective_never_falls(state_space: str, silence: str, strength: float) -> None:
    model = HMM(state_space=state_space, silence=silence, strength=strength, iterations=30, tolerance=0)  # type: ignore[arg-type]
    history = [record["objective"] for record in model.fit(simulated(100)).history_]
    assert len(history) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in zip(history, history[1:], strict=False))


@pytest.mark.parametrize(("trust", "weight"), [(0.0, 1.0), (0.4, 1.0), (0.4, 0.3), (1.0, 0.3)])
def test_the_objective_never_falls_beside_a_tagger(trust: float, weight: float) -> None:
    model = HMM(silence="never", iterations=30, tolerance=0, strength=0.1, trust=trust, weight=weight)
    model.fit(with_taggers(simulated(100), 1))
    history = [record["objective"] for record in model.history_]
    assert len(history) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in zip(history, history[1:], strict=False))
    assert [table.title.split()[1] for table in model.tables()[:-1]] == ["reliable", "confused", "narrow"]


@pytest.mark.parametrize(("taggers", "trust"), [(0, 0.4), (1, 0.0), (1, 0.4), (1, 1.0), (2, 0.4), (2, 0.75)])
@pytest.mark.parametrize("weight", [0.2, 1.0])
def test_likelihood_is_the_sum_over_all_label_sequences(taggers: int, trust: float, weight: float) -> None:
    corpus = with_taggers(simulated(60), taggers)
    model = HMM(state_space="io", silence="never", iterations=3, tolerance=0, trust=trust, weight=weight).fit(corpus)
    short = corpus.subset([number for number in range(60) if np.diff(corpus.offsets)[number] <= 6][:5])
    start, transitions, emissions = model.learned().arrays()
    own = max(0, 1 - taggers * trust)
    start, transitions = start**own, transitions**own
    observations = observe(short.select_sources(["reliable", "confused", "narrow"]), "io", "never")
    evidence = np.exp(observations.log_evidence(emissions[:3])) ** weight
    for tagger in short.sources.values():
        if isinstance(tagger, SoftLabels):
            evidence *= np.maximum(tagger.io(), 1e-6) ** trust
    marginals = np.zeros_like(evidence)
    for first, last in zip(short.offsets[:-1], short.offsets[1:], strict=True):
        for path in product(range(3), repeat=int(last - first)):
            weight = start[path[0]] * np.prod([evidence[first + t, z] for t, z in enumerate(path)])
            weight *= np.prod([transitions[a, b] for a, b in zip(path, path[1:], strict=False)])
            for t, label in enumerate(path):
                marginals[first + t, label] += weight
    marginals /= marginals.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(short).io(), marginals, atol=1e-6)


def test_it_learns_whom_to_believe() -> None:
    corpus = simulated()
    model = HMM(state_space="io", silence="never", strength=0.02, iterations=100).fit(corpus)
    reliable, confused, narrow = model.learned().emissions
    assert reliable[1, 1] > confused[1, 1] + 0.15
    assert narrow[1, 1] < 0.01
    predicted, gold = set(labels_of(model.predict(corpus))), set(labels_of(corpus))
    f1 = 2 * len(predicted & gold) / (len(predicted) + len(gold))
    source = set(labels_of(corpus.with_entities(corpus.sources["reliable"])))  # type: ignore[arg-type]
    assert f1 > 2 * len(source & gold) / (len(source) + len(gold)) + 0.01


def test_rows_are_distributions_also_for_types_without_votes() -> None:
    corpus = Corpus.from_documents(list(simulated(50)), ("LOC", "NEVER", "PER"))
    with pytest.warns(UserWarning, match="no source votes for NEVER"):
        model = HMM().fit(corpus)
    for array in model.parameters().values():
        np.testing.assert_allclose(array.sum(axis=-1), 1, atol=1e-9)
    assert model.predict_proba(corpus).probabilities[:, 3:5].max() < 0.05


def test_it_says_when_it_has_converged() -> None:
    corpus = simulated(100)
    assert len(HMM(iterations=200, tolerance=1e-4).fit(corpus).history_) < 100
    assert len(HMM(iterations=4, tolerance=0).fit(corpus).history_) == 4


def test_both_decoders_agree_where_votes_agree() -> None:
    corpus = simulated(50)
    paths = [HMM(decoding=decoder).fit(corpus).predict(corpus) for decoder in ("viterbi", "marginals")]
    first, second = (set(labels_of(predicted)) for predicted in paths)
    assert len(first & second) > 0.95 * len(first | second)

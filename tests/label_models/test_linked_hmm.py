from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, UsageError
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import LabelModel, LinkedHMM, MajorityVote, create_label_model, links_from_sources
from tagweave.label_models.linked_events import Events, Evidence, expect, speaking, weighted_logs
from tagweave.label_models.links import link_votes, same_label, where_linked
from tagweave.labels import LabelSet, StateSpace
from tagweave.observations import ABSTAIN, Observations, observe
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")


def tiny() -> Corpus:
    """Short documents with votes for entities and O, a coarse type, a span with a probability, and links."""
    return Corpus.from_documents(
        [
            Document(
                "d0",
                list("abcd"),
                sources={
                    "one": [Span(0, 2, "PER"), Span(3, 4, "O")],
                    "two": [Span(1, 2, "LOC"), Span(2, 4, "O")],
                    "coarse": [Span(0, 1, "ENT")],
                    "scored": [Span(1, 3, "PER", 0.7)],
                },
                links={"same": [Span(0, 3, "same")], "mixed": [Span(1, 3, "different"), Span(2, 4, "same")]},
            ),
            Document("d1", [], sources={"one": [], "two": [], "coarse": [], "scored": []}, links={"same": []}),
            Document(
                "d2",
                list("ab"),
                sources={"one": [Span(0, 1, "LOC")], "two": None, "coarse": [Span(1, 2, "ENT")], "scored": []},
                links={"same": None, "mixed": [Span(0, 2, "different")]},
            ),
            Document("d3", ["a"], sources={"two": [Span(0, 1, "O")]}, links={"same": [Span(0, 1, "same")]}),
        ],
        TYPES,
        {"ENT": TYPES},
    )


def evidence_of(corpus: Corpus, state_space: StateSpace) -> Evidence:
    return Evidence(observe(corpus, state_space, "always"), link_votes(corpus, list(corpus.links)))


def chance_events(evidence: Evidence, seed: int = 0) -> Events:
    chance = np.random.default_rng(seed)
    labels, rules, links = evidence.rules.labels, len(evidence.rules.sources), evidence.links.shape[1]
    size = len(labels)
    return Events(
        chance.random(size) * labels.legal_starts,
        chance.random((size, size)) * labels.legal_moves,
        *(chance.random(shape) for shape in ((rules, size, 2), (rules, 2), (links, 2), (links, 2))),
    ).normalised()


def vote_probability(rules: Observations, right: np.ndarray[Any, Any], token: int, label: int) -> Iterator[tuple]:  # type: ignore[type-arg]
    """For each source that votes on a token: its number, and the probability that its vote is right, and wrong."""
    size = len(rules.labels)
    for source in range(len(rules.sources)):
        said = rules.source(source)[token]
        if said.sum() > 0:
            said = np.maximum(said, 0 if source in rules.hard else 1e-6)
            is_right = right[source, label, 0] * said[label]
            is_wrong = right[source, label, 1] / (size - 1) * (said.sum() - said[label])
            yield source, is_right, is_wrong


def enumerated(learned: Events, evidence: Evidence, corpus: Corpus) -> tuple[Events, float, np.ndarray[Any, Any]]:
    """Expected numbers of events, log-likelihood and marginals, by a sum over all label sequences."""
    rules, links = evidence
    size, same = len(rules.labels), same_label(rules.labels)
    total, log_likelihood = [np.zeros_like(array) for array in learned], 0.0
    marginals = np.zeros((len(links), size))
    for first, last in pairwise(corpus.offsets.tolist()):
        found, weights = [np.zeros_like(array) for array in learned], 0.0
        shares = np.zeros((last - first, size))
        for path in product(range(size), repeat=last - first) if last > first else ():
            weight, seen = learned.start[path[0]], [np.zeros_like(array) for array in learned]
            seen[0][path[0]] = 1
            for place, label in enumerate(path):
                for source, is_right, is_wrong in vote_probability(rules, learned.judgements, first + place, label):
                    weight *= is_right + is_wrong
                    seen[2][source, label] += np.array([is_right, is_wrong]) / (is_right + is_wrong)
            for place, (before, after) in enumerate(pairwise(path), 1):
                weight *= learned.transitions[before, after]
                seen[1][before, after] += 1
                for rule, vote in enumerate(links[first + place]):
                    if vote != 0:
                        wrong = int((vote == 1) != same[before, after])
                        weight *= learned.link_judgements[rule, wrong]
                        seen[4][rule, wrong] += 1
            weights += weight
            shares[np.arange(len(path)), path] += weight
            found = [a + weight * b for a, b in zip(found, seen, strict=True)]
        if last > first:
            total = [a + b / weights for a, b in zip(total, found, strict=True)]
            log_likelihood += np.log(weights)
            marginals[first:last] = shares / weights
    return Events(*total), log_likelihood, marginals


@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("with_links", [True, False])
def test_likelihood_and_expected_events_are_sums_over_all_label_sequences(
    state_space: StateSpace, with_links: bool
) -> None:
    corpus = tiny()
    evidence = evidence_of(corpus, state_space)
    if not with_links:
        evidence = evidence._replace(links=np.zeros_like(evidence.links))
    learned = chance_events(evidence)
    wanted, wanted_likelihood, _ = enumerated(learned, evidence, corpus)
    expected, log_likelihood = expect(learned, evidence, in_order=True)
    assert log_likelihood == pytest.approx(wanted_likelihood)
    for found, sought in zip(expected, wanted, strict=True):
        np.testing.assert_allclose(found, sought, atol=1e-9)


def test_naive_bayes_is_a_sum_over_the_labels_of_each_token() -> None:
    corpus = tiny()
    evidence = evidence_of(corpus, "io")._replace(links=np.zeros((7, 0), np.int8))
    learned = chance_events(evidence)
    learned = learned._replace(transitions=np.tile(learned.start, (3, 1)))
    expected, log_likelihood = expect(learned, evidence, in_order=False)
    single = np.array(
        [
            [
                learned.start[label]
                * np.prod([a + b for _, a, b in vote_probability(evidence.rules, learned.judgements, token, label)])
                for label in range(3)
            ]
            for token in range(7)
        ]
    )
    assert log_likelihood == pytest.approx(np.log(single.sum(axis=1)).sum())
    np.testing.assert_allclose(expected.start, (single / single.sum(axis=1, keepdims=True)).sum(axis=0))
    assert not expected.transitions.any()


@pytest.mark.parametrize("state_space", ["io", "bio"])
def test_marginals_of_a_fitted_model_are_sums_over_all_label_sequences(state_space: StateSpace) -> None:
    corpus = tiny()
    model = LinkedHMM(state_space=state_space, silence="always", iterations=3, balance_prior=0.1).fit(corpus)
    evidence = evidence_of(corpus, state_space)
    _, _, marginals = enumerated(model.learned(), evidence, corpus)
    soft = model.predict_proba(corpus)
    np.testing.assert_allclose(soft.io() if state_space == "io" else soft.probabilities, marginals, atol=1e-6)


def test_the_recorded_likelihood_counts_who_speaks() -> None:
    corpus = tiny()
    model = LinkedHMM(silence="always", iterations=1).fit(corpus)
    first = LinkedHMM(silence="always", iterations=0).fit(corpus).learned()
    evidence = evidence_of(corpus, "io")
    spoken = speaking(corpus, evidence.rules)
    np.testing.assert_array_equal(spoken, [[4, 2], [4, 1], [2, 4], [2, 4]])
    silence = float((spoken * np.log(first.speaking)).sum())
    silence += 3 * np.log(0.5) + 4 * np.log(0.5)  # links: 2 of 3 pairs, and 3 of 4
    _, log_likelihood, _ = enumerated(first, evidence, corpus)
    assert model.history_[0]["log_likelihood"] == pytest.approx(log_likelihood + silence)


def test_what_was_not_counted_may_be_impossible() -> None:
    counts = Events(*(np.array(row) for row in ([1.0, 0], [2.0, 0], [0.0], [0.0], [0.0], [0.0])))
    learned = Events(*(np.array(row) for row in ([0.5, 0], [0.5, 0.5], [0.0], [0.0], [0.0], [0.0])))
    assert weighted_logs(counts, learned) == pytest.approx(3 * np.log(0.5))


RIGHT = {"sharp": 0.95, "fair": 0.75, "poor": 0.5}
LINKS = {"sure": 0.95, "loose": 0.7}


def simulated(documents: int = 250, seed: int = 0, links: bool = True) -> Corpus:
    """Draws from the model itself: rules that vote on half of the tokens for any label, links on half of the pairs."""
    chance = np.random.default_rng(seed)
    names, moves = ("O", *TYPES), np.array([[0.7, 0.15, 0.15], [0.3, 0.6, 0.1], [0.3, 0.1, 0.6]])
    made = []
    for number in range(documents):
        labels = [0]
        for _ in range(int(chance.integers(1, 30))):
            labels.append(int(chance.choice(3, p=moves[labels[-1]])))
        sources: dict[str, list[Span]] = {name: [] for name in RIGHT}
        linked: dict[str, list[Span]] = {name: [] for name in LINKS}
        for token, label in enumerate(labels):
            for name, right in RIGHT.items():
                if chance.random() < 0.5:
                    wrong = [other for other in range(3) if other != label]
                    said = label if chance.random() < right else int(chance.choice(wrong))
                    sources[name].append(Span(token, token + 1, names[said]))
            for name, right in LINKS.items() if token else ():
                if chance.random() < 0.5:
                    same = (labels[token - 1] == label) == (chance.random() < right)
                    linked[name].append(Span(token - 1, token + 1, "same" if same else "different"))
        gold = [Span(t, t + 1, names[label]) for t, label in enumerate(labels) if label]
        made.append(
            Document(f"d{number}", ["w"] * len(labels), entities=gold, sources=sources, links=linked if links else {})
        )
    return Corpus.from_documents(made, TYPES)


FREE: dict[str, Any] = {"silence": "always", "accuracy_prior": 0.01, "balance_prior": 0.01, "iterations": 100}


def test_it_learns_how_often_rules_speak_and_are_right() -> None:
    learned = LinkedHMM(**FREE).fit(simulated()).learned()
    for found, right in zip(learned.judgements[..., 0], RIGHT.values(), strict=True):
        np.testing.assert_allclose(found, right, atol=0.08)
    np.testing.assert_allclose(learned.speaking[:, 0], 0.5, atol=0.03)
    np.testing.assert_allclose(learned.link_judgements[:, 0], list(LINKS.values()), atol=0.05)
    np.testing.assert_allclose(learned.link_speaking[:, 0], 0.5, atol=0.03)
    np.testing.assert_allclose(learned.transitions[0], [0.7, 0.15, 0.15], atol=0.08)


def token_accuracy(model: LabelModel, corpus: Corpus) -> float:
    labels = LabelSet(TYPES, "io")
    assert corpus.entities is not None
    found = model.fit(corpus).predict_proba(corpus).io().argmax(axis=1)
    return float((found == corpus.entities.labels(corpus.offsets, labels)).mean())


def test_order_helps_and_links_help_more() -> None:
    corpus = simulated()
    variants: list[dict[str, Any]] = [{"chain": False}, {"links": False}, {}]
    bare, hmm, linked = (token_accuracy(LinkedHMM(**FREE, **settings), corpus) for settings in variants)
    assert bare + 0.03 < hmm
    assert hmm + 0.03 < linked


@pytest.mark.parametrize("settings", [{}, {"links": False}, {"chain": False}, {"probabilities": "votes"}])
@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("priors", [0.0, 0.1, 3.0])
def test_the_objective_never_falls(settings: dict[str, Any], state_space: str, priors: float) -> None:
    corpus = simulated(60)
    scored = corpus.sources["fair"]
    assert isinstance(scored, Annotations)
    scored = replace(scored, scores=np.linspace(0.3, 1, len(scored), dtype=np.float32))
    corpus = corpus.with_source("fair", scored).with_source("tagger", MajorityVote().fit(corpus).predict_proba(corpus))
    model = create_label_model(
        "linked-hmm",
        {
            "state_space": state_space,
            "accuracy_prior": priors,
            "balance_prior": priors,
            "iterations": 15,
            "tolerance": -1,
            **settings,
        },
    ).fit(corpus)
    history = [record["objective"] for record in model.history_]
    assert len(history) == 15
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(history))


def test_without_links_it_is_a_hidden_markov_model() -> None:
    with_links, without = simulated(50), simulated(50, links=False)
    a, b = LinkedHMM(links=False).fit(with_links), LinkedHMM().fit(without)
    np.testing.assert_allclose(
        a.predict_proba(with_links).probabilities, b.predict_proba(without).probabilities, atol=1e-6
    )
    assert not np.allclose(
        LinkedHMM().fit(with_links).predict_proba(with_links).probabilities, b.predict_proba(without).probabilities
    )


def test_links_are_remembered_by_name(tmp_path: Path) -> None:
    corpus = simulated(50)
    model = LinkedHMM().fit(corpus)
    model.save(tmp_path / "model")
    loaded = LabelModel.load(tmp_path / "model")
    assert loaded.links_ == ("sure", "loose")
    turned = replace(corpus, links={**dict(list(corpus.links.items())[::-1]), "other": corpus.links["sure"]})
    np.testing.assert_array_equal(loaded.predict_proba(turned).probabilities, model.predict_proba(corpus).probabilities)


def test_a_corpus_without_links_is_read_as_if_linking_rules_were_silent() -> None:
    corpus = simulated(50)
    model = LinkedHMM().fit(corpus)
    silent = {name: column.where(np.zeros(len(column), bool)) for name, column in corpus.links.items()}
    np.testing.assert_array_equal(
        model.predict_proba(replace(corpus, links={})).probabilities,
        model.predict_proba(replace(corpus, links=silent)).probabilities,
    )
    with pytest.raises(UsageError, match="no linking rule is called 'loose'"):
        model.predict(replace(corpus, links={"sure": corpus.links["sure"]}))


def test_a_tagger_among_the_sources_is_read_by_its_likelihoods() -> None:
    corpus = simulated(100)
    assert corpus.entities is not None
    labels = LabelSet(TYPES)
    sure = np.full((int(corpus.offsets[-1]), 5), 0.01, np.float32)
    sure[np.arange(len(sure)), corpus.entities.labels(corpus.offsets, labels)] = 0.96
    taught = corpus.with_source("tagger", SoftLabels(TYPES, corpus.offsets, sure))
    assert token_accuracy(LinkedHMM(trust=1), taught) > 0.98
    model = LinkedHMM(trust=1).fit(taught)
    right = model.learned().judgements[3]
    assert right[:, 0].max() == 1
    assert not right[:, 1].any()
    assert model.tables()[0].rows[3] == ("tagger", None, None, None, None)
    as_votes = LinkedHMM(probabilities="votes").fit(taught)
    assert as_votes.learned().judgements[3, :, 0].min() > 0.8


def test_tables_name_rules_and_links() -> None:
    rules, links, moves = LinkedHMM(**FREE).fit(simulated(50)).tables()
    assert [row[0] for row in rules.rows] == list(RIGHT)
    assert rules.columns == ("rule", "votes", "O", *TYPES)
    assert [row[0] for row in links.rows] == list(LINKS)
    assert 40 < links.rows[0][1] < 60 < 85 < links.rows[0][2]  # type: ignore[operator]
    assert moves.rows[0][0] == "start"
    assert len(LinkedHMM(links=False).fit(simulated(50)).tables()) == 2


@pytest.mark.parametrize(("name", "value"), [("accuracy", 1.0), ("accuracy_prior", -1), ("balance_prior", -0.5)])
def test_priors_that_make_no_sense_are_errors(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{name} is {value}"):
        create_label_model("linked-hmm", {name: value})


def test_links_as_numbers() -> None:
    votes = link_votes(tiny(), ["same", "mixed"])
    assert votes.tolist() == [[0, 0], [1, 0], [1, -1], [0, 1], [0, 0], [0, -1], [0, 0]]
    assert link_votes(replace(tiny(), links={}), ["same"]).tolist() == [[0]] * 7


def test_in_one_rule_different_wins_over_same() -> None:
    links = {"rule": [Span(1, 3, "different"), Span(0, 4, "same"), Span(0, 4, "same")]}
    corpus = Corpus.from_documents([Document("d", list("abcd"), sources={"a": []}, links=links)], TYPES)
    assert link_votes(corpus, ["rule"])[:, 0].tolist() == [0, 1, -1, 1]


def test_same_means_continuing() -> None:
    names = LabelSet(TYPES, "bio").names
    pairs = [(names[i], names[j]) for i, j in np.argwhere(same_label(LabelSet(TYPES, "bio")))]
    assert pairs == [
        ("O", "O"),
        ("B-LOC", "I-LOC"),
        ("I-LOC", "I-LOC"),
        ("B-PER", "I-PER"),
        ("I-PER", "I-PER"),
    ]
    np.testing.assert_array_equal(same_label(LabelSet(TYPES, "io")), np.eye(3, dtype=bool))


def test_silence_abstains_on_what_is_linked_to_an_entity() -> None:
    votes = {"core": [Span(1, 2, "PER")], "other": []}
    documents = [
        Document("a", list("wxyz"), sources=votes, links={"r": [Span(0, 3, "same")], "s": [Span(1, 3, "different")]}),
        Document("b", list("wxyz"), sources={"core": [], "other": []}, links={"r": [Span(0, 2, "same")], "s": []}),
    ]
    corpus = Corpus.from_documents(documents, TYPES)
    links = link_votes(corpus, ["r", "s"])
    rules = where_linked(links, observe(corpus, "io", "always"), observe(corpus, "io", "token"))
    silent = ABSTAIN
    assert rules.votes.tolist() == [[silent, silent], [2, silent], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]


def test_spans_that_were_links_become_links_again() -> None:
    votes = {
        "core": [Span(1, 2, "PER")],
        "link-a": [Span(0, 2, "PER", 0.5), Span(2, 3, "LOC")],
        "link-b": None,
    }
    corpus = Corpus.from_documents([Document("d", list("abc"), sources=votes, links={"c": []})], TYPES)
    linked = links_from_sources(corpus, ["link-a", "link-b"])
    assert linked[0].sources == {"core": [Span(1, 2, "PER")]}
    assert linked[0].links == {"c": [], "link-a": [Span(0, 2, "same"), Span(2, 3, "same")], "link-b": None}
    assert list(corpus.sources) == ["core", "link-a", "link-b"]
    assert links_from_sources(corpus, [])[0] == corpus[0]


def test_sources_that_cannot_become_links() -> None:
    corpus = simulated(3)
    with pytest.raises(UsageError, match="no source is called 'link-x'"):
        links_from_sources(corpus, ["link-x"])
    soft = corpus.with_source("tagger", MajorityVote().fit(corpus).predict_proba(corpus))
    with pytest.raises(DataError, match="'tagger' gives label probabilities"):
        links_from_sources(soft, ["tagger"])
    named = replace(corpus, links={"fair": corpus.links["sure"]})
    with pytest.raises(DataError, match="called 'fair' already"):
        links_from_sources(named, ["fair"])


def test_links_help_on_published_votes(data_folder: Path) -> None:
    folder = data_folder / "weak" / "laptop-review"
    train, dev = (read(folder / f"{part}.jsonl.gz") for part in ("train", "dev"))
    names = ["tag-CoreDictionary", "link-ExtractedPhrase", "link-ConsecutiveCapitals"]
    train, dev = (links_from_sources(c.select_sources(names), names[1:]) for c in (train, dev))
    scores = [evaluate(dev, LinkedHMM(links=links).fit(train).predict(dev), bootstrap=0).f1 for links in (False, True)]
    assert scores[1] > scores[0] + 0.08

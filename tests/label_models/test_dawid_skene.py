from itertools import product
from pathlib import Path

import numpy as np
import pandas
import pytest

from label_models.simulated_votes import simulate
from tagweave.corpus import Corpus
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import DawidSkene, MajorityVote
from tagweave.label_models.dawid_skene import _without_chain
from tagweave.observations import observe
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")
BALANCE, ACCURACIES, PROPENSITIES = (0.5, 0.3, 0.2), (0.9, 0.8, 0.7, 0.6, 0.85), (0.9, 0.6, 0.8, 0.7, 0.5)


def votes(tokens: int = 3000, seed: int = 0) -> Corpus:
    return simulate(BALANCE, ACCURACIES, PROPENSITIES, tokens, seed).corpus(TYPES)


def classical(iterations: int, **settings: object) -> DawidSkene:
    """The published algorithm, for a fixed number of iterations."""
    return DawidSkene(
        state_space="io", silence="always", start="votes", smoothing=0, iterations=iterations, tolerance=-1, **settings
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("iterations", [1, 2, 15])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_published_algorithm_is_that_of_crowd_kit(iterations: int) -> None:
    from crowdkit.aggregation import DawidSkene as Reference

    simulated = simulate(BALANCE, ACCURACIES, PROPENSITIES, 600, seed=3)
    corpus = simulated.corpus(TYPES)
    token, source = np.nonzero(simulated.votes >= 0)
    columns = {"task": token, "worker": source, "label": simulated.votes[token, source]}
    # Their probabilities are those before the last M-step.
    reference = Reference(n_iter=iterations + 1, tol=-np.inf).fit(pandas.DataFrame(columns))
    model = classical(iterations).fit(corpus)
    spoken = np.unique(token)
    expected = reference.probas_.loc[spoken, [0, 1, 2]].to_numpy()
    np.testing.assert_allclose(model.predict_proba(corpus).io()[spoken], expected, atol=1e-5)


def test_the_e_step_is_the_sum_over_labels() -> None:
    corpus = votes(12)
    model = DawidSkene(state_space="io", silence="never", iterations=3).fit(corpus)
    observations = observe(corpus, "io", "never")
    balance, emissions = model.learned().start, model.learned().emissions
    shares, counts, likelihood = np.zeros(3), np.zeros_like(emissions), 0.0
    for row in observations.votes:
        joint = balance * np.prod([emissions[k, :, vote] for k, vote in enumerate(row)], axis=0)
        likelihood += np.log(joint.sum())
        shares += joint / joint.sum()
        for (k, vote), label in product(enumerate(row), range(3)):
            counts[k, label, vote] += joint[label] / joint.sum()
    counted, log_likelihood = model._expect(observations)
    np.testing.assert_allclose(log_likelihood, likelihood, rtol=1e-9)
    np.testing.assert_allclose(counted.start, shares, rtol=1e-9)
    np.testing.assert_allclose(counted.emissions, counts, atol=1e-9)


@pytest.mark.parametrize("start", ["anchor", "votes"])
@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("smoothing", [0.0, 2.0])
def test_the_objective_never_falls(start: str, state_space: str, smoothing: float) -> None:
    model = DawidSkene(
        start=start, state_space=state_space, smoothing=smoothing, silence="never", iterations=30, tolerance=0
    )  # type: ignore[arg-type]
    history = [record["objective"] for record in model.fit(votes(600)).history_]
    assert len(history) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in zip(history, history[1:], strict=False))


def test_confusion_and_class_balance_are_recovered() -> None:
    simulated = simulate(BALANCE, ACCURACIES, PROPENSITIES, 20_000)
    corpus = simulated.corpus(TYPES)
    model = DawidSkene(state_space="io", silence="always", start="votes", iterations=200).fit(corpus)
    np.testing.assert_allclose(model.learned().start, BALANCE, atol=0.02)
    found = np.diagonal(model.learned().emissions, axis1=1, axis2=2)
    np.testing.assert_allclose(found, np.repeat(np.array(ACCURACIES)[:, None], 3, axis=1), atol=0.04)
    right = [
        (m.fit(corpus).predict_proba(corpus).io().argmax(axis=1) == simulated.labels).mean()
        for m in (model, MajorityVote(silence="always"))
    ]
    assert right[0] > right[1] + 0.01


@pytest.mark.parametrize("probabilities", ["posteriors", "votes"])
def test_a_tagger_beside_the_sources_helps(probabilities: str) -> None:
    simulated = simulate(BALANCE, (0.7, 0.7, 0.7), (1.0, 1.0, 1.0), 3000, seed=1)
    corpus = simulated.corpus(TYPES)
    chance = np.random.default_rng(5)
    seen = np.where(chance.random(3000) < 0.9, simulated.labels, chance.integers(0, 3, 3000))
    tagger = np.full((3000, 5), 0.025, np.float32)
    tagger[np.arange(3000), np.array([0, 1, 3])[seen]] = 0.9
    taught = corpus.with_source("tagger", SoftLabels(TYPES, corpus.offsets, tagger))
    scores = []
    for target in (corpus, taught):
        model = DawidSkene(state_space="io", silence="always", probabilities=probabilities).fit(target)  # type: ignore[arg-type]
        scores.append((model.predict_proba(target).io().argmax(axis=1) == simulated.labels).mean())
    assert scores[1] > scores[0] + 0.05


def test_nothing_depends_on_how_documents_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = votes(300)
    observations = observe(corpus, "io", "always")
    model = classical(3).fit(corpus)
    whole = model._expect_all([observations])[0]
    parts = [model._expect(part)[0] for part in observations.batches(70)]
    assert len(parts) > 3
    total = sum(parts[1:], parts[0])
    np.testing.assert_allclose(total.emissions, whole.emissions)
    assert _without_chain(total.start, total.emissions).transitions.shape == (0, 3)


def test_types_of_sources_of_one_type_need_the_anchor(data_folder: Path) -> None:
    folder = data_folder / "weak" / "bc5cdr"
    corpus = read(folder / "dev.jsonl.gz", types=("Chemical", "Disease"))
    names = [
        n for n in corpus.sources if n.startswith("tag-DictCore") or n in ("tag-Antibiotic", "tag-Disease or Syndrome")
    ]
    corpus = corpus.select_sources(names)
    scores = {
        start: evaluate(corpus, DawidSkene(start=start).fit(corpus).predict(corpus), bootstrap=0).f1  # type: ignore[arg-type]
        for start in ("anchor", "votes")
    }
    assert scores["anchor"] > 0.75
    assert scores["votes"] < scores["anchor"] - 0.1

"""The CRF on top of a tagger: its objective against enumeration of all label sequences; training, saving, resuming."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor

import tiny_encoder
from chain.enumeration import all_sequences, enumerate_sentence, log, scores_of
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels
from tagweave.tagger import Tagger
from tagweave.tagger.crf import Crf, SoftSequences, expected_log_likelihood, legal_pairs
from tagweave.tagger.fitting import Fitting
from tagweave.tagger.targets import Objective, SoftTargets, targets

OFFSETS = np.array([0, 3, 3, 7, 8])
LABELS = 3
ALL_KNOWN = np.ones(8, bool)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scores(labels: int = LABELS, words: int = 8) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Start, transitions, end and emissions."""
    return draw(labels), draw(labels, labels, seed=1), draw(labels, seed=2), draw(words, labels, seed=3)


def rows(words: int = 8, labels: int = LABELS, seed: int = 4) -> NDArray[np.float64]:
    return np.random.default_rng(seed).dirichlet(np.ones(labels), words)


def log_likelihoods(potentials: tuple[Tensor, ...], first: int, last: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """All label sequences of the words from `first` to `last`, and their log-likelihoods."""
    start, transitions, end, emissions = (part.detach().numpy() for part in potentials)
    evidence = emissions[first:last].copy()
    evidence[-1] += end
    sequences = all_sequences(last - first, len(start))
    totals = scores_of(sequences, start, transitions, evidence)
    return sequences, totals - np.logaddexp.reduce(totals)


def by_enumeration(
    potentials: tuple[Tensor, ...], unaries: NDArray[np.float64], offsets: NDArray[np.int64], known: NDArray[np.bool_]
) -> list[float]:
    """The sum over all labels of the known words of their probability times their log-likelihood."""
    values = []
    for first, last in itertools.pairwise(offsets.tolist()):
        if first == last:
            values.append(0.0)
            continue
        sequences, likelihoods = log_likelihoods(potentials, first, last)
        places = np.flatnonzero(known[first:last])
        seen, group = np.unique(sequences[:, places], axis=0, return_inverse=True)
        summed = np.full(len(seen), -np.inf)
        np.logaddexp.at(summed, group, likelihoods)
        values.append(float(unaries[first + places, seen].prod(axis=1) @ summed))
    return values


def test_the_closed_form_is_the_expectation_over_all_sequences() -> None:
    unaries = rows()
    values = expected_log_likelihood(*scores(), torch.from_numpy(unaries), OFFSETS)
    assert values.tolist() == pytest.approx(by_enumeration(scores(), unaries, OFFSETS, ALL_KNOWN))


@pytest.mark.parametrize(
    "unknown", [[0], [2], [1], [0, 2], [4, 5], [3, 6], [3, 4, 6], [0, 1, 2], [7], [2, 3, 4, 5, 6], list(range(8))]
)
def test_unknown_words_are_summed_out(unknown: list[int]) -> None:
    known = ALL_KNOWN.copy()
    known[unknown] = False
    unaries = rows()
    expected = by_enumeration(scores(), unaries, OFFSETS, known)
    unaries[unknown] = np.nan
    values = expected_log_likelihood(*scores(), torch.from_numpy(unaries), OFFSETS, known=known)
    assert values.tolist() == pytest.approx(expected, abs=1e-12)


def test_certain_labels_give_the_likelihood_of_their_sequence() -> None:
    labels = np.array([0, 2, 1, 1, 1, 0, 2, 1])
    values = expected_log_likelihood(*scores(), torch.from_numpy(np.eye(LABELS)[labels]), OFFSETS)
    for value, (first, last) in zip(values.tolist(), itertools.pairwise(OFFSETS.tolist()), strict=True):
        if first < last:
            sequences, likelihoods = log_likelihoods(scores(), first, last)
            assert value == pytest.approx(likelihoods[(sequences == labels[first:last]).all(axis=1)].item())


def test_given_pairs_are_taken_instead_of_the_outer_product() -> None:
    unaries, transitions = torch.from_numpy(rows()), scores()[1]
    outer = unaries.roll(1, 0)[:, :, None] * unaries[:, None, :]
    pairs = draw(8, LABELS, LABELS, seed=6).softmax(2) * unaries.roll(1, 0)[:, :, None]
    plain, same, given = (
        expected_log_likelihood(*scores(), unaries, OFFSETS, chosen) for chosen in (None, outer, pairs)
    )
    moved = ((pairs - outer) * transitions).sum((1, 2))
    assert same.tolist() == pytest.approx(plain.tolist())
    assert (given - plain).tolist() == pytest.approx([float(moved[1:3].sum()), 0, float(moved[4:7].sum()), 0])


@pytest.mark.parametrize("known", [None, np.array([True, False, True, False, True, True, False, False])])
def test_gradients(known: NDArray[np.bool_] | None) -> None:
    potentials = [part.requires_grad_() for part in scores()]
    unaries = torch.from_numpy(rows())
    assert torch.autograd.gradcheck(
        lambda *parts: expected_log_likelihood(*parts, unaries, OFFSETS, known=known), potentials
    )


def test_what_is_forbidden_costs_nothing_without_probability_and_everything_with_it() -> None:
    start, transitions, end, emissions = scores()
    transitions[0, 2] = start[2] = -torch.inf
    parts = [part.requires_grad_() for part in (start, transitions, end, emissions)]
    unaries = np.eye(LABELS)[[0, 1, 2, 0, 2, 1, 1, 1]]
    values = expected_log_likelihood(*parts, torch.from_numpy(unaries), OFFSETS)
    assert torch.isfinite(values).tolist() == [True, True, False, True]
    values[[0, 3]].sum().backward()
    assert all(part.grad is not None and bool(torch.isfinite(part.grad).all()) for part in parts)


BIO = LabelSet(("PER", "LOC"))
OPENS = np.array([True, False])


@pytest.mark.parametrize("seed", range(3))
def test_legal_pairs_are_those_of_a_distribution_over_legal_sequences(seed: int) -> None:
    soft, offsets = rows(6, 5, seed).astype(np.float32), np.array([0, 3, 6])
    unaries, pairs = legal_pairs(soft, offsets, OPENS, np.ones(6, bool))
    later = np.array([1, 2, 4, 5])
    np.testing.assert_allclose(pairs[later].sum(1), unaries[later], atol=1e-6)
    np.testing.assert_allclose(pairs[later].sum(2), unaries[later - 1], atol=1e-6)
    np.testing.assert_allclose(unaries[:, 1::2] + unaries[:, 2::2], soft[:, 1::2] + soft[:, 2::2], rtol=1e-5)
    assert not pairs[:, ~BIO.legal_moves].any()
    assert not unaries[0, ~BIO.legal_starts].any()
    assert unaries[3, ~BIO.legal_starts].all()

    values = expected_log_likelihood(
        *scores(5, 6), torch.from_numpy(unaries).double(), offsets, torch.from_numpy(pairs).double()
    )
    for value, first in zip(values.tolist(), (0, 3), strict=True):
        sequences, likelihoods = log_likelihoods(scores(5, 6), first, first + 3)
        chain = unaries[first, sequences[:, 0]].astype(np.float64)
        for t in (1, 2):
            before = unaries[first + t - 1, sequences[:, t - 1]]
            chain *= pairs[first + t, sequences[:, t - 1], sequences[:, t]] / np.where(before > 0, before, 1)
        assert chain.sum() == pytest.approx(1, abs=1e-5)
        assert value == pytest.approx(float(chain @ likelihoods), abs=1e-4)


def test_rows_that_a_legal_chain_can_have_stay_as_they_are() -> None:
    soft = np.array([[0.5, 0.5, 0, 0, 0], [0.4, 0.1, 0.5, 0, 0], [0.4, 0, 0.6, 0, 0]], np.float32)
    unaries, pairs = legal_pairs(soft, np.array([0, 3]), OPENS[:1], np.ones(3, bool))
    np.testing.assert_allclose(unaries, soft, rtol=1e-6)
    assert pairs[1, 1, 2] == pytest.approx(0.5)
    assert pairs[1, 0, :2].tolist() == pytest.approx([0.4, 0.1])
    assert pairs[2, 1:3, 2].tolist() == pytest.approx([0.1, 0.5])


def test_an_inside_label_without_a_beginning_is_read_as_one() -> None:
    certain = np.eye(5, dtype=np.float32)[[2, 2, 0, 4, 2]]
    unaries, pairs = legal_pairs(certain, np.array([0, 5]), OPENS[:1], np.ones(5, bool))
    assert unaries.argmax(1).tolist() == [1, 2, 0, 3, 1]
    assert [tuple(np.argwhere(pair)[0].tolist()) for pair in pairs[1:]] == [(1, 2), (2, 0), (0, 3), (3, 1)]


def test_after_an_unknown_word_an_entity_may_go_on() -> None:
    certain = np.eye(5, dtype=np.float32)[[0, 0, 2]]
    unaries, _ = legal_pairs(certain, np.array([0, 3]), OPENS[:1], np.array([True, False, True]))
    assert unaries[2].argmax() == 2


def field(types: tuple[str, ...] = ("PER", "LOC")) -> Crf:
    """A field with scores of its own."""
    crf = Crf(LabelSet(types))
    with torch.no_grad():
        for number, parameter in enumerate(crf.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=number))
    return crf


def test_reading_gives_marginals_and_the_likeliest_sequence() -> None:
    crf, offsets = field(), np.array([0, 3, 3, 5])
    emissions = draw(5, 5, seed=7).numpy().astype(np.float32)
    soft_labels, entities = crf.read(offsets, emissions)
    start, transitions, end = crf.start.detach().numpy(), crf.transitions.detach().numpy(), crf.end.detach().numpy()
    start, transitions = start + log(1.0 * BIO.legal_starts), transitions + log(1.0 * BIO.legal_moves)
    best = []
    for first, last in ((0, 3), (3, 5)):
        evidence = emissions[first:last].astype(np.float64)
        evidence[-1] += end
        exact = enumerate_sentence(start, transitions, evidence)
        np.testing.assert_allclose(soft_labels.probabilities[first:last], exact.marginals, atol=1e-5)
        best.append(exact.best)
    expected = SoftLabels.from_labels(np.concatenate(best), offsets, BIO.types).annotations()
    assert (entities.starts.tolist(), entities.ends.tolist()) == (expected.starts.tolist(), expected.ends.tolist())
    assert len(entities.starts) > 0


def test_words_of_a_batch_that_follow_each_other_are_one_sequence() -> None:
    crf, offsets = field(), np.array([0, 4, 4, 9, 12])
    soft = rows(12, 5).astype(np.float32)
    known = np.ones(12, bool)
    known[10] = False
    objective = SoftSequences(soft, known, offsets, lambda: crf)
    words = np.array([6, 7, 9, 10, 11, 0, 1, 2, 3, 4, 5])  # in whatever order windows come
    outputs = draw(11, 5, seed=8).float()
    loss, weight = objective.loss(np.array([0]), words, outputs)
    assert weight == 10
    start, transitions, end = crf.scores()
    total = 0.0
    for part, opens, closes in (([4, 5, 6, 7], 1, 0), ([9, 10, 11], 1, 1), ([0, 1, 2, 3], 1, 1)):
        own, whole = np.array(part), np.array([0, len(part)])
        unaries, pairs = legal_pairs(soft[own], whole, np.array([bool(opens)]), known[own])
        value = expected_log_likelihood(
            start if opens else torch.zeros(5),
            transitions,
            end * closes,
            outputs[[words.tolist().index(word) for word in part]],
            torch.from_numpy(unaries),
            whole,
            torch.from_numpy(pairs),
            known[own],
        )
        total -= float(value.detach())
    assert float(loss.detach()) == pytest.approx(total, rel=1e-5)


NAMES, OTHERS = ["Orlin", "Ada", "Berit", "Tove"], ["visited", "left", "yesterday", "."]
GIVEN: dict[str, Any] = {
    "output": "crf", "epochs": 2, "learning_rate": 5e-3, "window": 24, "overlap": 6, "frozen_layers": 0,
    "empty_share": 1.0,
}  # fmt: skip


def sentences(count: int, seed: int = 0) -> Corpus:
    """Documents that begin with a name of two words or one."""
    chance = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        name = [str(word) for word in chance.choice(NAMES, chance.integers(1, 3))]
        tokens = [*name, *(str(word) for word in chance.choice(OTHERS, 3))]
        documents.append(Document(f"d{number}", tokens, entities=[Span(0, len(name), "PER")]))
    return Corpus.from_documents(documents, types=["PER", "LOC"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), [*NAMES, *OTHERS])


@pytest.fixture(scope="module")
def fitted(tiny: str) -> Tagger:
    return make(tiny, epochs=6).fit(sentences(60))


def make(tiny: str, **settings: Any) -> Tagger:  # noqa: ANN401
    return Tagger(**{"encoder": tiny, **GIVEN, **settings})


def spans(corpus: Corpus) -> list[list[tuple[int, int, str]]]:
    return [[span[:3] for span in document.entities or ()] for document in corpus]


def weights(tagger: Tagger) -> Tensor:
    return torch.cat([p.detach().flatten() for p in tagger.model_.parameters()])


def test_it_learns_names_and_how_labels_follow(fitted: Tagger) -> None:
    test = sentences(10, seed=1)
    predicted = fitted.predict(test)
    assert spans(predicted) == spans(test)
    assert predicted.soft_labels is not None
    predicted.soft_labels.check(test.id_list)
    transitions = fitted.model_.crf.transitions.detach()
    assert float(transitions.abs().max()) > 0.1
    assert transitions[0, 1] < transitions[0, 0]


def test_certain_soft_labels_train_as_entities_do(tiny: str) -> None:
    corpus = sentences(12)
    soft = corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, targets(corpus)[0]))
    assert torch.equal(weights(make(tiny).fit(corpus)), weights(make(tiny).fit(soft)))


def test_no_move_is_illegal_whatever_the_targets(tiny: str) -> None:
    corpus = sentences(8)
    soft = np.tile(np.array([0.2, 0.1, 0.6, 0.05, 0.05], np.float32), (len(corpus.tokens), 1))
    soft[corpus.offsets[:-1]] = [0, 0, 1, 0, 0]
    tagger = make(tiny).fit(corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, soft)))
    assert all(np.isfinite(row["loss"]) for row in tagger.history_)
    probabilities = tagger.predict_proba(corpus).probabilities
    assert not probabilities[corpus.offsets[:-1]][:, [2, 4]].any()


def test_long_documents_are_learned_window_by_window_and_read_whole(tiny: str) -> None:
    words = (NAMES + OTHERS) * 15
    corpus = Corpus.from_documents(
        [Document("d", words, entities=[Span(i, i + 4, "PER") for i in range(0, 120, 8)])], types=["PER", "LOC"]
    )
    training = Fitting(make(tiny), corpus, None, None)
    assert sum(training._loss(chosen)[1] for chosen in training._batches(0)) == 120
    assert make(tiny, epochs=1).fit(corpus).predict_proba(corpus).probabilities.shape == (120, 5)


def test_words_that_say_nothing_cost_nothing(tiny: str) -> None:
    mute = Corpus.from_documents([Document("m", ["\u200b", "\u200b"], entities=[]), Document("e", [], entities=[])])
    tagger = make(tiny).fit(mute.with_types(("PER",)))
    assert [row["loss"] for row in tagger.history_] == [0.0, 0.0]
    assert tagger.predict_proba(mute).probabilities.shape == (2, 3)


@pytest.mark.filterwarnings("ignore::tagweave.errors.TagweaveWarning")
def test_a_killed_training_goes_on_exactly(tiny: str, tmp_path: Path) -> None:
    corpus, dev = sentences(12), sentences(4, seed=2)
    unbroken = make(tiny).fit(corpus, dev)
    next(make(tiny).fit_steps(corpus, dev, folder=tmp_path))
    resumed = make(tiny).fit(corpus, dev, folder=tmp_path, resume=True)
    assert resumed.history_ == unbroken.history_
    assert torch.equal(weights(resumed), weights(unbroken))


def test_a_saved_tagger_answers_as_before_and_goes_on(tiny: str, fitted: Tagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "out")
    loaded, test = Tagger.load(tmp_path / "out"), sentences(5, seed=1)
    assert np.array_equal(loaded.predict_proba(test).probabilities, fitted.predict_proba(test).probabilities)
    assert loaded.settings() == fitted.settings()
    from_memory = make(tiny, epochs=1).fit(test, start_from=fitted)
    from_folder = make(tiny, epochs=1).fit(test, start_from=tmp_path / "out")
    assert torch.equal(weights(from_memory), weights(from_folder))
    make(tiny, encoder=str(tmp_path / "out"), output="linear", epochs=0).fit(test)


def test_transformers_reads_the_folder_without_the_field(fitted: Tagger, tmp_path: Path) -> None:
    from transformers import pipeline

    fitted.save(tmp_path / "out")
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert {"crf.start", "crf.transitions", "crf.end"} <= set(file.keys())
    assert "crf.*" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    tagger = pipeline("token-classification", model=str(tmp_path / "out"), aggregation_strategy="first", device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (entities,) = tagger(["Ada", "left", "."], is_split_into_words=True)
    assert [entity["entity_group"] for entity in entities][:1] == ["PER"]


def test_a_folder_from_before_the_setting_is_linear(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = sentences(4)
    linear = make(tiny, output="linear").fit(corpus)
    assert not hasattr(linear.model_, "crf")
    without = {name: value for name, value in linear.settings().items() if name != "output"}
    monkeypatch.setattr(linear, "settings", lambda: without)
    linear.save(tmp_path / "out")
    loaded = Tagger.load(tmp_path / "out")
    assert loaded.output == "linear"
    assert np.array_equal(loaded.predict_proba(corpus).probabilities, linear.predict_proba(corpus).probabilities)


class WithoutField(Tagger):
    """A kind of tagger that learns otherwise."""

    def _objective(self, corpus: Corpus) -> Objective:
        return SoftTargets(*targets(corpus))


def test_what_does_not_go_together_is_said(tiny: str, fitted: Tagger) -> None:
    corpus = sentences(4)
    with pytest.raises(UsageError, match="output=crf"):
        make(tiny, output="linear").fit(corpus, start_from=fitted)
    with pytest.raises(UsageError, match="outside_weight"):
        make(tiny, outside_weight=0.5).fit(corpus)
    with pytest.raises(UsageError, match="crf"):
        make(tiny, output="crv").fit(corpus)
    with pytest.raises(UsageError, match="bert tagger has no output 'crf'"):
        WithoutField(encoder=tiny, output="crf").fit(corpus)

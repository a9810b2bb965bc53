"""BOND: its loss against a plain reference, what the teacher is when, both stages, resuming."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import tiny_encoder
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import LabelError, StorageError, UsageError
from tagweave.soft_labels import SoftLabels
from tagweave.tagger import BOND, Tagger, create_tagger, fitting
from tagweave.tagger.fitting import Fitting
from tagweave.tagger.self_training import SelfTraining, self_training_loss, sharpened
from tagweave.tagger.targets import targets

PEOPLE, PLACES = ["Orlin", "Ada", "Berit", "Tove"], ["Vestara", "Oslo", "Lund"]
WORDS = [*PEOPLE, *PLACES, "visited", "left", "yesterday", "."]
TYPES = ["PER", "LOC"]

pytestmark = pytest.mark.filterwarnings("ignore:the tagger")  # so little text teaches it little


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)


def sentences(count: int, seed: int = 0, *, missed: float = 0.0) -> Corpus:
    """Names of people are PER and names of places are LOC, but some entities are missed."""
    chance = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        tokens = [str(chance.choice(words)) for words in (PEOPLE, ["visited", "left"], PLACES, ["yesterday", "."])]
        entities = [span for span in (Span(0, 1, "PER"), Span(2, 3, "LOC")) if chance.random() >= missed]
        documents.append(Document(f"d{number}", tokens[: 3 + number % 2], entities=entities))
    return Corpus.from_documents(documents, types=TYPES)


def make(tiny: str, **settings: Any) -> BOND:  # noqa: ANN401
    given = {"encoder": tiny, "epochs": 2, "learning_rate": 5e-3, "batch_windows": 4, "frozen_layers": 0}
    return BOND(**{**given, "empty_share": 1.0, "period": 3, **settings})


def weights(tagger: Tagger) -> Tensor:
    return torch.cat([p.detach().flatten() for p in tagger.model_.parameters()])


def by_hand(outputs: Sequence[Sequence[float]], taught: Sequence[Sequence[float]], confidence: float) -> list[float]:
    """The divergence of each word that is certain enough, one number at a time."""

    def softmax(scores: Sequence[float]) -> list[float]:
        total = sum(math.exp(score) for score in scores)
        return [math.exp(score) / total for score in scores]

    probabilities, divergences = [softmax(scores) for scores in taught], []
    frequency = [sum(row[label] for row in probabilities) for label in range(len(taught[0]))]
    for row, scores in zip(probabilities, outputs, strict=True):
        weighted = [p**2 / f for p, f in zip(row, frequency, strict=True)]
        q = [w / sum(weighted) for w in weighted]
        if max(q) > confidence:
            divergences.append(sum(a * math.log(a / b) for a, b in zip(q, softmax(scores), strict=True)))
    return divergences


def draw(*shape: int, seed: int) -> Tensor:
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("confidence", [0.0, 0.6, 0.9])
def test_the_loss_is_that_of_a_plain_reference(confidence: float) -> None:
    outputs, taught = draw(40, 5, seed=0), draw(40, 5, seed=1)
    loss, weight = self_training_loss(outputs, taught, confidence, hard=False)
    expected = by_hand(outputs.tolist(), taught.tolist(), confidence)
    assert weight == len(expected)
    assert 0 < weight < 40 or confidence == 0
    assert loss.item() == pytest.approx(sum(expected), rel=1e-9)


def test_the_loss_is_zero_where_the_student_says_what_the_teacher_says_sharpened() -> None:
    taught = draw(9, 3, seed=2)
    loss, _ = self_training_loss(sharpened(taught.softmax(1)).log() + 4, taught, 0, hard=False)
    assert loss.item() == pytest.approx(0, abs=1e-12)


def test_rare_labels_gain_and_frequent_ones_lose() -> None:
    rows = torch.tensor([[0.8, 0.2, 0], [0.5, 0.5, 0]], dtype=torch.float64)
    expected = [[0.64 / 1.3, 0.04 / 0.7], [0.25 / 1.3, 0.25 / 0.7]]
    for row, (first, second) in zip(sharpened(rows).tolist(), expected, strict=True):
        assert row == pytest.approx([first / (first + second), second / (first + second), 0])


def test_nothing_certain_is_nothing_to_learn() -> None:
    outputs = draw(6, 3, seed=3).requires_grad_()
    loss, weight = self_training_loss(outputs, torch.zeros(6, 3), 0.9, hard=False)
    assert (loss.item(), weight) == (0, 0)


def test_hard_labels_are_learned_of_every_word() -> None:
    outputs, taught = draw(12, 3, seed=4), 0.1 * draw(12, 3, seed=5)
    loss, weight = self_training_loss(outputs, taught, 0.9, hard=True)
    expected = torch.nn.functional.cross_entropy(outputs, taught.argmax(1), reduction="sum")
    assert weight == 12
    torch.testing.assert_close(loss, expected)


def self_training(tagger: BOND, teacher: Tagger, corpus: Corpus) -> Fitting:
    tagger.teacher_ = teacher
    return Fitting(tagger, corpus, None, teacher)


def logits(soft_labels: SoftLabels) -> NDArray[np.float64]:
    return np.log(soft_labels.probabilities.astype(np.float64))


def test_words_without_pieces_and_padding_are_no_words(tiny: str) -> None:
    teacher = Tagger(encoder=tiny, epochs=1, learning_rate=5e-3).fit(sentences(12))
    corpus = Corpus.from_documents(
        [Document("a", ["Ada", "\u200b", "left", "Oslo"], entities=[]), Document("b", ["Tove"])], types=TYPES
    )
    training = self_training(make(tiny, confidence=0.0, dropout=0.0), teacher, corpus)
    loss, weight = training._loss(np.array([0, 1]))
    taught = logits(teacher.predict_proba(corpus))[[0, 2, 3, 4]].tolist()
    expected = by_hand(taught, taught, 0)
    assert weight == len(expected) == 4
    assert loss.item() == pytest.approx(sum(expected), rel=1e-4)


def test_documents_without_labels_are_learned_too_but_not_taken_for_entities(tiny: str) -> None:
    corpus = Corpus.from_documents(
        [Document("a", ["Ada"], entities=[Span(0, 1, "PER")]), Document("b", ["Tove"])], types=TYPES
    )
    teacher = Tagger(encoder=tiny, epochs=0).fit(corpus)
    objective = make(tiny)
    objective.teacher_ = teacher
    learned = objective._objective(corpus)
    assert learned.known.tolist() == [True, True]
    assert learned.inside.tolist() == [True, False]


def test_the_teacher_becomes_the_student_every_few_steps(tiny: str) -> None:
    corpus = sentences(20)
    teacher, student = (Tagger(encoder=tiny, epochs=0, seed=seed).fit(corpus) for seed in (0, 1))
    objective = SelfTraining(student, teacher, corpus, period=3, confidence=0.9, hard=False)
    same = []
    for step in range(1, 8):
        with torch.no_grad():
            student.model_.classifier.bias += 1
        objective.after(step)
        same.append(torch.equal(weights(student), weights(teacher)))
    assert same == [False, False, True, False, False, True, False]


def test_the_teacher_does_not_learn_and_stage_1_stays(tiny: str) -> None:
    corpus = sentences(12)
    teacher = Tagger(encoder=tiny, epochs=1, learning_rate=5e-3).fit(corpus)
    before = weights(teacher).clone()
    student = make(tiny, period=100, confidence=0.0)
    list(self_training(student, teacher, corpus).run(None, resume=False))
    assert torch.equal(weights(teacher), before)
    assert not torch.equal(weights(student), before)


def test_stage_1_learns_the_likeliest_labels(tiny: str) -> None:
    corpus = sentences(12, missed=0.3)
    rows, _ = targets(corpus, label_smoothing=0.3)
    soft = corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, rows))
    plain = Tagger(**{name: value for name, value in make(tiny).settings().items() if name in vars(Tagger())})
    plain.fit(corpus)
    bond = make(tiny, self_epochs=0).fit(soft)
    assert bond.history_ == plain.history_
    assert torch.equal(weights(bond), weights(plain))
    rows[3, 0] += 1
    with pytest.raises(LabelError, match="'d1', token 0"):
        make(tiny).fit(corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, rows)))


def test_both_stages_find_what_sources_missed(tiny: str) -> None:
    tagger = make(tiny, epochs=6, self_epochs=4, self_rate=1.0).fit(sentences(80, missed=0.4))
    assert [row["stage"] for row in tagger.history_] == [1] * 6 + [2] * 4
    assert [row["epoch"] for row in tagger.history_] == [*range(1, 7), *range(1, 5)]
    test = sentences(10, seed=1)
    found = [[span[:3] for span in document.entities or ()] for document in tagger.predict(test)]
    assert found == [[span[:3] for span in document.entities or ()] for document in test]


def test_stage_1_stops_after_some_steps(tiny: str, tmp_path: Path) -> None:
    corpus = sentences(16)
    stopped = make(tiny, epochs=3, first_steps=6, self_epochs=1)
    epochs = list(stopped.fit_steps(corpus, folder=tmp_path))
    assert [(epoch.stage, epoch.epoch) for epoch in epochs] == [(1, 1), (1, 2), (2, 1)]
    unbroken = make(tiny, epochs=3, self_epochs=1).fit(corpus)
    assert stopped.history_[0] == unbroken.history_[0]
    assert stopped.history_[1]["learning_rate"] > unbroken.history_[1]["learning_rate"]
    with pytest.raises(StorageError, match="other steps"):
        make(tiny, epochs=3, first_steps=5, self_epochs=1).fit(corpus, folder=tmp_path, resume=True)


@pytest.mark.parametrize("with_dev", [True, False])
def test_a_killed_training_goes_on_exactly(tiny: str, tmp_path: Path, with_dev: bool) -> None:
    corpus, dev = sentences(16, missed=0.2), sentences(6, seed=2) if with_dev else None
    settings: dict[str, Any] = {"self_epochs": 3, "self_rate": 0.5, "confidence": 0.5, "seed": 4}
    unbroken = make(tiny, **settings).fit(corpus, dev)
    assert unbroken.history_[-1]["loss"] > 0
    assert torch.equal(weights(make(tiny, **settings).fit(corpus, dev)), weights(unbroken))
    for stop in range(1, 6):
        folder = tmp_path / str(stop)
        for number, _ in enumerate(make(tiny, **settings).fit_steps(corpus, dev, folder=folder), 1):
            if number == stop:
                break
        resumed = make(tiny, **settings).fit(corpus, dev, folder=folder, resume=True)
        assert resumed.history_ == unbroken.history_
        assert torch.equal(weights(resumed), weights(unbroken))


def test_a_training_afresh_takes_nothing_from_an_old_one(tiny: str, tmp_path: Path) -> None:
    make(tiny).fit(sentences(8), folder=tmp_path)
    with pytest.raises(StorageError, match="other period"):
        make(tiny, period=4).fit(sentences(8), folder=tmp_path, resume=True)
    next(make(tiny).fit_steps(sentences(8), folder=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["stage-1"]


@pytest.mark.parametrize(("script", "best"), [([0.3, 0.5, 0.4, 0.5], 1), ([0.3, 0.5, 0.6, 0.55], 2)])
def test_the_best_epoch_of_both_stages_is_kept(
    tiny: str, monkeypatch: pytest.MonkeyPatch, script: list[float], best: int
) -> None:
    corpus, given = sentences(12), iter(script)
    details = {"micro": SimpleNamespace(predicted=3), "coverage": SimpleNamespace(tokens=0.1)}
    monkeypatch.setattr(fitting, "evaluate", lambda *_, **__: SimpleNamespace(f1=next(given), **details))
    tagger = make(tiny, confidence=0.3)
    seen = [epoch.best for epoch in tagger.fit_steps(corpus, corpus)]
    assert seen == [row["best"] for row in tagger.history_]
    assert max(number for number, is_best in enumerate(seen) if is_best) == best
    without_dev = make(tiny, confidence=0.3, self_epochs=0).fit(corpus)
    assert torch.equal(weights(tagger), weights(without_dev)) == (best == 1)


def test_without_dev_the_last_epoch_is_kept(tiny: str) -> None:
    tagger = make(tiny, confidence=0.3)
    states = [(epoch.best, epoch.f1) for epoch in tagger.fit_steps(sentences(8))]
    assert states == [(True, None)] * 4
    assert not torch.equal(weights(tagger), weights(make(tiny, self_epochs=0).fit(sentences(8))))


def test_a_fresh_student_starts_from_the_encoder(tiny: str, tmp_path: Path) -> None:
    corpus = sentences(8)
    fresh = make(tiny, fresh=True, self_epochs=0).fit(corpus)
    assert torch.equal(weights(fresh), weights(Tagger(encoder=tiny, epochs=0).fit(corpus)))
    assert torch.equal(weights(make(tiny, fresh=True, self_epochs=0).fit(corpus, start_from=fresh)), weights(fresh))
    other = tiny_encoder.build(tmp_path / "other", [*WORDS, "elsewhere"])
    with pytest.raises(UsageError, match="another one"):
        make(other, fresh=True).fit(corpus, start_from=fresh)


def test_kinds_of_taggers_with_the_same_labels_start_from_each_other(tiny: str, tmp_path: Path) -> None:
    corpus = sentences(8)
    plain = Tagger(encoder=tiny, epochs=1).fit(corpus)
    bond = make(tiny, epochs=0, self_epochs=0).fit(corpus, start_from=plain)
    assert torch.equal(weights(bond), weights(plain))
    bond.save(tmp_path / "bond")
    loaded = Tagger.load(tmp_path / "bond")
    assert isinstance(loaded, BOND)
    assert loaded.settings() == bond.settings()
    assert torch.equal(weights(Tagger(encoder=tiny, epochs=0).fit(corpus, start_from=loaded)), weights(plain))


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"output": "crf"}, "no output 'crf'"), ({"confidence": 1}, "less than 1"), ({"period": 0}, "period is 0"),
     ({"first_steps": 0}, "first_steps is 0")],
)  # fmt: skip
def test_settings_out_of_range(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        create_tagger("bond", setting)

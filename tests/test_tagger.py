"""The tagger: what it learns, seeds, resuming, long documents, the saved folder."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tiny_encoder
from tagweave import progress
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import (
    DataError,
    LabelError,
    NotFittedError,
    StorageError,
    TagweaveWarning,
    TrainingError,
    UsageError,
)
from tagweave.soft_labels import SoftLabels
from tagweave.tagger import Tagger, fitting
from tagweave.tagger import targets as learning
from tagweave.tagger.fitting import Fitting
from tagweave.tagger.targets import soft_cross_entropy, targets

PEOPLE, PLACES = ["Orlin", "Ada", "Berit", "Tove"], ["Vestara", "Oslo", "Lund"]
OTHERS = ["visited", "left", "yesterday", ".", "and", "in"]
WORDS = [*PEOPLE, *PLACES, *OTHERS]
TYPES = ["PER", "LOC"]


def sentences(count: int, seed: int = 0) -> Corpus:
    """Documents in which names of people are PER and names of places are LOC."""
    chance = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        tokens = [str(chance.choice(words)) for words in (PEOPLE, ["visited", "left"], PLACES, ["yesterday", "."])]
        documents.append(Document(f"d{number}", tokens, entities=[Span(0, 1, "PER"), Span(2, 3, "LOC")]))
    return Corpus.from_documents(documents, types=TYPES)


def one(tokens: Sequence[str], entities: Sequence[Span] | None = ()) -> Corpus:
    return Corpus.from_documents([Document("d0", tokens, entities=entities)], types=TYPES)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)


@pytest.fixture(scope="module")
def fitted(tiny: str) -> Tagger:
    return make(tiny, epochs=6).fit(sentences(60))


GENTLE: dict[str, Any] = {"frozen_layers": 0, "empty_share": 1.0}
"""Every layer learns, from every window."""


def make(tiny: str, **settings: Any) -> Tagger:  # noqa: ANN401
    given = {"encoder": tiny, "epochs": 2, "learning_rate": 5e-3, "window": 24, "overlap": 6}
    return Tagger(**{**given, **GENTLE, **settings})


def spans(corpus: Corpus) -> list[list[tuple[int, int, str]]]:
    return [[(s.start, s.end, s.type) for s in document.entities or ()] for document in corpus]


def weights(tagger: Tagger) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in tagger.model_.parameters()])


def test_it_learns_names(fitted: Tagger) -> None:
    test = sentences(10, seed=1)
    assert spans(fitted.predict(test)) == spans(test)


def test_probabilities_are_distributions(fitted: Tagger) -> None:
    test = sentences(5)
    soft = fitted.predict_proba(test)
    soft.check(test.id_list)
    assert soft.types == ("PER", "LOC")
    assert fitted.predict(test).soft_labels is not None


def test_certain_soft_labels_train_as_entities_do(tiny: str) -> None:
    corpus = sentences(12)
    rows, _ = targets(corpus)
    soft = corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, rows))
    from_entities, from_soft = make(tiny).fit(corpus), make(tiny).fit(soft)
    assert from_entities.history_ == from_soft.history_
    assert torch.equal(weights(from_entities), weights(from_soft))


def test_certain_targets_give_the_ordinary_loss() -> None:
    logits = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0, 4, 3, 0])
    label_weights = torch.tensor([0.3, 1, 1, 1, 1], dtype=torch.float64)
    for current in (torch.ones(5, dtype=torch.float64), label_weights):
        loss, weight = soft_cross_entropy(logits, torch.eye(5, dtype=torch.float64)[labels], current)
        expected = torch.nn.functional.cross_entropy(logits, labels, weight=current)
        torch.testing.assert_close(loss / weight, expected, rtol=1e-12, atol=1e-12)


def test_a_target_of_zero_costs_nothing_even_where_it_is_impossible() -> None:
    logits = torch.tensor([[0.0, -1e30, 0.0]])
    loss, _ = soft_cross_entropy(logits, torch.tensor([[0.5, 0.0, 0.5]]), torch.ones(3))
    assert loss.item() == pytest.approx(np.log(2))


def test_targets_of_documents_without_entities_are_unknown() -> None:
    corpus = Corpus.from_documents(
        [Document("a", ["Ada", "left"], entities=[Span(0, 1, "PER")]), Document("b", ["Oslo"])], types=TYPES
    )
    rows, known = targets(corpus)
    assert known.tolist() == [True, True, False]
    assert rows[:2].argmax(axis=1).tolist() == [1, 0]
    smoothed, _ = targets(corpus, label_smoothing=0.5)
    assert smoothed[0].tolist() == pytest.approx([0.1, 0.6, 0.1, 0.1, 0.1])


def test_soft_labels_must_be_distributions(tiny: str) -> None:
    corpus = one(["Ada", "left"])
    rows = np.array([[1, 0, 0, 0, 0], [0.5, 0.6, 0, 0, 0]], np.float32)
    with pytest.raises(LabelError, match="'d0', token 1"):
        make(tiny).fit(corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, rows)))


def test_without_labels_or_types_there_is_nothing_to_learn(tiny: str) -> None:
    with pytest.raises(DataError, match="label model"):
        make(tiny).fit(one(["Ada"], entities=None))
    with pytest.raises(DataError, match="type"):
        make(tiny).fit(Corpus.from_documents([Document("d", ["Ada"], entities=[])]))
    with pytest.raises(DataError, match="dev"):
        make(tiny).fit(sentences(2), one(["Ada"], entities=None))


def test_words_without_pieces_are_not_learned_from(tiny: str) -> None:
    empty = Corpus.from_documents(
        [Document("m1", ["\u200b", "\u200b"], entities=[]), Document("m2", [], entities=[])], types=TYPES
    )
    tagger = make(tiny)
    steps = list(tagger.fit_steps(empty))
    assert [step.loss for step in steps] == [0.0, 0.0]
    untouched = make(tiny, epochs=0).fit(empty)
    assert torch.equal(weights(tagger), weights(untouched))
    assert tagger.predict_proba(empty).probabilities.shape == (2, 5)


def test_a_loss_that_is_not_finite_names_the_documents(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss, weight = soft_cross_entropy(*arguments)
        return loss * float("nan"), weight

    monkeypatch.setattr(learning, "soft_cross_entropy", broken)
    with pytest.raises(TrainingError, match="'d0', 'd1'"):
        make(tiny).fit(sentences(2))


def test_the_same_seed_gives_the_same_tagger(tiny: str) -> None:
    corpus = sentences(10)
    first, second, other = (
        make(tiny, seed=7).fit(corpus),
        make(tiny, seed=7).fit(corpus),
        make(tiny, seed=8).fit(corpus),
    )
    assert first.history_ == second.history_ != other.history_
    assert torch.equal(weights(first), weights(second))


@pytest.mark.parametrize("with_dev", [True, False])
@pytest.mark.filterwarnings("ignore::tagweave.errors.TagweaveWarning")
def test_a_killed_training_goes_on_exactly(tiny: str, tmp_path: Path, with_dev: bool) -> None:
    corpus, dev = sentences(12), sentences(4, seed=2) if with_dev else None
    unbroken = make(tiny, epochs=3).fit(corpus, dev)
    for stop in (1, 2, 3):
        broken = make(tiny, epochs=3).fit_steps(corpus, dev, folder=tmp_path / str(stop))
        for epoch in broken:
            if epoch.epoch == stop:
                break
        resumed = make(tiny, epochs=3).fit(corpus, dev, folder=tmp_path / str(stop), resume=True)
        assert resumed.history_ == unbroken.history_
        assert torch.equal(weights(resumed), weights(unbroken))
        assert sorted(path.name for path in (tmp_path / str(stop)).iterdir()) == ["best", "last"]
    best = Tagger.load(tmp_path / "3" / "best")
    assert torch.equal(weights(best), weights(unbroken))


def test_a_resumed_training_counts_the_steps_of_the_earlier_run(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = sentences(12)
    next(make(tiny, epochs=2, batch_windows=4).fit_steps(corpus, folder=tmp_path))
    monkeypatch.setattr(progress, "_shown", True)
    monkeypatch.setattr(progress, "_PLAIN_INTERVAL", -1)
    make(tiny, epochs=2, batch_windows=4).fit(corpus, folder=tmp_path, resume=True)
    counted = [line for line in capsys.readouterr().err.splitlines() if line.startswith("training: ")]
    assert counted == [f"training: {step}/6" for step in (4, 5, 6)]


def test_another_training_is_not_gone_on_with(tiny: str, tmp_path: Path) -> None:
    make(tiny).fit(sentences(4), folder=tmp_path)
    with pytest.raises(StorageError, match="other seed"):
        make(tiny, seed=1).fit(sentences(4), folder=tmp_path, resume=True)
    with pytest.raises(StorageError, match="other data"):
        make(tiny).fit(sentences(5), folder=tmp_path, resume=True)


def test_too_little_space_is_said_before_training(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(StorageError, match="space"):
        next(make(tiny).fit_steps(sentences(2), folder=tmp_path))


def scripted(scores: Sequence[float], entities: int = 3, share: float = 0.1) -> Iterator[Any]:
    for f1 in scores:
        micro = SimpleNamespace(predicted=entities)
        yield SimpleNamespace(f1=f1, micro=micro, coverage=SimpleNamespace(tokens=share))


def test_the_best_epoch_by_entity_f1_is_kept(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = sentences(8)
    script = scripted([0.1, 0.5, 0.5, 0.3, 0.2, 0.9])
    monkeypatch.setattr(fitting, "evaluate", lambda gold, predicted, bootstrap: next(script))
    tagger = make(tiny, epochs=6, patience=2)
    seen = [(epoch.best, weights(tagger).clone()) for epoch in tagger.fit_steps(corpus, corpus)]
    assert [best for best, _ in seen] == [True, True, False, False]
    assert torch.equal(weights(tagger), seen[1][1])


@pytest.mark.parametrize(("entities", "share", "message"), [(0, 0.0, "0 entities"), (9, 0.8, "80 %")])
def test_an_idle_or_a_wild_tagger_is_warned_about(
    tiny: str, monkeypatch: pytest.MonkeyPatch, entities: int, share: float, message: str
) -> None:
    script = scripted([0.0] * 2, entities, share)
    monkeypatch.setattr(fitting, "evaluate", lambda gold, predicted, bootstrap: next(script))
    tagger = make(tiny)
    with pytest.warns(TagweaveWarning, match=message):
        tagger.fit(sentences(4), sentences(2))
    assert [row["entities"] for row in tagger.history_] == [entities] * 2


def test_training_goes_on_from_another_tagger(tiny: str, fitted: Tagger, tmp_path: Path) -> None:
    before = weights(fitted).clone()
    fitted.save(tmp_path / "start")
    corpus = sentences(6, seed=3)
    from_memory = make(tiny, epochs=1, learning_rate=1e-5).fit(corpus, start_from=fitted)
    from_folder = make(tiny, epochs=1, learning_rate=1e-5).fit(corpus, start_from=tmp_path / "start")
    assert torch.equal(weights(fitted), before)
    assert torch.equal(weights(from_memory), weights(from_folder))
    assert 0 < (weights(from_memory) - before).abs().max() < 1e-3


def test_whole_batch_takes_one_step_an_epoch(tiny: str) -> None:
    corpus = sentences(20)
    few = make(tiny, whole_batch=True, batch_windows=4, warmup=0, dropout=0.0).fit(corpus)
    one_batch = make(tiny, batch_windows=20, warmup=0, dropout=0.0).fit(corpus)
    losses = [[row["loss"] for row in tagger.history_] for tagger in (few, one_batch)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_frozen_layers_stay(tiny: str) -> None:
    start = make(tiny, epochs=0).fit(sentences(4))
    tagger = make(tiny, frozen_layers=1, weight_decay=0.5).fit(sentences(4))
    same = {
        name: torch.equal(before, after)
        for (name, before), after in zip(start.model_.named_parameters(), tagger.model_.parameters(), strict=True)
    }
    assert all(stays == ("embeddings" in name or "layer.0." in name) for name, stays in same.items())
    with pytest.raises(UsageError, match="2 layers"):
        make(tiny, frozen_layers=3).fit(sentences(4))


def test_some_windows_without_entities_are_left_out(tiny: str) -> None:
    empty = [Document(f"e{i}", ["visited", "."], entities=[]) for i in range(100)]
    corpus = Corpus.from_documents([*sentences(10), *empty], types=TYPES)
    training = Fitting(make(tiny, empty_share=0.3), corpus, None, None)
    epochs = [np.concatenate(training._batches(epoch)) for epoch in range(2)]
    for chosen in epochs:
        assert set(range(10)) <= set(chosen.tolist())
        assert 25 < len(chosen) < 60
    assert set(epochs[0].tolist()) != set(epochs[1].tolist())


def test_a_long_document_is_trained_and_tagged_to_its_end(tiny: str) -> None:
    tokens = [WORDS[i % len(WORDS)] for i in range(200)]
    corpus = one(tokens, [Span(i, i + 1, "PER") for i, token in enumerate(tokens) if token in PEOPLE])
    training = Fitting(make(tiny), corpus, None, None)
    weight = sum(training._loss(chosen)[1] for chosen in training._batches(0))
    assert weight == 200
    tagger = make(tiny, epochs=1).fit(corpus)
    assert tagger.predict_proba(corpus).probabilities.shape == (200, 5)


def test_every_word_gets_a_row_of_its_own(fitted: Tagger) -> None:
    plain = fitted.predict_proba(one(["Orlin", "left", "Vestara"])).probabilities
    for word in ("\u200b", "\ufeff", "\ue000", "", "a" * 30_000, "contact" * 800):
        rows = fitted.predict_proba(one(["Orlin", word, "Vestara"])).probabilities
        assert rows.shape == plain.shape
        assert np.isfinite(rows).all()
        assert rows[[0, 2]].argmax(axis=1).tolist() == plain[[0, 2]].argmax(axis=1).tolist()


def test_a_part_is_tagged_as_the_whole(fitted: Tagger) -> None:
    corpus = sentences(30, seed=4)
    whole = fitted.predict_proba(corpus).subset(np.array([3, 7]))
    part = fitted.predict_proba(corpus.subset([3, 7]))
    np.testing.assert_allclose(part.probabilities, whole.probabilities, atol=1e-5)


def test_nothing_is_tagged_as_nothing(fitted: Tagger) -> None:
    assert len(fitted.predict(Corpus.from_documents([]))) == 0
    assert spans(fitted.predict(one([]))) == [[]]


def test_types_that_the_tagger_does_not_know_stay_in_the_corpus(fitted: Tagger) -> None:
    corpus = Corpus.from_documents([Document("d", ["Orlin"], sources={"s": [Span(0, 1, "DAY")]})])
    tagged = fitted.predict(corpus)
    assert tagged.types == ("PER", "LOC", "DAY")
    assert spans(tagged) == [[(0, 1, "PER")]]
    assert tagged[0].sources["s"] == [Span(0, 1, "DAY")]


def test_an_unfitted_tagger_says_so(tiny: str, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        make(tiny).predict(one(["Ada"]))
    with pytest.raises(NotFittedError, match="fit"):
        make(tiny).save(tmp_path / "out")


def test_a_saved_tagger_answers_as_before(fitted: Tagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "out")
    loaded = Tagger.load(tmp_path / "out")
    test = sentences(5, seed=1)
    assert np.array_equal(loaded.predict_proba(test).probabilities, fitted.predict_proba(test).probabilities)
    assert loaded.settings() == fitted.settings()
    assert loaded.history_ == fitted.history_


def test_the_saved_folder_holds_names_seed_and_versions_and_no_state(tiny: str, tmp_path: Path) -> None:
    types = ["PER", "LOC", "Multi-part_thing"]
    corpus = Corpus.from_documents([Document("d", ["Ada"], entities=[Span(0, 1, "PER")])], types=types)
    make(tiny, epochs=1, seed=3).fit(corpus).save(tmp_path / "out")
    names = ["O", *(f"{prefix}-{name}" for name in types for prefix in "BI")]
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {str(number): name for number, name in enumerate(names)}
    assert config["label2id"] == {name: number for number, name in enumerate(names)}
    own = json.loads((tmp_path / "out" / "tagweave.json").read_text(encoding="utf-8"))
    assert own["seed"] == 3
    assert {"torch", "transformers", "tagweave", "python"} <= set(own["versions"])
    assert own["settings"]["encoder"] == tiny
    assert 'aggregation_strategy="first"' in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md", "config.json", "manifest.json", "model.safetensors", "tagweave.json", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip


def test_a_folder_of_another_kind_or_a_changed_one_is_refused(fitted: Tagger, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="tagger"):
        Tagger.load(tmp_path)
    fitted.save(tmp_path / "out")
    weights_file = tmp_path / "out" / "model.safetensors"
    weights_file.write_bytes(weights_file.read_bytes()[:-1])
    with pytest.raises(StorageError, match="changed"):
        Tagger.load(tmp_path / "out")


def by_pipeline(folder: Path, documents: list[list[str]]) -> list[list[tuple[int, int, str]]]:
    """Entities that the pipeline of transformers finds in words, as word spans."""
    from transformers import pipeline

    tagger = pipeline("token-classification", model=str(folder), aggregation_strategy="first", device="cpu")
    found = []
    for tokens in documents:
        starts = np.cumsum([0, *(len(token) + 1 for token in tokens)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (entities,) = tagger(tokens, is_split_into_words=True)
        found.append(
            [
                (
                    int(np.searchsorted(starts, entity["start"], side="right")) - 1,
                    int(np.searchsorted(starts, entity["end"])),
                    entity["entity_group"],
                )
                for entity in entities
            ]
        )
    return found


def test_the_pipeline_of_transformers_answers_alike(fitted: Tagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "out")
    chance = np.random.default_rng(5)
    documents = [[str(word) for word in chance.choice([*WORDS, "Orlins", "Vestaras"], 9)] for _ in range(20)]
    corpus = Corpus.from_documents([Document(str(i), tokens) for i, tokens in enumerate(documents)])
    ours = spans(fitted.predict(corpus))
    assert any(len(found) > 2 for found in ours)
    assert by_pipeline(tmp_path / "out", documents) == ours


def test_an_entity_begins_with_b(fitted: Tagger) -> None:
    corpus = Corpus.from_documents([Document("a", ["Ada", "left"]), Document("b", ["Oslo"])])
    names = fitted.labels.names
    assert names == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    chances = np.array([[0.3, 0.25, 0.2, 0.15, 0.1], [0.1, 0.1, 0.6, 0.1, 0.1], [0.2, 0.1, 0.1, 0.1, 0.5]], np.float32)
    soft_labels, entities = fitted._read(corpus.offsets, np.log(chances))
    assert soft_labels.probabilities == pytest.approx(chances)
    found = corpus.with_types(fitted.labels.types).with_entities(entities)
    assert spans(found) == [[(0, 2, "PER")], []]  # word by word there would be (1, 2, "PER") and (0, 1, "LOC")
    assert entities.scores == pytest.approx([(0.45 + 0.7) / 2])


def test_the_default_encoder_learns_and_exports(tmp_path: Path) -> None:
    corpus = sentences(8)
    tagger = Tagger(epochs=10, learning_rate=2e-3, warmup=0, frozen_layers=5).fit(corpus)
    assert spans(tagger.predict(corpus)) == spans(corpus)
    tagger.save(tmp_path / "out")
    documents = [document.tokens for document in corpus]
    assert by_pipeline(tmp_path / "out", [list(tokens) for tokens in documents]) == spans(corpus)

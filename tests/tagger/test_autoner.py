"""AutoNER end to end on a tiny encoder: what it learns from, saving, resuming, alternate training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_encoder
from tagweave.alternate import AlternateTraining
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, StorageError, UsageError
from tagweave.evaluation import evaluate
from tagweave.label_models import MajorityVote
from tagweave.soft_labels import SoftLabels
from tagweave.tagger import TAGGERS, AutoNER, Tagger, create_tagger
from tagweave.tagger.targets import targets

PEOPLE, CITIES = ["Orlin", "Ada", "Berit", "Tove"], ["Vestara", "Oslo", "Lund"]
WORDS = [*PEOPLE, *CITIES, "Port", "visited", "left", "yesterday", "."]


def sentences(count: int, seed: int = 0) -> Corpus:
    """Names of people are PER and those of ports, two words, LOC; a dictionary has most, a list of phrases all."""
    chance = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        name, city = str(chance.choice(PEOPLE)), str(chance.choice(CITIES))
        tokens = [name, str(chance.choice(["visited", "left"])), "Port", city, str(chance.choice(["yesterday", "."]))]
        entities = [Span(0, 1, "PER"), Span(2, 4, "LOC")]
        core = [span for span in entities if not {"Tove", "Lund"} & {*tokens[span.start : span.end]}]
        sources = {"core": core, "full": [Span(start, end, "PER") for start, end, *_ in entities]}
        documents.append(Document(f"d{number}", tokens, entities=entities, sources=sources))
    return Corpus.from_documents(documents, types=["PER", "LOC"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)


@pytest.fixture(scope="module")
def fitted(tiny: str) -> AutoNER:
    return make(tiny, full=("full",), epochs=8).fit(sentences(60))


def make(tiny: str, **settings: Any) -> AutoNER:  # noqa: ANN401
    common = {"encoder": tiny, "epochs": 2, "learning_rate": 5e-3, "window": 24, "overlap": 6}
    return AutoNER(**{**common, "frozen_layers": 0, "empty_share": 1.0, **settings})


def weights(tagger: Tagger) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in tagger.model_.parameters()])


def test_phrases_of_unknown_type_leave_room_for_names_that_the_dictionary_lacks(tiny: str, fitted: AutoNER) -> None:
    test = sentences(20, seed=1)
    with_full = evaluate(test, fitted.predict(test)).f1
    without = evaluate(test, make(tiny, core=("core",), epochs=8).fit(sentences(60)).predict(test))
    assert with_full > 0.95
    assert without.micro.recall < 0.8


def test_entities_are_those_of_the_soft_labels(fitted: AutoNER) -> None:
    test = sentences(6, seed=2)
    tagged = fitted.predict(test)
    assert tagged.soft_labels is not None
    tagged.soft_labels.check(test.id_list)
    ours = [document.entities for document in tagged]
    again = test.with_entities(tagged.soft_labels.annotations())
    assert ours == [document.entities for document in again]
    assert tagged.soft_labels.types == ("PER", "LOC")


def test_it_is_a_tagger_by_name(tiny: str) -> None:
    assert TAGGERS["autoner"] is AutoNER
    assert create_tagger("autoner", {"full": ["phrases"]}).settings()["full"] == ("phrases",)
    assert make(tiny, epochs=0).fit(sentences(2))._outputs()[:3] == ("break before", "break after", "first: O")


def test_a_saved_tagger_answers_as_before(fitted: AutoNER, tmp_path: Path) -> None:
    fitted.save(tmp_path / "out")
    loaded = Tagger.load(tmp_path / "out")
    test = sentences(5, seed=1)
    assert isinstance(loaded, AutoNER)
    assert loaded.settings() == fitted.settings()
    assert np.array_equal(loaded.predict_proba(test).probabilities, fitted.predict_proba(test).probabilities)
    names = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["id2label"]
    assert list(names.values()) == list(fitted._outputs())
    assert "it takes tagweave to read entities" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_a_killed_training_goes_on_exactly(tiny: str, tmp_path: Path) -> None:
    corpus = sentences(12)
    unbroken = make(tiny, full=("full",)).fit(corpus)
    for _ in make(tiny, full=("full",)).fit_steps(corpus, folder=tmp_path):
        break
    resumed = make(tiny, full=("full",)).fit(corpus, folder=tmp_path, resume=True)
    assert resumed.history_ == unbroken.history_
    assert torch.equal(weights(resumed), weights(unbroken))
    other = corpus.with_source("core", corpus.sources["full"])
    with pytest.raises(StorageError, match="other data"):
        make(tiny, full=("full",)).fit(other, folder=tmp_path, resume=True)


def test_what_it_learns_from(tiny: str) -> None:
    """Sources, but soft labels where there are some, unless sources are named; entities where there is nothing else."""
    corpus = sentences(8)
    rows, _ = targets(corpus)
    labelled = corpus.with_entities(None, SoftLabels(corpus.types, corpus.offsets, rows))
    bare = corpus.select_sources([])
    by_gold, by_soft = (make(tiny).fit(given) for given in (bare, labelled))
    assert torch.equal(weights(by_gold), weights(by_soft))
    by_core, by_named = make(tiny).fit(corpus.select_sources(["core"])), make(tiny, core=("core",)).fit(labelled)
    assert torch.equal(weights(by_core), weights(by_named))
    assert not torch.equal(weights(by_core), weights(by_gold))


def test_a_long_document_is_read_to_its_end(tiny: str) -> None:
    tokens = ["Ada", "left", "Port", "Oslo", "."] * 30
    votes = [span for at in range(0, 150, 5) for span in (Span(at, at + 1, "PER"), Span(at + 2, at + 4, "LOC"))]
    corpus = Corpus.from_documents([Document("d", tokens, sources={"core": votes})])
    tagger = make(tiny, epochs=20, overlap=2).fit(corpus)
    assert [span[:3] for span in tagger.predict(corpus)[0].entities or ()] == [span[:3] for span in votes]


def test_it_takes_part_in_alternate_training(tiny: str) -> None:
    corpus = sentences(12)
    training = AlternateTraining(label_model=MajorityVote(), tagger=make(tiny, epochs=1), rounds=1)
    first, second = list(training.run(corpus))
    assert second.teacher is first.tagger
    assert isinstance(second.tagger, AutoNER)


def test_what_cannot_be_done(tiny: str, fitted: AutoNER) -> None:
    with pytest.raises(UsageError, match=r"threshold is 1\.0"):
        make(tiny, threshold=1.0)
    with pytest.raises(UsageError, match="no_such"):
        make(tiny, core=("no_such",)).fit(sentences(2))
    with pytest.raises(DataError, match="no entity type"):
        make(tiny).fit(Corpus.from_documents([Document("d", ["Ada"], sources={"core": []})]))
    with pytest.raises(UsageError, match="their outputs differ"):
        Tagger(encoder=tiny).fit(sentences(2), start_from=fitted)

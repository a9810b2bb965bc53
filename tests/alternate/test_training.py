import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tiny_encoder
from cli.running import news
from tagweave.alternate import AlternateTraining, Round, best_round, is_alternate, load_round, running
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, StorageError
from tagweave.label_models import HMM, LABEL_MODELS, base, create_label_model
from tagweave.tagger import TAGGERS, Tagger, create_tagger

pytestmark = pytest.mark.filterwarnings("ignore:the tagger")  # so little text teaches it little


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    words = sorted({token for record in news(3) for token in record["tokens"]})
    return tiny_encoder.build(tmp_path_factory.mktemp("encoder"), words)


@pytest.fixture(scope="module")
def train() -> Corpus:
    return corpus(12)


def corpus(count: int) -> Corpus:
    return Corpus.from_documents(
        Document(
            record["id"],
            record["tokens"],
            entities=[Span(*span) for span in record["entities"]],
            sources={name: [Span(*span) for span in spans] for name, spans in record["sources"].items()},
        )
        for record in news(count)
    )


def plan(encoder: str, **settings: Any) -> AlternateTraining:  # noqa: ANN401
    tagger = Tagger(encoder=encoder, epochs=2, learning_rate=5e-3, batch_windows=4, dropout=0.1, window=32, overlap=8)
    return AlternateTraining(**{"label_model": HMM(iterations=3), "tagger": tagger, "rounds": 2, **settings})


def pretend(monkeypatch: pytest.MonkeyPatch, *scores: float) -> None:
    """Let the scores that decide be those; the last one comes again and again."""
    given = iter(scores)
    monkeypatch.setattr(running, "evaluate", lambda *_, **__: SimpleNamespace(f1=next(given, scores[-1])))


def with_dev(*best: float) -> Iterator[float]:
    """In the order in which a run asks for them: agreement but for round 0, label model and tagger on dev."""
    for number, f1 in enumerate(best):
        yield from ([0.9] * bool(number) + [f1, f1 / 2])


def test_rounds_with_their_models(encoder: str, train: Corpus, tmp_path: Path) -> None:
    dev = corpus(6)
    rounds = list(plan(encoder).run(train, dev, folder=tmp_path / "run"))
    assert [finished.number for finished in rounds] == [0, 1, 2]
    assert rounds[0].label_model.sources_ == ("names", "cities, towns", "all", "odd")
    assert rounds[0].teacher is None
    assert rounds[0].agreement is None
    for before, finished in zip(rounds, rounds[1:], strict=False):
        assert finished.label_model.sources_ == ("names", "cities, towns", "all", "odd", "tagger")
        assert finished.teacher is before.tagger
        assert finished.agreement is not None
    assert all(set(finished.f1) == {"label-model", "tagger"} for finished in rounds)
    found, output = load_round(tmp_path / "run")
    best = best_round(rounds)
    assert (found.number, found.f1) == (best.number, best.f1)
    assert best.f1[output] == best.best_f1
    for name in ("tagger", "label-model"):
        assert np.array_equal(probabilities(found, dev, name), probabilities(best, dev, name))


def test_silence_means_the_same_in_all_rounds(
    encoder: str, train: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(plan(encoder).run(train, corpus(6), folder=tmp_path / "whole"))
    assert {finished.label_model.silence_ for finished in whole} == {"token"}
    monkeypatch.setattr(base, "_SILENCES", ("never",))
    begun = plan(encoder).run(train, corpus(6), folder=tmp_path / "run")
    assert next(begun).label_model.silence_ == "never"
    begun.close()
    monkeypatch.undo()
    rounds = list(plan(encoder).run(train, corpus(6), folder=tmp_path / "run", resume=True))
    assert {finished.label_model.silence_ for finished in rounds} == {"never"}


def probabilities(finished: Round, target: Corpus, output: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
    soft = finished.predict(target, output).soft_labels
    assert soft is not None
    return soft.probabilities


def test_gold_of_the_training_documents_does_not_matter(encoder: str, train: Corpus) -> None:
    seeing, blind = (plan(encoder, rounds=1).fit(given) for given in (train, train.with_entities(None)))
    assert seeing.number == 1
    assert np.array_equal(probabilities(seeing, train, "tagger"), probabilities(blind, train, "tagger"))


def test_dev_stops_chooses_and_what_is_not_needed_goes(
    encoder: str, train: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, *with_dev(0.5, 0.7, 0.6, 0.7, 0.65))
    rounds = list(plan(encoder, rounds=9, patience=3).run(train, corpus(6), folder=tmp_path))
    assert [finished.best_f1 for finished in rounds] == [0.5, 0.7, 0.6, 0.7, 0.65]
    found, output = load_round(tmp_path)
    assert (found.number, output) == (1, "label-model")
    kept = [number for number in range(5) if (tmp_path / "rounds" / str(number) / "tagger").exists()]
    assert kept == [0, 1, 3, 4]
    assert np.array_equal(probabilities(found, train, "label-model"), probabilities(rounds[1], train, "label-model"))


def test_without_dev_it_stops_where_labels_settle(
    encoder: str, train: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, 0.9, 0.98, 0.9)
    rounds = list(plan(encoder, rounds=9, settled=0.95).run(train, folder=tmp_path))
    assert [finished.agreement for finished in rounds] == [None, 0.9, 0.98]
    found, output = load_round(tmp_path)
    assert (found.number, found.f1, output) == (2, {}, "label-model")


def test_the_tagger_goes_on_or_starts_afresh(encoder: str, train: Corpus) -> None:
    settings: dict[str, Any] = {"rounds": 1, "refine_epochs": 0}
    first, continued = plan(encoder, **settings).run(train)
    assert np.array_equal(probabilities(first, train, "tagger"), probabilities(continued, train, "tagger"))
    first, afresh = plan(encoder, **settings, continued=False).run(train)
    assert not np.array_equal(probabilities(first, train, "tagger"), probabilities(afresh, train, "tagger"))
    assert continued.tagger.learning_rate == first.tagger.learning_rate / 2
    assert afresh.tagger.learning_rate == first.tagger.learning_rate


class Killed(BaseException):
    pass


@pytest.mark.parametrize(("kind", "steps"), [("bert", 11), ("bert", 16), ("bond", 16)])
def test_killed_again_and_again_it_ends_the_same(
    encoder: str, train: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, steps: int
) -> None:
    tagger = create_tagger(kind, plan(encoder).tagger.settings())
    dev, training = corpus(6), plan(encoder, tagger=tagger, rounds=3, refine_whole_batch=True)
    for _ in training.run(train, dev, folder=tmp_path / "whole"):
        pass
    replace = os.replace
    left = [0]

    def killing(*places: Any) -> None:  # noqa: ANN401
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        replace(*places)

    monkeypatch.setattr(os, "replace", killing)
    kills = 0
    while kills < 100:
        left[0] = steps
        try:
            for _ in training.run(train, dev, folder=tmp_path / "broken", resume=True):
                pass
            break
        except Killed:
            kills += 1
    assert 3 < kills < 100
    for name in ("result.json", "tagger/model.safetensors", "label-model/parameters.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not list((tmp_path / "broken").glob("rounds/*/training"))


def test_finished_rounds_are_not_done_again(
    encoder: str, train: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for finished in plan(encoder, rounds=5, settled=2).run(train, folder=tmp_path):
        if finished.number == 3:
            break
    assert not (tmp_path / "result.json").exists()
    with pytest.raises(StorageError, match="no finished alternate training"):
        load_round(tmp_path)
    fitted: list[str] = []
    fit = HMM.fit
    monkeypatch.setattr(HMM, "fit", lambda self, *given: (fitted.append("hmm"), fit(self, *given))[1])
    resumed = list(plan(encoder, rounds=5, settled=2).run(train, folder=tmp_path, resume=True))
    assert [finished.number for finished in resumed] == [3, 4, 5]
    assert len(fitted) == 2
    again = list(plan(encoder, rounds=5, settled=2).run(train, folder=tmp_path, resume=True))
    assert [finished.number for finished in again] == [5]
    assert len(fitted) == 2


def test_a_folder_holds_one_run(encoder: str, train: Corpus, tmp_path: Path) -> None:
    plan(encoder, rounds=0).fit(train, folder=tmp_path)
    assert is_alternate(tmp_path)
    with pytest.raises(StorageError, match="holds a run already"):
        plan(encoder, rounds=0).fit(train, folder=tmp_path)
    with pytest.raises(StorageError, match="a run with other label_model, rounds:"):
        plan(encoder, rounds=1, label_model=HMM(iterations=4)).fit(train, folder=tmp_path, resume=True)
    with pytest.raises(StorageError, match="a run with other data, dev:"):
        plan(encoder, rounds=0).fit(corpus(11), corpus(6), folder=tmp_path, resume=True)
    linked = Corpus.from_documents(Document(**{**_fields(d), "links": {"all": [Span(0, 2, "same")]}}) for d in train)
    with pytest.raises(StorageError, match="a run with other data:"):
        plan(encoder, rounds=0).fit(linked, folder=tmp_path, resume=True)


@pytest.mark.parametrize("label_model", [name for name, model in LABEL_MODELS.items() if not model.uses_gold])
@pytest.mark.parametrize("tagger", sorted(TAGGERS))
def test_every_pair(encoder: str, train: Corpus, label_model: str, tagger: str) -> None:
    own = {"encoder": encoder, "layers": (1, 2), "epochs": 1} if label_model.startswith("chmm") else {}
    settings = {"encoder": encoder, "epochs": 1, "learning_rate": 5e-3, "window": 32, "overlap": 8}
    training = plan(encoder, label_model=create_label_model(label_model, own), tagger=create_tagger(tagger, settings))
    first, second = list(replace(training, rounds=1).run(train))
    assert second.teacher is first.tagger
    assert second.label_model.sources_ == (*train.sources, "tagger")
    assert len(second.predict(train, "tagger")) == len(second.predict(train, "label-model")) == len(train)


def _fields(document: Document) -> dict[str, Any]:
    return {f.name: getattr(document, f.name) for f in fields(document)}


def test_what_cannot_be_run(encoder: str, train: Corpus) -> None:
    with pytest.raises(DataError, match="a source is called 'tagger'"):
        plan(encoder).fit(train.with_source("tagger", train.sources["all"]))
    with pytest.raises(DataError, match="no gold entities"):
        plan(encoder).fit(train, train.with_entities(None))


def test_folders_that_hold_something_else(tmp_path: Path) -> None:
    assert not is_alternate(tmp_path)
    with pytest.raises(StorageError, match=r"result.json is missing"):
        load_round(tmp_path)

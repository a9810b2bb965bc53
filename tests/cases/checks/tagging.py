"""Checks of embeddings, training and the exported tagger, with tiny encoders that are made on the spot."""

import json
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import tiny_encoder
from cases.checks.reading import character_spans, corpus_of, document_of, mentions
from cases.harness import Check, check
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.encoder.embeddings import embed
from tagweave.errors import StorageError, TagweaveError, TagweaveWarning
from tagweave.soft_labels import SoftLabels

Entities = list[list[tuple[int, int, str]]]


def tagger(item: Check, corpus: Corpus, kind: tiny_encoder.Kind = "wordpiece", **settings: Any) -> Any:  # noqa: ANN401
    """An unfitted tagger with an encoder that knows the words of the corpus."""
    from tagweave.tagger import Tagger

    words = sorted({word for word in corpus.tokens.to_pylist() if word.isalpha()} | {"Brina", "Kelmot"})
    name = tiny_encoder.build(item.scratch / f"encoder-{kind}", words, kind)
    given = {"epochs": 2, "learning_rate": 5e-3, "warmup": 0.0, "dropout": 0.0, "window": 32, "overlap": 8, **settings}
    return Tagger(encoder=name, **{"frozen_layers": 0, "empty_share": 1.0, **given})


def learned(item: Check, corpus: Corpus, **settings: Any) -> Any:  # noqa: ANN401
    """A tagger that has learned the corpus by heart."""
    return tagger(item, corpus, **{"epochs": 60, **settings}).fit(corpus)


def entities(corpus: Corpus) -> Entities:
    return [[(s.start, s.end, s.type) for s in document.entities or ()] for document in corpus]


def weights(fitted: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
    return np.concatenate([p.detach().numpy().ravel() for p in fitted.model_.parameters()])


def names(*tokens: str) -> Corpus:
    """One document in which Brina is a person and Kelmot a place."""
    types = {"Brina": "PER", "Kelmot": "LOC"}
    spans = [Span(i, i + 1, types[token]) for i, token in enumerate(tokens) if token in types]
    return Corpus.from_documents([Document("d", tokens, entities=spans)], types=["PER", "LOC"])


@check("embeddings_per_word")
def embeddings_per_word(item: Check) -> None:
    corpus = corpus_of(item)
    rows = embed(corpus, tagger(item, corpus).encoder, cache=item.scratch / "cache")
    assert rows.shape == (len(corpus.tokens), 32)
    assert np.isfinite(rows).all()
    assert (np.abs(rows).sum(axis=1) > 0).all()


@check("predictions_per_word")
def predictions_per_word(item: Check) -> None:
    corpus = corpus_of(item)
    soft = tagger(item, corpus, epochs=1).fit(corpus).predict_proba(corpus)
    assert len(soft.probabilities) == len(corpus.tokens)
    soft.check(corpus.id_list)


@check("neighbours_keep_their_labels")
def neighbours_keep_their_labels(item: Check) -> None:
    corpus = corpus_of(item)
    found = learned(item, corpus, epochs=15).predict(corpus)
    assert entities(found) == entities(corpus)


@check("learned_spans")
def learned_spans(item: Check) -> None:
    corpus = corpus_of(item)
    for kind in item.expected["tokenizers"]:
        found = learned(item, corpus, kind=kind).predict(corpus)
        assert character_spans(document_of(item, found)) == item.expected["value"], kind


@check("learned_entities")
def learned_entities(item: Check) -> None:
    corpus = corpus_of(item)
    assert entities(learned(item, corpus, epochs=8).predict(corpus)) == entities(corpus)


@check("words_learned")
def words_learned(item: Check) -> None:
    from tagweave.tagger.fitting import Fitting

    corpus = corpus_of(item)
    fitting = Fitting(tagger(item, corpus), corpus, None, None)
    assert sum(fitting._loss(batch)[1] for batch in fitting._batches(0)) == item.expected["n"]


@check("predictions_per_giant_word")
def predictions_per_giant_word(item: Check) -> None:
    fitted = learned(item, names("Brina", "left", "Kelmot"))
    start = time.monotonic()
    for part, count in item.expected["words"]:
        corpus = names("Brina", part * count, "Kelmot")
        assert len(fitted.predict_proba(corpus).probabilities) == 3
        assert [span for span in entities(fitted.predict(corpus))[0] if span[0] != 1] == entities(corpus)[0]
    assert time.monotonic() - start < item.expected["seconds"]


@check("idle_tagger_warning")
def idle_tagger_warning(item: Check) -> None:
    dev = corpus_of(item)
    idle = Corpus.from_documents([Document("t", ["we", "left", "."], entities=[])], types=dev.types)
    fitted = tagger(item, dev, epochs=20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted.fit(idle, dev)
    (warning,) = caught
    assert issubclass(warning.category, TagweaveWarning)
    assert mentions(str(warning.message), [item.expected["mentions"]])
    assert fitted.history_[-1]["entities"] == 0


@check("best_epoch_by_entity_f1")
def best_epoch_by_entity_f1(item: Check) -> None:
    corpus = corpus_of(item)
    fitted = tagger(item, corpus, epochs=10)
    for _ in fitted.fit_steps(corpus, corpus):
        pass
    scores = [row["f1"] for row in fitted.history_]
    best = [index for index, row in enumerate(fitted.history_) if row["best"]][-1]
    assert best == scores.index(max(scores))


@check("nothing_to_learn")
def nothing_to_learn(item: Check) -> None:
    corpus = Corpus.from_documents(corpus_of(item), types=["PER"])
    for given in (corpus, certain(corpus)):
        fitted = tagger(item, given)
        assert [epoch.loss for epoch in fitted.fit_steps(given)] == [item.expected["loss"]] * 2
        assert np.array_equal(weights(fitted), weights(tagger(item, given, epochs=0).fit(given)))


def certain(corpus: Corpus) -> Corpus:
    """The corpus with O as the certain soft label of every word, and no entities."""
    labels = np.zeros(len(corpus.tokens), np.int64)
    return corpus.with_entities(None, SoftLabels.from_labels(labels, corpus.offsets, corpus.types))


def two_runs(item: Check) -> list[tuple[Any, ...]]:
    corpus = corpus_of(item)
    runs = []
    for seed in item.expected["seeds"]:
        fitted = tagger(item, corpus, seed=seed, dropout=0.1).fit(corpus)
        losses = tuple(row["loss"] for row in fitted.history_)
        runs.append((losses, fitted.predict_proba(corpus).probabilities.tobytes()))
    return runs


@check("runs_equal")
def runs_equal(item: Check) -> None:
    first, second = two_runs(item)
    assert first == second


@check("runs_differ")
def runs_differ(item: Check) -> None:
    first, second = two_runs(item)
    assert first[0] != second[0]


@check("saved_metadata")
def saved_metadata(item: Check) -> None:
    corpus = corpus_of(item)
    tagger(item, corpus, seed=item.expected["seed"]).fit(corpus).save(item.scratch / "out")
    saved = json.loads((item.scratch / "out" / "tagweave.json").read_text(encoding="utf-8"))
    assert saved["seed"] == item.expected["seed"]
    assert all(saved[key] is not None for key in item.expected["keys"])


@check("kept_states")
def kept_states(item: Check) -> None:
    corpus = corpus_of(item)
    tagger(item, corpus, epochs=4).fit(corpus, corpus, folder=item.scratch / "run")
    assert sorted(path.name for path in (item.scratch / "run").iterdir()) == item.expected["names"]


@contextmanager
def full_disk() -> Iterator[None]:
    with patch("shutil.disk_usage", lambda path: SimpleNamespace(free=10_000)):
        yield


@check("full_disk_error")
def full_disk_error(item: Check) -> None:
    corpus = corpus_of(item)
    with full_disk(), pytest.raises(StorageError, match=item.expected["mentions"]):
        tagger(item, corpus).fit(corpus, folder=item.scratch / "run")
    assert list((item.scratch / "run").iterdir()) == []


@check("export_without_optimizer")
def export_without_optimizer(item: Check) -> None:
    from safetensors import safe_open

    corpus = corpus_of(item)
    fitted = tagger(item, corpus).fit(corpus)
    fitted.save(item.scratch / "out")
    with safe_open(item.scratch / "out" / "model.safetensors", "numpy") as file:
        assert set(file.keys()) == set(fitted.model_.state_dict())
    assert [path.name for path in (item.scratch / "out").glob("*.safetensors")] == ["model.safetensors"]


@check("trains")
def trains(item: Check) -> None:
    corpus = corpus_of(item)
    assert corpus.soft_labels is not None
    fitted = tagger(item, corpus, epochs=1).fit(corpus)
    assert 0 < fitted.history_[0]["loss"] < 10


@check("loss_of_hard_labels")
def loss_of_hard_labels(item: Check) -> None:
    from torch.nn.functional import cross_entropy

    from tagweave.tagger.fitting import Fitting

    corpus = corpus_of(item)
    assert corpus.soft_labels is not None
    fitting = Fitting(tagger(item, corpus), corpus, None, None)
    fitting._tagger.model_.eval()
    (batch,) = fitting._batches(0)
    loss, weight = fitting._loss(batch)
    words, logits = fitting._tagger._logits(fitting._pieces, fitting._windows, batch)
    labels = corpus.soft_labels.probabilities[words].argmax(axis=1)
    expected = cross_entropy(logits, logits.new_tensor(labels).long())
    assert float(loss.detach() / weight) == pytest.approx(float(expected.detach()), abs=item.expected["tolerance"])


@check("training_error")
def training_error(item: Check) -> None:
    with pytest.raises(TagweaveError) as error:
        corpus = corpus_of(item)
        tagger(item, corpus).fit(corpus)
    for word in item.expected["mentions"]:
        assert re.search(rf"\b{word}\b", str(error.value)), error.value


@check("exported_labels")
def exported_labels(item: Check) -> None:
    corpus = corpus_of(item).with_types(item.expected["types"])
    tagger(item, corpus).fit(corpus).save(item.scratch / "out")
    config = json.loads((item.scratch / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {str(number): name for number, name in enumerate(item.expected["value"])}
    assert config["label2id"] == {name: number for number, name in enumerate(item.expected["value"])}


@check("reloaded_predictions")
def reloaded_predictions(item: Check) -> None:
    from tagweave.tagger import Tagger

    corpus = corpus_of(item)
    fitted = tagger(item, corpus).fit(corpus)
    fitted.save(item.scratch / "out")
    rows = [given.predict_proba(corpus).probabilities for given in (fitted, Tagger.load(item.scratch / "out"))]
    assert np.array_equal(*rows)


@check("edges_on_words")
def edges_on_words(item: Check) -> None:
    corpus = corpus_of(item)
    found = learned(item, corpus).predict(corpus)
    assert entities(found) == entities(corpus)
    (document,) = found
    assert document.text is not None
    for start, end, _, _ in character_spans(document):
        assert not document.text[start - 1 : start].isalnum() and not document.text[end : end + 1].isalnum()


@check("pipeline_agrees")
def pipeline_agrees(item: Check) -> None:
    from transformers import pipeline

    (document,) = corpus_of(item)
    fitted = learned(item, corpus_of(item))
    fitted.save(item.scratch / "out")
    assert document.text is not None
    words = fitted.encoder_.tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(document.text)
    corpus = Corpus.from_documents(
        [Document("k", [word for word, _ in words], text=document.text, characters=[edges for _, edges in words])]
    )
    (ours,) = fitted.predict(corpus)
    theirs = pipeline(
        "token-classification",
        model=str(item.scratch / "out"),
        aggregation_strategy=item.expected["strategy"],
        device="cpu",
    )(document.text)
    assert by_characters(theirs, document.text) == character_spans(ours) != []


def by_characters(found: Sequence[Any], text: str) -> list[list[Any]]:
    return [[row["start"], row["end"], row["entity_group"], text[row["start"] : row["end"]]] for row in found]

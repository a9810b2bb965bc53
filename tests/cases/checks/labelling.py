"""Checks of label models. Each document of an input file stands for as many copies as the argument `copies` says."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_encoder
from cases.checks.reading import mentions
from cases.harness import DATA, Check, check
from tagweave.corpus import Corpus
from tagweave.errors import TagweaveError, TagweaveWarning
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import HMM, LABEL_MODELS, LabelModel, create_label_model

MODELS = ("majority-vote", "span-vote", "hmm", "chmm", "chmm-iid")
EPOCHS = 2
"""Of the models that have epochs."""

Entities = dict[str, list[list[Any]]]


def copied(corpus: Corpus, copies: int) -> Corpus:
    """Each document so many times; the copies of `a` are called `a`, `a:1`, `a:2`."""
    made = [
        replace(document, id=document.id if number == 0 else f"{document.id}:{number}")
        for document in corpus
        for number in range(copies)
    ]
    return Corpus.from_documents(made, corpus.types, corpus.coarse)


def votes(item: Check, path: Path | None = None, **changes: Any) -> Corpus:  # noqa: ANN401
    """The corpus of a file."""
    given = {**item.arguments, **changes}
    corpus = read(path or item.path, types=given.get("types"), coarse=given.get("coarse"))
    return copied(corpus, given.get("copies", 1))


def made_model(item: Check, name: str, settings: dict[str, Any]) -> LabelModel:
    """A label model; one that has an encoder gets a tiny one and few epochs, unless the check wants its own."""
    known = {f.name for f in fields(LABEL_MODELS[name])}
    small: dict[str, Any] = {}
    if "encoder" in known and not item.expected.get("own_encoder"):
        folder = item.scratch / "encoder"
        encoder = str(folder) if folder.exists() else tiny_encoder.build(folder, ["Brina", "Kelmot", "left"])
        small = {"epochs": EPOCHS, "encoder": encoder, "layers": (1, 2)}
    return create_label_model(name, {**small, **settings})


def models(item: Check) -> Iterator[LabelModel]:
    """The models that a check is about, with each of its settings; silence is a vote for O unless it says otherwise."""
    for name in item.expected.get("models", MODELS):
        for settings in item.expected.get("settings", [{}]):
            if name in LABEL_MODELS:
                yield made_model(item, name, {"silence": "never", **settings})


@contextmanager
def quiet() -> Iterator[None]:
    """Our own warnings are not the matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TagweaveWarning)
        yield


def entities(corpus: Corpus) -> Entities:
    return {document.id: [list(span[:3]) for span in document.entities or ()] for document in corpus}


def checked_prediction(model: LabelModel, corpus: Corpus) -> Corpus:
    """The prediction of a fitted model, which must be sound."""
    found = model.predict(corpus)
    assert found.soft_labels is not None
    rows = found.soft_labels.probabilities
    assert found.id_list == corpus.id_list
    assert rows.shape == (len(corpus.tokens), 1 + 2 * len(corpus.types))
    assert np.isfinite(rows).all() and (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
    for name, array in model.parameters().items():
        assert not np.issubdtype(array.dtype, np.floating) or np.isfinite(array).all(), name
    return found


def assert_entities(found: Entities, expected: dict[str, Any], place: str) -> None:
    """Compare with what is expected by id; `*` stands for all other documents, copies are as their document."""
    for name, spans in found.items():
        wanted = expected.get(name.partition(":")[0], expected.get("*"))
        assert wanted is None or spans == wanted, f"{place}: {name}"


@check("labelled")
def labelled(item: Check) -> None:
    """Fit on the file, label it, and compare entities."""
    corpus = votes(item)
    for model in models(item):
        found = entities(checked_prediction(model.fit(corpus), corpus))
        assert_entities(found, item.expected["entities"], repr(model))


@check("contains")
def contains(item: Check) -> None:
    """One entity is found, whatever else is."""
    corpus = votes(item)
    for model in models(item):
        found = entities(checked_prediction(model.fit(corpus), corpus))
        for name, spans in item.expected["entities"].items():
            assert all(span in found[name] for span in spans), f"{model!r}: {name}: {found[name]}"


@check("tokens_labelled")
def tokens_labelled(item: Check) -> None:
    """The type (or O) of the most probable label of single tokens of the first document."""
    corpus = votes(item)
    for model in models(item):
        soft = checked_prediction(model.fit(corpus), corpus).soft_labels
        assert soft is not None
        names = [soft.labels.names[number].split("-")[-1] for number in soft.document(0).argmax(axis=1)]
        assert {token: names[int(token)] for token in item.expected["value"]} == item.expected["value"], repr(model)


@check("entity_likely")
def entity_likely(item: Check) -> None:
    """On a token, some entity is more probable than O."""
    corpus = votes(item)
    for model in models(item):
        soft = checked_prediction(model.fit(corpus), corpus).soft_labels
        assert soft is not None
        assert soft.document(0)[item.expected["token"], 0] < 0.5, repr(model)


@check("labels_new_votes", all_files=True)
def labels_new_votes(item: Check) -> None:
    """Fitted on one file, another one with other votes is answered."""
    corpus, new = (votes(item, path) for path in sorted(item.paths))
    for model in models(item):
        with quiet():
            checked_prediction(model.fit(corpus), new)


@check("fit_warning")
def fit_warning(item: Check) -> None:
    """Fitting says what no model can find."""
    corpus = votes(item)
    for model in models(item):
        with pytest.warns(TagweaveWarning) as caught:
            model.fit(corpus)
        assert mentions(str(caught[0].message), item.expected["mentions"])
        found = entities(checked_prediction(model, corpus))
        assert_entities(found, item.expected["entities"], repr(model))


@check("tie_shows")
def tie_shows(item: Check) -> None:
    """Two types are equally probable on a token."""
    corpus = votes(item)
    for model in models(item):
        soft = checked_prediction(model.fit(corpus), corpus).soft_labels
        assert soft is not None
        first, second = (
            sum(soft.document(0)[item.expected["token"], [1 + 2 * n, 2 + 2 * n]])
            for n in map(corpus.types.index, item.expected["types"])
        )
        assert first == pytest.approx(second, abs=1e-6) and first > 0.3


@check("order_is_nothing", all_files=True)
def order_is_nothing(item: Check) -> None:
    """The same votes in another order of sources, documents and types give the same entities."""
    found = []
    for path in item.paths:
        for types in (item.expected["types"], item.expected["types"][::-1]):
            corpus = votes(item, path, types=types)
            for turned in (corpus, corpus.subset(np.arange(len(corpus))[::-1])):
                for model in models(item):
                    found.append(entities(model.fit(turned).predict(turned)))
    assert len(found) > 4 and all(each == found[0] for each in found)


@check("hash_seed_is_nothing")
def hash_seed_is_nothing(item: Check) -> None:
    """What is written does not depend on how Python orders sets."""
    program = (
        "from tagweave import MajorityVote, read, write\n"
        f"corpus = read({str(item.path)!r})\n"
        "write(MajorityVote(silence='never').fit(corpus).predict(corpus), '-')\n"
    )
    outputs = set()
    for seed in item.expected["seeds"]:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=900)
        assert result.returncode == 0, result.stderr
        outputs.add(result.stdout)
    assert len(outputs) == 1


@check("rare_source_is_nothing")
def rare_source_is_nothing(item: Check) -> None:
    """Without the source all documents but one come out the same."""
    corpus = votes(item)
    without = corpus.select_sources([name for name in corpus.sources if name != item.expected["source"]])
    for model in models(item):
        with quiet():
            found = [entities(fitted.predict(corpus)) for fitted in (model.fit(corpus), replace(model).fit(without))]
        differing = {name for name in found[0] if found[0][name] != found[1][name]}
        assert differing <= {item.expected["but"]}, repr(model)


@check("many_copies_of_a_source")
def many_copies_of_a_source(item: Check) -> None:
    corpus = votes(item)
    name, count = item.expected["source"], item.expected["count"]
    for number in range(count):
        corpus = corpus.with_source(f"{name}-{number}", corpus.sources[name])
    for model in models(item):
        checked_prediction(model.fit(corpus), corpus)


@check("long_document")
def long_document(item: Check) -> None:
    """A document of so many words, in which every fiftieth is a person, and the same words in sentences of fifty."""
    every = item.expected["every"]
    for length in item.expected["words"]:
        (one,) = votes(item)
        sources = {
            name: [span._replace(start=at, end=at + 1) for span in spans or () for at in range(0, length, every)]
            for name, spans in one.sources.items()
        }
        corpus = Corpus.from_documents([replace(one, tokens=[one.tokens[0]] * length, sources=sources)])
        short = copied(
            Corpus.from_documents(
                [replace(one, tokens=[one.tokens[0]] * every, sources={n: s[:1] for n, s in sources.items()})]
            ),
            length // every,
        )
        for model in models(item):
            found = entities(checked_prediction(model.fit(corpus), corpus))["long"]
            assert found == [[at, at + 1, "PER"] for at in range(0, length, every)], repr(model)
            assert all(np.isfinite(value) for row in model.history_ for value in row.values() if value is not None)
            cut = entities(replace(model).fit(short).predict(short))
            assert all(spans == [[0, 1, "PER"]] for spans in cut.values()), repr(model)


@check("stochastic")
def stochastic(item: Check) -> None:
    """What a model shows of each source and of the transitions are distributions."""
    corpus = votes(item)
    for model in models(item):
        tables = model.fit(corpus).tables()
        assert tables
        for table in tables:
            for _, *row in table.rows:
                assert sum(float(cell) for cell in row) == pytest.approx(100, abs=1e-3), table.title


@check("states_keep_their_names")
def states_keep_their_names(item: Check) -> None:
    """Good sources say most often of an entity what it is."""
    corpus = votes(item)
    for model in models(item):
        for table in model.fit(corpus).tables():
            if any(f" {name} " in table.title for name in item.expected["sources"]):
                for name, *row in table.rows:
                    said = table.columns[1 + int(np.argmax(row))]
                    if not name.startswith("I-"):
                        assert said == name, f"{model!r}: {table.text()}"


@check("objective_never_falls")
def objective_never_falls(item: Check) -> None:
    corpus = votes(item)
    for model in models(item):
        history = [row["objective"] for row in model.fit(corpus).history_]
        assert len(history) > 1
        for before, after in zip(history, history[1:], strict=False):
            assert after >= before - 1e-6 * abs(before)
        assert isinstance(model, HMM) and (model.converged or len(history) == model.iterations)


@check("seeds_agree")
def seeds_agree(item: Check) -> None:
    """All seeds find the same entities, and one seed gives the very same values twice."""
    corpus = votes(item)
    for model in models(item):
        found = [entities(replace(model, seed=seed).fit(corpus).predict(corpus)) for seed in item.expected["seeds"]]
        assert all(each == found[0] for each in found), repr(model)
        first, second = (replace(model).fit(corpus).parameters() for _ in range(2))
        assert all(np.array_equal(first[name], second[name]) for name in {*first, *second})


@check("no_numeric_warnings")
def no_numeric_warnings(item: Check) -> None:
    """Nothing is divided by zero, and no logarithm of it taken, in any case of the given groups."""
    for path in sorted(DATA.glob(item.expected["files"])):
        with quiet():
            try:
                corpus = copied(read(path), 3)
            except TagweaveError:
                continue
            for model in models(item) if corpus.sources else ():
                evaluate(corpus.with_entities(corpus.entities or None), model.fit(corpus).predict(corpus))

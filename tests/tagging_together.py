"""Taggers trained in several processes, and in one, for `test_distributed.py`."""

import contextlib
import io
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import tiny_encoder
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.formats import write
from tagweave.tagger import create_tagger
from tagweave.team import Team

PEOPLE, PLACES = ["Orlin", "Ada", "Berit", "Tove"], ["Vestara", "Oslo", "Lund"]
OTHERS = ["visited", "left", "yesterday", ".", "and", "in"]

SETTINGS: dict[str, dict[str, Any]] = {
    "bert": {},
    "whole": {"kind": "bert", "whole_batch": True},
    "crf": {"kind": "bert", "output": "crf"},
    "bond": {"first_steps": 6, "self_epochs": 1, "period": 2, "confidence": 0.2},
    "autoner": {},
}
"""Kinds of taggers, all without dropout, which draws other numbers in each process."""


def sentences(count: int, seed: int = 0) -> Corpus:
    """Sentences of very unequal lengths with names of people and places, one of them longer than a window."""
    chance = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        tokens: list[str] = []
        spans = []
        for _ in range(12 if number == 3 else chance.integers(1, 4)):
            spans += [Span(len(tokens), len(tokens) + 1, "PER"), Span(len(tokens) + 2, len(tokens) + 3, "LOC")]
            tokens += [str(chance.choice(words)) for words in (PEOPLE, OTHERS[:2], PLACES, OTHERS[2:])]
        votes = {"a": spans[::2], "b": spans[1::2], "c": spans[: chance.integers(3)]}
        documents.append(Document(f"d{number}", tokens, entities=spans, sources=votes))
    return Corpus.from_documents(documents, types=["PER", "LOC"])


def prepare(folder: Path) -> None:
    """An encoder and files of documents."""
    tiny_encoder.build(folder / "tiny", [*PEOPLE, *PLACES, *OTHERS])
    write(sentences(21), folder / "train.jsonl")
    write(sentences(7, seed=1), folder / "dev.jsonl")


def fitted(folder: Path, own: Path) -> dict[str, Any]:
    """What taggers of all kinds say after training, with and without a folder."""
    found = {}
    train, dev = sentences(21), sentences(7, seed=1)
    for name, given in SETTINGS.items():
        own_settings = {k: v for k, v in given.items() if k != "kind"}
        common = {"encoder": str(folder / "tiny"), "learning_rate": 2e-3, "window": 24, "batch_windows": 5, "epochs": 2}
        tagger = create_tagger(given.get("kind", name), {**common, "dropout": 0.0, **own_settings})
        tagger.fit(
            train.select_sources([]), dev.select_sources([]), folder=own / name if name in ("bert", "bond") else None
        )
        sums = {n: float(p.detach().double().abs().sum()) for n, p in tagger.model_.named_parameters()}
        said = tagger.predict_proba(dev).probabilities.astype(float).round(5).tolist()
        history = [[row["loss"], row["f1"], row["entities"]] for row in tagger.history_]
        found[name] = {"history": history, "said": said, "sums": sums}
    return found


def run(*arguments: str) -> dict[str, Any]:
    """A command of the command line."""
    from tagweave.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with mock.patch.object(sys, "argv", ["tagweave", *arguments]):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = end.code
    return {"code": code or 0, "out": out.getvalue(), "err": err.getvalue()}


def commands(folder: Path, team: Team) -> dict[str, Any]:
    """`train` and `alternate`; each process has a folder of its own, as on machines without a common disk."""
    own = folder / f"machine-{team.rank}-of-{team.size}"
    own.mkdir()
    encoder = ("--encoder", str(folder / "tiny"))
    plain = ("--set", "tagger.dropout=0", "--set", "tagger.learning_rate=0.002", "--set", "tagger.epochs=1")
    data = (str(folder / "train.jsonl"), "--dev", str(folder / "dev.jsonl"), *encoder)
    settings = [value.replace("tagger.", "") for value in plain]
    alternate = ("alternate", *data, "--label-model", "hmm", *plain, "--rounds", "1", "--out", str(own / "run"))
    found = {
        "train": run("train", *data, *settings, "--out", str(own / "tagger")),
        "alternate": run(*alternate),
        "again": run(*alternate),
        "resumed": run(*alternate, "--resume"),
        "wrong": run("train", str(folder / "missing.jsonl"), "--out", str(own / "x")),
        "predict": run("predict", str(own / "tagger"), str(folder / "dev.jsonl"), "--out", str(own / "x.jsonl")),
    }
    return {**found, "files": sorted(path.name for path in own.iterdir())}

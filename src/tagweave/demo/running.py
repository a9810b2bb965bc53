"""`run_demo`: alternate training on the demo corpus, and the scores of each stage on the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tagweave.alternate import OUTPUTS, AlternateTraining, Round, best_round
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.demo.corpus import read_demo
from tagweave.evaluation import evaluate, source_scores
from tagweave.evaluation.scores import Score
from tagweave.label_models import HMM, ConditionalHMM, MajorityVote, SpanVote
from tagweave.report import Cell, Table
from tagweave.tagger import Tagger

_TITLE = "Strict entity precision (P), recall (R) and F1, in percent"
_COLUMNS = ("stage", "dev P", "dev R", "dev F1", "test P", "test R", "test F1")
_EXAMPLES = 4


@dataclass(frozen=True)
class DemoReport:
    """What the demo shows.

    Attributes:
        table: scores of each stage on dev and test.
        choice: the stage that is best on dev.
        examples: test sentences with an entity that the last tagger found where no source votes.
        folder: where the models are, or None.
    """

    table: Table
    choice: str
    examples: tuple[str, ...]
    folder: Path | None

    def text(self) -> str:
        """The table, what was chosen, the examples, and what to do next."""
        lines = [self.table.text(), "", f"Best on dev: {self.choice}. Nothing was chosen on test.", ""]
        if self.examples:
            lines += ["Test sentences in which the tagger marks what no source votes for:", *self.examples, ""]
        if self.folder is None:
            lines.append("With sentences of your own: tagweave alternate TRAIN.jsonl --dev DEV.jsonl --out DIR")
        else:
            lines.append(f"Tag other sentences: tagweave predict {self.folder} FILE.jsonl --out OUT.jsonl")
        return "\n".join(lines)


def demo_training(seed: int = 0) -> AlternateTraining:
    """The settings of the demo, chosen on its dev sentences: short, because the corpus is small."""
    return AlternateTraining(
        label_model=ConditionalHMM(epochs=15, learning_rate=3e-3, seed=seed),
        tagger=Tagger(
            epochs=5,
            learning_rate=4e-4,
            batch_windows=8,
            frozen_layers=1,
            empty_share=1.0,
            outside_weight=0.5,
            seed=seed,
        ),
        rounds=2,
        refine_epochs=2,
        refine_learning_rate=1e-4,
    )


def run_demo(folder: Path | None = None, seed: int = 0, training: AlternateTraining | None = None) -> DemoReport:
    """Alternate training on the demo corpus; the default takes some minutes on two cores.

    Args:
        folder: keeps the run; `tagweave.alternate.load_round` and `tagweave predict` read it.
        seed: seed of label model and tagger.
        training: other settings, in place of `demo_training(seed)`.

    Raises:
        StorageError: `folder` holds a run already.
    """
    train, dev, test = read_demo("train"), read_demo("dev"), read_demo("test")
    training = training or demo_training(seed)
    rows = list(_votes(train, dev, test))
    rounds = []
    for finished in training.run(train, dev, folder=folder):
        rounds.append(finished)
        rows += _round_rows(finished, dev, test)
    best = best_round(rounds)
    output = max(best.f1, key=lambda name: best.f1[name])
    choice = _names(best)[list(best.f1).index(output)]
    found = tuple(_unvoted(rounds[-1].tagger.predict(test), test))
    return DemoReport(Table(_TITLE, _COLUMNS, tuple(rows), decimals=1), choice, found, folder)


def _votes(train: Corpus, dev: Corpus, test: Corpus) -> Iterator[tuple[Cell, ...]]:
    """Rows of what alternate training is measured against: the source that is best on dev, the votes, the HMM."""
    name, on_dev = next(iter(source_scores(dev).items()))
    yield _row(f"best source ({name})", on_dev, source_scores(test)[name])
    for title, model in (("majority vote", MajorityVote()), ("span vote", SpanVote()), ("HMM", HMM())):
        model.fit(train)
        yield _row(title, *(_score(corpus, model.predict(corpus)) for corpus in (dev, test)))


def _round_rows(finished: Round, dev: Corpus, test: Corpus) -> Iterator[tuple[Cell, ...]]:
    for title, output in zip(_names(finished), OUTPUTS, strict=True):
        yield _row(title, *(_score(corpus, finished.predict(corpus, output)) for corpus in (dev, test)))


def _names(finished: Round) -> tuple[str, str]:
    """What the two outputs of a round are called in the table."""
    label_model = finished.label_model.name.upper()
    if finished.number == 0:
        return f"phase I: {label_model}", "phase I: tagger"
    return f"round {finished.number}: {label_model} with tagger", f"round {finished.number}: tagger"


def _row(title: str, on_dev: Score, on_test: Score) -> tuple[Cell, ...]:
    return (title, *on_dev.cells()[:3], *on_test.cells()[:3])


def _score(gold: Corpus, predicted: Corpus) -> Score:
    return evaluate(gold, predicted, bootstrap=0).micro


def _unvoted(predicted: Corpus, gold: Corpus) -> list[str]:
    """Sentences with an entity on whose tokens no source votes for a type, the surest first."""
    found = []
    for document, right in zip(predicted, gold, strict=True):
        spans = [span for votes in document.sources.values() for span in votes or () if span.type != "O"]
        for entity in document.entities or ():
            if not any(span.start < entity.end and entity.start < span.end for span in spans):
                known = {span[:3] for span in right.entities or ()}
                verdict = "in the gold" if entity[:3] in known else "not in the gold"
                found.append((entity.score or 0.0, f"  {_marked(document, entity)}  ({verdict})"))
    return [line for _, line in sorted(found, key=lambda item: -item[0])[:_EXAMPLES]]


def _marked(document: Document, entity: Span) -> str:
    """The sentence with one entity marked as in the files of the corpus."""
    text, characters = document.text or "", document.characters or ()
    start, end = characters[entity.start][0], characters[entity.end - 1][1]
    return f"{text[:start]}[{text[start:end]}]({entity.type}){text[end:]}"

"""`compare`: label models side by side on the same votes, with scores, or with agreement where there is no gold."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tagweave.corpus import Corpus
from tagweave.errors import DataError, TagweaveError, TagweaveWarning
from tagweave.evaluation import Scores, evaluate
from tagweave.label_models import LabelModel
from tagweave.progress import say
from tagweave.report import Table


@dataclass(frozen=True)
class ModelResult:
    """What one label model did.

    Attributes:
        name: as it was called in the comparison.
        seconds: of fitting and labelling.
        entities: how many it found.
        scores: against gold, or None where there is none.
        agreement: strict F1 of its entities with those of each other model, as a fraction, by name.
    """

    name: str
    seconds: float
    entities: int
    scores: Scores | None
    agreement: Mapping[str, float]

    @property
    def mean_agreement(self) -> float | None:
        """Mean agreement with the other models, or None without others."""
        return sum(self.agreement.values()) / len(self.agreement) if self.agreement else None


@dataclass(frozen=True)
class ModelComparison:
    """The result of `compare`: the best F1 first, or in the given order where there is no gold."""

    results: tuple[ModelResult, ...]
    on: str
    """What was labelled: `dev` or `the votes`."""

    @property
    def has_gold(self) -> bool:
        """Whether the models were scored."""
        return any(result.scores is not None for result in self.results)

    def table(self) -> Table:
        """One row a model: scores in percent with the interval of F1, or the mean agreement with the others."""
        common = [(r.name, r.seconds, r.entities) for r in self.results]
        further: list[tuple[float | None, ...]]
        if not self.has_gold:
            title, columns = "Label models, no gold", ["agreement"]
            further = [(_percent(r.mean_agreement),) for r in self.results]
        else:
            title = f"Label models, strict entity scores on {self.on} (low, high: 95 % interval of F1)"
            columns = ["precision", "recall", "f1", "low", "high"]
            further = [_cells(r.scores) for r in self.results if r.scores is not None]
        rows = tuple((*start, *end) for start, end in zip(common, further, strict=True))
        return Table(title, ("label model", "seconds", "entities", *columns), rows, 1)

    def agreement_table(self) -> Table:
        """Strict F1 between the entities of each two models, in percent."""
        names = [result.name for result in self.results]
        rows = tuple((r.name, *(_percent(r.agreement.get(name)) for name in names)) for r in self.results)
        return Table("Agreement of each two (F1 between their entities)", ("", *names), rows, 1)

    def text(self) -> str:
        """The table, and that of agreement where there is no gold."""
        tables = [self.table()] if self.has_gold else [self.table(), self.agreement_table()]
        return "\n\n".join(table.text() for table in tables)

    def to_json(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "on": self.on,
            "models": [
                {
                    "label_model": r.name,
                    "seconds": r.seconds,
                    "entities": r.entities,
                    "scores": None if r.scores is None else r.scores.to_json(),
                    "agreement": dict(r.agreement),
                }
                for r in self.results
            ],
        }


def compare(
    corpus: Corpus, models: Mapping[str, LabelModel], dev: Corpus | None = None, *, bootstrap: int = 1000
) -> ModelComparison:
    """Fit label models on the same votes and set their entities side by side.

    Args:
        corpus: documents with votes; every model is fitted on them. Where they have gold and there is no dev, the
            models are scored on it, after the fit.
        models: label models by the names that they get in the result.
        dev: documents with votes and gold: models that stop early choose by them, and all are scored on them.
        bootstrap: resamples for the interval of F1; 0 for none.

    Raises:
        DataError: no model could be fitted; the message has the reasons. If only some cannot, a warning has theirs.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> from tagweave.label_models import MajorityVote, SpanVote
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "PER")]}
    >>> corpus = Corpus.from_documents([Document("d", ["Ada", "Lovelace", "left"], sources=votes)])
    >>> found = compare(corpus, {"words": MajorityVote(), "spans": SpanVote()})
    >>> [(result.name, result.entities, result.mean_agreement) for result in found.results]
    [('words', 1, 1.0), ('spans', 1, 1.0)]
    """
    target = corpus if dev is None else dev
    has_gold = target.entities is not None and bool(target.entities.ran.any())
    labelled: dict[str, tuple[Corpus, float]] = {}
    failures: list[str] = []
    for name, model in models.items():
        say(f"{name} ...")
        started = time.perf_counter()
        try:
            labelled[name] = _entities(model.fit(corpus, dev).predict(target)), time.perf_counter() - started
        except TagweaveError as error:
            failures.append(f"{name}: {error}")
    if not labelled:
        raise DataError(
            f"no label model could be fitted. {'; '.join(failures)}" if failures else "no label model given"
        )
    for failure in failures:
        warnings.warn(f"left out of the comparison: {failure}", TagweaveWarning, stacklevel=2)
    agreement = {name: dict[str, float]() for name in labelled}
    names = list(labelled)
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            f1 = evaluate(labelled[one][0], labelled[other][0], bootstrap=0).f1
            agreement[one][other] = agreement[other][one] = f1
    results = [
        ModelResult(
            name,
            seconds,
            0 if found.entities is None else len(found.entities),
            evaluate(target, found, bootstrap=bootstrap) if has_gold else None,
            agreement[name],
        )
        for name, (found, seconds) in labelled.items()
    ]
    results.sort(key=lambda result: 0.0 if result.scores is None else -result.scores.f1)
    return ModelComparison(tuple(results), "the votes' own gold" if dev is None else "dev")


def _entities(labelled: Corpus) -> Corpus:
    """Without votes and soft labels, which would only fill memory."""
    return labelled.select_sources([]).with_entities(labelled.entities)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _cells(scores: Scores) -> tuple[float | None, ...]:
    low, high = (None, None) if scores.interval is None else (scores.interval.low, scores.interval.high)
    return tuple(_percent(value) for value in (scores.precision, scores.recall, scores.f1, low, high))

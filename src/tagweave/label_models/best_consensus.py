"""Best consensus: what a label model could reach that only chooses among the votes. Two oracles that read the gold."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import DataError
from tagweave.label_models.base import LabelModel
from tagweave.labels import LabelSet, decode
from tagweave.observations import observe
from tagweave.soft_labels import SoftLabels


@dataclass(kw_only=True)
class BestConsensus(LabelModel):
    """The best that can be had from the votes, by looking at the gold: an upper bound, never a result.

    - `oracle="span"`: a gold entity counts if some source has exactly that span and type (Li et al. 2021).
    - `oracle="token"`: a token gets its gold BIO label if some source gives it, else O; entities are then read
      strictly (Li et al. 2022, Sparse-CHMM).

    Attributes:
        oracle: which of the two.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 1, "PER")], "b": [Span(1, 2, "PER")]}
    >>> gold = [Span(0, 1, "PER"), Span(1, 3, "PER")]
    >>> corpus = Corpus.from_documents([Document("d0", ["Ada", "Jo", "Bo"], entities=gold, sources=votes)])
    >>> BestConsensus().fit(corpus).predict(corpus)[0].entities
    [Span(start=0, end=1, type='PER', score=1.0)]
    """

    adds_up: ClassVar[bool] = True
    name: ClassVar[str] = "best-consensus"
    uses_gold: ClassVar[bool] = True

    oracle: Literal["span", "token"] = "span"

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        pass

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        if corpus.entities is None:
            raise DataError("best consensus reads the gold, but the corpus has none")
        gold = corpus.entities.without_overlaps()
        labels = LabelSet(corpus.types)
        if self.oracle == "span":
            numbers = _consensus_spans(corpus, gold).labels(corpus.offsets, labels)
        else:
            numbers = _consensus_tokens(corpus, gold.labels(corpus.offsets, labels))
        offsets, starts, ends, type_ids = decode(numbers, corpus.offsets, labels, "strict")
        entities = Annotations(corpus.entities.ran, offsets, starts, ends, type_ids)
        return SoftLabels.from_labels(numbers, corpus.offsets, corpus.types), entities


def _consensus_spans(corpus: Corpus, gold: Annotations) -> Annotations:
    """The gold spans that some source has."""
    found = np.zeros(len(gold), bool)
    keys = _keys(gold, corpus)
    for column in corpus.sources.values():
        spans = column if isinstance(column, Annotations) else column.annotations()
        found |= np.isin(keys, _keys(spans, corpus))
    return gold.where(found)


def _keys(spans: Annotations, corpus: Corpus) -> NDArray[np.int64]:
    """One number for each distinct (document, start, end, type)."""
    tokens = int(corpus.offsets[-1]) + 1
    starts = corpus.offsets[spans.documents] + spans.starts
    return (starts * tokens + spans.ends) * len(corpus.vocabulary) + spans.type_ids


def _consensus_tokens(corpus: Corpus, gold: NDArray[np.int16]) -> NDArray[np.int16]:
    """The gold labels that some source gives, O elsewhere."""
    observations = observe(corpus, "bio", "always")
    given = np.zeros(len(gold), bool)
    for source in range(len(observations.sources)):
        said = observations.source(source)
        given |= (said.argmax(axis=1) == gold) & (said.sum(axis=1) > 0)
    return np.where(given, gold, 0).astype(np.int16)

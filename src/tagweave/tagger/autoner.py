"""`AutoNER`: a tagger that learns from the matches of dictionaries, with room for phrases of unknown type."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import DataError, UsageError
from tagweave.soft_labels import SoftLabels
from tagweave.tagger.distant_spans import DistantSpans, spans_of_entities, spans_of_sources
from tagweave.tagger.model import Tagger
from tagweave.tagger.targets import Objective
from tagweave.tagger.tie_or_break import TieOrBreak, decode, output_names


@dataclass(kw_only=True)
class AutoNER(Tagger):
    r"""Tie or Break in place of labels, learned from dictionaries (Shang et al., EMNLP 2018).

    A dictionary that matches a part of a name is wrong about its border, but right that its words belong together. So
    the model asks of the gap before each word whether it is a Tie or a Break, and of each stretch between two Breaks
    what type it has, None among them:

    \[ L = -\sum_i \log p(g_i) - \sum_{[l, r)} \sum_t q_t \log p_t(l, r) \]

    A gap `i` counts where it is known: inside typed spans it is a Tie, around and inside phrases of unknown type it is
    open, elsewhere it is a Break. A stretch between known Breaks has the allowed types of its span, or None where no
    span is; `q` is `p` restricted to the allowed types. What gaps and stretches are made of is in
    `tagweave.tagger.tie_or_break`.

    `fit(corpus)` learns from the sources of the corpus, but from its soft labels where it has some and neither `core`
    nor `full` is set, as a label model has weighed the sources then. Without sources it learns from the entities. Where
    spans overlap, see `tagweave.tagger.distant_spans`. `outside_weight` weighs the stretches that are None.

    A word's soft label is the distribution of the stretch that it lies in: with `p` the probabilities of its types,
    `p(O) = p_None`, and the first word has `p(B-X) = p_X`, each later one `p(I-X) = p_X`.

    The published program predicts nothing at all for a batch with one Break or none, and leaves the gap between a typed
    span and a phrase of unknown type open if the phrase comes second; neither is done here. In place of two LSTM layers
    over characters there is the encoder of all taggers.

    Use it when sources are dictionaries, above all with a second, larger list of phrases without types. It costs what
    any tagger costs.

    Attributes:
        core: sources whose spans are entities of their types; None takes all that are not in `full`.
        full: sources whose spans are phrases of unknown type, entities or not, whatever type they carry.
        certain: in soft labels, a word whose most probable label is less probable is of unknown type.
        threshold: a gap is a Break if that is at least so probable.

    Raises:
        UsageError: `threshold` does not lie between 0 and 1.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"cities": [Span(2, 3, "LOC")], "phrases": [Span(0, 1, "LOC")]}
    >>> corpus = Corpus.from_documents([Document("d", ["Ada", "left", "Oslo"], sources=votes)])
    >>> tagger = AutoNER(full=("phrases",), epochs=10, warmup=0).fit(corpus)
    >>> [span[:3] for span in tagger.predict(corpus)[0].entities if span.start]
    [(2, 3, 'LOC')]
    """

    name: ClassVar[str] = "autoner"

    core: tuple[str, ...] | None = None
    full: tuple[str, ...] = ()
    certain: float = 0.7
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise UsageError(f"threshold is {self.threshold}, but must lie between 0 and 1")

    def _outputs(self) -> tuple[str, ...]:
        return output_names(self._fitted())

    def _objective(self, corpus: Corpus) -> Objective:
        if not corpus.types:
            raise DataError("the corpus has no entity type, so a tagger has nothing to learn")
        return TieOrBreak.of(self._spans(corpus), corpus.offsets, self.outside_weight, self.label_smoothing)

    def _spans(self, corpus: Corpus) -> DistantSpans:
        """What there is to learn from."""
        named = self.core is not None or self.full
        if named or (corpus.sources and corpus.soft_labels is None):
            return spans_of_sources(corpus, self.core, self.full)
        return spans_of_entities(corpus, self.certain)

    def _read(self, offsets: NDArray[np.int64], outputs: NDArray[np.float32]) -> tuple[SoftLabels, Annotations]:
        soft_labels = SoftLabels(self._fitted(), offsets, decode(outputs, offsets, self.threshold))
        return soft_labels, soft_labels.annotations()

    def _card(self) -> str:
        return _CARD.format(types=", ".join(self._fitted()))


_CARD = """---
library_name: transformers
tags: [named-entity-recognition, tagweave]
---

# Named-entity recogniser

For the entity types {types}, trained by tagweave from distant labels. A token classifier whose outputs are scores of
breaks between words and of types at both ends of a stretch, so it takes tagweave to read entities from them:
`tagweave predict FOLDER FILE.jsonl --out OUT.jsonl`. Settings, seed and versions are in `tagweave.json`.
"""

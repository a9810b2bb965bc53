"""`BOND`: a tagger that learns distant labels for a short while, and then from itself."""

import copy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tagweave.corpus import Corpus
from tagweave.encoder import Encoder, require_bert
from tagweave.encoder.frozen import Kept
from tagweave.errors import UsageError
from tagweave.progress import say
from tagweave.soft_labels import SoftLabels
from tagweave.tagger.model import Epoch, Tagger
from tagweave.tagger.targets import Objective
from tagweave.team import team

if TYPE_CHECKING:
    from torch import nn


@dataclass(kw_only=True)
class BOND(Tagger):
    r"""Self-training after early stopping (Liang et al., KDD 2020).

    Sources miss entities, and a tagger that is trained long enough learns to miss them too. BOND stops before, and lets
    the tagger go on with labels of its own:

    1. A tagger learns the likeliest label of each word, as a certain one, by cross-entropy. It stops after
       `first_steps` steps or `epochs` epochs; with dev, its best epoch is kept.
    2. Student and teacher start from it. In every batch the teacher's probabilities \(p\) become the labels
       \(q_{tc} \propto p_{tc}^2 / f_c\) with \(f_c = \sum_t p_{tc}\), and the student \(s\) learns the words \(S\) with
       \(\max_c q_{tc} > \tau\): \(L = |S|^{-1} \sum_{t \in S} KL(q_t \| s_t)\). Every `period` steps the teacher
       becomes the student.

    With dev the best epoch of both stages is kept, without it the last of stage 2. The votes teach nothing in stage 2,
    but windows without entities in the labels are read less often in it as well (`empty_share`); `outside_weight` and
    `label_smoothing` are for stage 1.

    The published program gives the divergence raw scores in place of logarithms of probabilities, counts padding and
    later word pieces as words, and keeps the state with the best test score; none of this is done here.

    On the labels of `MajorityVote` this is BOND-MV (Li et al., ACL 2021). Use it when sources are precise, but miss
    many entities. An epoch of stage 2 costs one and a half times a plain one, and the teacher memory. Each time that
    the teacher is replaced rare labels gain, so with a short `period` the student finds ever more entities.

    Attributes:
        first_steps: steps after which stage 1 stops, however many epochs are left; the learning rate falls as if it
            went on. None stops after `epochs`.
        self_epochs: epochs of stage 2.
        self_rate: its learning rate, as a share of that of stage 1.
        period: steps of stage 2 after which the teacher becomes the student.
        confidence: the threshold tau.
        hard: learn the teacher's likeliest label of every word in place of q.
        fresh: start the student from the encoder as it was before stage 1.

    Raises:
        UsageError: a setting is out of range, or the output is not `linear`.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents([Document("d", ["Ada", "left", "Oslo"], entities=[Span(2, 3, "LOC")])])
    >>> tagger = BOND(epochs=8, warmup=0).fit(corpus)
    >>> tagger.predict(corpus)[0].entities[0][:3]
    (2, 3, 'LOC')
    >>> [row["stage"] for row in tagger.history_]
    [1, 1, 1, 1, 1, 1, 1, 1, 2, 2]
    """

    name: ClassVar[str] = "bond"

    first_steps: int | None = None
    self_epochs: int = 2
    self_rate: float = 0.5
    period: int = 200
    confidence: float = 0.9
    hard: bool = False
    fresh: bool = False
    teacher_: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.output != "linear":
            raise UsageError(f"a bond tagger has no output {self.output!r}: leave the setting out")
        if not 0 <= self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence:g}, but must be at least 0 and less than 1")
        for name in ("period", "first_steps"):
            steps = getattr(self, name)
            if steps is not None and steps < 1:
                raise UsageError(f"{name} is {steps}, but must be at least 1")

    def fit_steps(
        self,
        corpus: Corpus,
        dev: Corpus | None = None,
        *,
        folder: Path | None = None,
        resume: bool = False,
        start_from: Tagger | Path | None = None,
    ) -> Iterator[Epoch]:
        """See `Tagger.fit_steps`; the folder gets a folder for each stage."""
        require_bert()
        with Kept() as own:
            yield from self._stages(corpus, dev, folder, resume, start_from, own if self.kept_ is None else self.kept_)

    def _stages(
        self,
        corpus: Corpus,
        dev: Corpus | None,
        folder: Path | None,
        resume: bool,
        start_from: Tagger | Path | None,
        kept: Kept,
    ) -> Iterator[Epoch]:
        from tagweave.tagger.fitting import Fitting, highest_rate

        places = [None if folder is None else Path(folder) / f"stage-{stage}" for stage in (1, 2)]
        if not resume and team().first and places[1] is not None and (places[1] / "last").exists():
            shutil.rmtree(places[1])
        first = Tagger(**{f.name: getattr(self, f.name) for f in fields(Tagger) if f.init})
        first.kept_ = kept
        yield from Fitting(first, _certain(corpus), dev, start_from, self.first_steps).run(places[0], resume)
        if self.fresh and start_from is not None:
            _check_tokenizer(self.encoder, first.encoder_)

        say("stage 2: the tagger learns from itself")
        student = replace(self, epochs=self.self_epochs, learning_rate=self.self_rate * highest_rate(first))
        student.kept_ = kept
        student.teacher_ = copy.copy(first)
        student.teacher_.model_ = copy.deepcopy(first.model_).eval()
        corpus, start = corpus.with_types(first.labels.types), None if self.fresh else first
        for epoch in Fitting(student, corpus, dev, start).run(places[1], resume):
            yield Epoch(**_second(epoch._asdict(), first.history_))

        self.history_ = first.history_ + [_second(row, first.history_) for row in student.history_]
        best = student if dev is None or any(row["best"] for row in self.history_ if row["stage"] == 2) else first
        self.types_, self.encoder_, self.model_ = best.types_, best.encoder_, best.model_
        self.keep(self.kept_)

    def _objective(self, corpus: Corpus) -> Objective:
        from tagweave.tagger.self_training import SelfTraining

        return SelfTraining(self, self.teacher_, corpus, period=self.period, confidence=self.confidence, hard=self.hard)

    def _companion(self) -> "nn.Module | None":
        return None if self.teacher_ is None else self.teacher_.model_


def _certain(corpus: Corpus) -> Corpus:
    """The corpus with the likeliest label of each word as a certain one."""
    soft = corpus.soft_labels
    if soft is None:
        return corpus
    soft.check(corpus.id_list)
    labels = np.asarray(soft.probabilities.argmax(axis=1))
    return corpus.with_entities(corpus.entities, SoftLabels.from_labels(labels, soft.offsets, soft.types))


def _second(row: dict[str, Any], first: list[dict[str, Any]]) -> dict[str, Any]:
    """An epoch of stage 2, which is the best only if it is better than all of stage 1."""
    best = row["best"] and (row["f1"] is None or all(row["f1"] > earlier["f1"] for earlier in first))
    return {**row, "stage": 2, "best": best}


def _check_tokenizer(name: str, encoder: Encoder) -> None:
    if Encoder.load(name).tokenizer.get_vocab() != encoder.tokenizer.get_vocab():
        raise UsageError(
            f"a fresh student starts from the encoder {name!r}, but the tagger to start from has another one: give its "
            "encoder, or leave out fresh"
        )

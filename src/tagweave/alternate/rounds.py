"""The rounds of alternate training: what each of them gives, and which is the best."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from tagweave.corpus import Corpus
from tagweave.label_models import LabelModel
from tagweave.tagger import Tagger

Output = Literal["label-model", "tagger"]
"""The two outputs of a round: the label model on the sources and the tagger together, and the tagger alone."""

OUTPUTS: tuple[Output, ...] = get_args(Output)

TAGGER_SOURCE = "tagger"
"""What the tagger is called among the sources."""


@dataclass(frozen=True)
class Outcome:
    """How a round went: number 0 is phase I, all later ones are phase II.

    Attributes:
        number: from 0.
        f1: strict entity F1 of each output on dev; empty without dev.
        agreement: F1 between the label model's entities in this round and in the one before; None in round 0.
    """

    number: int
    f1: dict[str, float] = field(default_factory=dict)
    agreement: float | None = None

    @property
    def best_f1(self) -> float:
        """The better output's F1 on dev; 0 without dev."""
        return max(self.f1.values(), default=0.0)

    @property
    def output(self) -> Output:
        """The output with the better F1 on dev; without dev the label model's, which hears the tagger and the votes."""
        return max(OUTPUTS, key=lambda name: self.f1.get(name, 0.0))


@dataclass(frozen=True, kw_only=True)
class Round(Outcome):
    """One round with its models.

    Attributes:
        label_model: fitted on the sources, and from round 1 on the teacher's probabilities.
        teacher: the tagger of the round before, which is a source of `label_model`; None in round 0.
        tagger: trained on the labels of `label_model`.
    """

    label_model: LabelModel
    teacher: Tagger | None
    tagger: Tagger

    def predict(self, corpus: Corpus, output: Output = "tagger") -> Corpus:
        """The corpus with the entities and soft labels of one of the two outputs.

        The label model needs the votes of its sources in `corpus`, the tagger needs none.
        """
        if output == "tagger":
            return self.tagger.predict(corpus)
        voted = corpus if self.teacher is None else taught(corpus, self.teacher)
        return self.label_model.predict(voted)


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def best_round(rounds: Sequence[AnyOutcome]) -> AnyOutcome:
    """The first round with the best F1 on dev, or the last round without dev."""
    return max(rounds, key=lambda r: (r.best_f1, -r.number)) if rounds[0].f1 else rounds[-1]


def taught(corpus: Corpus, teacher: Tagger) -> Corpus:
    """The corpus with a tagger among its sources."""
    soft_labels = teacher.predict_proba(corpus)
    types = (*soft_labels.types, *(name for name in corpus.types if name not in soft_labels.types))
    return corpus.with_types(types).with_source(TAGGER_SOURCE, soft_labels.with_types(types))

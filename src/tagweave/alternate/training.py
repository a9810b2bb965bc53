"""Alternate training: a label model and a tagger teach each other (Li et al., ACL 2021, section 4.1).

Phase I fits the label model on the votes of K sources and trains the tagger on its soft labels. In each round of phase
II the tagger's probabilities are source K + 1: the label model is fitted anew on K + 1 sources, and the tagger learns
from its new labels.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagweave.alternate.rounds import TAGGER_SOURCE, Round, best_round
from tagweave.alternate.running import Run
from tagweave.corpus import Corpus
from tagweave.errors import DataError
from tagweave.label_models import LabelModel
from tagweave.storage import run_in
from tagweave.tagger import Tagger
from tagweave.team import team


@dataclass(kw_only=True)
class AlternateTraining:
    """Alternate training of any label model and any tagger.

    `run` yields one `Round` after the other. With dev it stops when no output of the last `patience` rounds was better
    than before; without dev when the label model's entities hardly change any more. The best round is chosen by the
    better output's F1 on dev; without dev it is the last.

    Attributes:
        label_model: settings of the label model; it is fitted anew in every round.
        tagger: settings of the tagger in phase I.
        rounds: most rounds of phase II.
        patience: rounds without gain on dev before it stops.
        settled: without dev, the agreement of two rounds' entities (F1) at which it stops.
        continued: whether the tagger goes on from its last weights in phase II, or starts afresh each round.
        refine_epochs: epochs of the tagger in a round of phase II; None takes those of phase I.
        refine_learning_rate: learning rate there; None takes half of that of phase I, or all of it when afresh.
        refine_whole_batch: sum the gradients of all batches there and take one step an epoch, as the paper does.
    """

    label_model: LabelModel
    tagger: Tagger
    rounds: int = 10
    patience: int = 5
    settled: float = 0.99
    continued: bool = True
    refine_epochs: int | None = 1
    refine_learning_rate: float | None = None
    refine_whole_batch: bool = False

    def settings(self) -> dict[str, Any]:
        """All settings, with those of the label model and the tagger."""
        parts = ("label_model", "tagger")
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in parts}
        return {
            **own,
            "label_model": {"kind": self.label_model.name, **self.label_model.settings()},
            "tagger": {"kind": self.tagger.name, **self.tagger.settings()},
        }

    def run(
        self, train: Corpus, dev: Corpus | None = None, *, folder: Path | None = None, resume: bool = False
    ) -> Iterator[Round]:
        """Train, and yield each round when it is finished.

        Args:
            train: documents with votes; their gold is not looked at.
            dev: documents with votes and gold.
            folder: keeps every finished step, so that a killed run can go on; at the end it holds the best round,
                which `load_round` reads. Without it a temporary folder is used and removed.
            resume: go on from the last finished step in `folder`, with the result of an unbroken run. Of the rounds
                that were finished before, the best and the last are yielded again.

        Raises:
            DataError: a source has the name that the tagger gets, or dev has no gold.
            StorageError: `folder` holds another run, or is damaged.
            UsageError: another process is at the run in `folder`, or it cannot be written.
        """
        for corpus in (train, dev):
            if corpus is not None and TAGGER_SOURCE in corpus.sources:
                raise DataError(f"a source is called {TAGGER_SOURCE!r}, which is the tagger's own name: rename it")
        if dev is not None and dev.entities is None:
            raise DataError("the dev documents have no gold entities, so no round can be chosen by them")
        if folder is None or not team().first:
            with tempfile.TemporaryDirectory() as temporary:
                yield from Run(self, train.with_entities(None), dev, Path(temporary)).rounds(resume)
        else:
            with run_in(Path(folder)):
                yield from Run(self, train.with_entities(None), dev, Path(folder)).rounds(resume)

    def fit(self, train: Corpus, dev: Corpus | None = None, **places: Any) -> Round:  # noqa: ANN401
        """Run to the end and give the best round; the arguments are those of `run`."""
        rounds = self.run(train, dev, **places)
        best = next(rounds)
        for finished in rounds:
            best = best_round([best, finished])
        return best

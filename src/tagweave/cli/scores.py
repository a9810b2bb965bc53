"""Short score tables on stderr, while something longer is written."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tagweave import progress

if TYPE_CHECKING:
    from tagweave.corpus import Corpus
    from tagweave.report import Table


def score_table(title: str, predictions: Mapping[str, "Corpus"], gold: "Corpus") -> "Table":
    """Precision, recall and F1 of several predictions, in percent."""
    from tagweave.evaluation import evaluate
    from tagweave.report import Table

    scores = {name: evaluate(gold, predicted, bootstrap=0) for name, predicted in predictions.items()}
    rows = tuple((name, 100 * s.precision, 100 * s.recall, 100 * s.f1) for name, s in scores.items())
    return Table(title, ("", "precision", "recall", "f1"), rows, decimals=1)


def show_scores(predictions: Mapping[str, "Corpus"], gold: "Corpus") -> None:
    """Print a table of scores on the dev documents, with both votes beside it where there are sources."""
    from tagweave.label_models import MajorityVote, SpanVote

    votes = {model.name: model.fit(gold).predict(gold) for model in (MajorityVote(), SpanVote()) if gold.sources}
    progress.say(score_table("Strict entity scores on the dev documents", {**votes, **predictions}, gold).text())

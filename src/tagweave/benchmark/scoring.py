"""Scores of a prediction on the splits that have gold."""

from collections.abc import Callable

from tagweave.corpus import Corpus
from tagweave.evaluation import evaluate

SplitScores = dict[str, dict[str, float]]
"""Precision, recall and F1 in percent, by split."""


def score_splits(
    predict: Callable[[Corpus], Corpus], splits: dict[str, Corpus], uses_gold: bool = False
) -> SplitScores:
    """Strict entity scores on each split.

    Args:
        predict: gives a corpus with entities; it sees no gold.
        splits: corpora with gold.
        uses_gold: let it see the gold, for oracles.
    """
    found = {}
    for split, corpus in splits.items():
        result = evaluate(corpus, predict(corpus if uses_gold else corpus.with_entities(None)), bootstrap=0)
        values = {"precision": result.precision, "recall": result.recall, "f1": result.f1}
        found[split] = {name: round(100 * value, 3) for name, value in values.items()}
    return found

"""Sources that are redundant, silent or harmful."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.analysis.votes import Counts, Pair
from tagweave.corpus import Corpus
from tagweave.errors import TagweaveWarning
from tagweave.evaluation import Score, evaluate, score_of
from tagweave.label_models import SpanVote
from tagweave.stored import StoredCorpus, parts_of

NEARLY_SAME = 0.9
"""From this overlap on, two sources are called redundant."""

HARM = 0.001
"""The gain in F1 without a source from which on it is said to do harm."""


class Harm(NamedTuple):
    """A source that does more harm than good.

    Attributes:
        source: its name.
        gain: by how much the F1 of the span vote rises against gold when the source is left out; None without gold.
        precision: its precision against the label model's answer; None when the harm was found with gold.
    """

    source: str
    gain: float | None
    precision: float | None


@dataclass(frozen=True)
class Findings:
    """What to look at among the sources.

    Attributes:
        redundant: pairs with an overlap of `NEARLY_SAME` or more, the nearest first.
        silent: sources without any vote; those that ran on no document are in `not_run` instead.
        not_run: sources that ran on no document.
        harmful: sources that make the result worse, the worst first.
    """

    redundant: tuple[Pair, ...]
    silent: tuple[str, ...]
    not_run: tuple[str, ...]
    harmful: tuple[Harm, ...]

    def text(self) -> str:
        """One line each, or nothing."""
        lines = [_redundant(pair) for pair in self.redundant]
        lines += [f"{name} ran, but never votes." for name in self.silent]
        lines += [f"{name} ran on no document." for name in self.not_run]
        lines += [_harmful(harm) for harm in self.harmful]
        return "\n".join(["Findings", *(f"- {line}" for line in lines)]) if lines else ""

    def to_json(self) -> dict[str, Any]:
        """The findings as values that JSON can hold."""
        return {
            "redundant": [pair._asdict() for pair in self.redundant],
            "silent": list(self.silent),
            "not_run": list(self.not_run),
            "harmful": [harm._asdict() for harm in self.harmful],
        }


def _redundant(pair: Pair) -> str:
    if pair.overlap == 1.0:
        return f"{pair.first} and {pair.second} mark the same spans: they count twice. Leave one out."
    return f"{pair.first} and {pair.second} share {100 * (pair.overlap or 0):.0f} percent of their spans."


def _harmful(harm: Harm) -> str:
    if harm.gain is not None:
        return f"{harm.source} does harm: without it the span vote's F1 rises by {100 * harm.gain:.1f} points."
    return (
        f"{harm.source} is probably harmful: by the label model only {100 * (harm.precision or 0):.0f} percent of its "
        "spans are right."
    )


def find(
    corpus: Corpus | StoredCorpus,
    counts: Counts,
    pairs: Sequence[Pair],
    has_gold: bool,
    inferred: Mapping[str, NDArray[np.int64]] | None,
) -> Findings:
    """The findings on a corpus.

    Harm is measured with gold where there is some: a source does harm if the span vote gets better without it. Without
    gold, a source is called harmful if by the label model fewer than half of its spans are right.

    Args:
        corpus: documents with votes.
        counts: of them.
        pairs: every two sources.
        has_gold: whether some documents have gold.
        inferred: counts of the sources against the label model's answer, see `tagweave.evaluation.source_counts`.
    """
    near = [pair for pair in pairs if pair.overlap is not None and pair.overlap >= NEARLY_SAME]
    said = list(zip(counts.sources, counts.ran, counts.voted > 0, strict=True))
    scores = {name: score_of(table) for name, table in (inferred or {}).items()}
    return Findings(
        redundant=tuple(sorted(near, key=lambda pair: -(pair.overlap or 0))),
        silent=tuple(name for name, ran, spoken in said if ran and not spoken),
        not_run=tuple(name for name, ran, _ in said if not ran),
        harmful=_harm_by_gold(corpus) if has_gold else _harm_by_model(scores),
    )


def _harm_by_gold(corpus: Corpus | StoredCorpus) -> tuple[Harm, ...]:
    gold = _with_gold_only(corpus) if isinstance(corpus, Corpus) else StoredCorpus(_with_gold_parts(corpus))
    names = list(gold.sources)
    whole = _vote_f1(gold, names)
    gains = {name: _vote_f1(gold, [other for other in names if other != name]) - whole for name in names}
    worst = sorted((name for name, gain in gains.items() if gain >= HARM), key=lambda name: -gains[name])
    return tuple(Harm(name, gains[name], None) for name in worst)


def _with_gold_only(corpus: Corpus) -> Corpus:
    assert corpus.entities is not None
    return corpus.subset(np.flatnonzero(corpus.entities.ran))


def _with_gold_parts(corpus: StoredCorpus) -> Iterator[Corpus]:
    return (part for part in map(_with_gold_only, corpus) if len(part))


def _vote_f1(gold: Corpus | StoredCorpus, sources: Sequence[str]) -> float:
    if not sources:
        return 0.0
    chosen = gold.select_sources(sources)
    with warnings.catch_warnings():
        # That a type is left without votes when its only source is left out is no news to the user.
        warnings.simplefilter("ignore", TagweaveWarning)
        vote = SpanVote().fit(chosen)
    scores = [evaluate(part, vote.predict(part), bootstrap=0).micro for part in parts_of(chosen)]
    counts = np.array([(score.correct, score.predicted, score.support) for score in scores])
    return score_of(counts.sum(axis=0)).f1


def _harm_by_model(inferred: Mapping[str, Score]) -> tuple[Harm, ...]:
    doubtful = [
        (score.precision, name) for name, score in inferred.items() if score.predicted and score.precision < 0.5
    ]
    return tuple(Harm(name, None, precision) for precision, name in sorted(doubtful))

"""Priors of a hidden Markov model from what somebody knows about the sources: their precision and recall.

Lison et al. (ACL 2020) set them by hand, source by source. They take the place of the anchor.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tagweave.errors import UsageError, unknown_name
from tagweave.label_models.anchors import Counts, count
from tagweave.labels import OUTSIDE, LabelSet
from tagweave.observations import Observations
from tagweave.parts import each, first

SourcePriors = dict[str, tuple[float, ...] | dict[str, tuple[float, ...]]]
"""Precision and recall, from 0 to 1, of each source by name; or of each of its entity types, and `O`, by name."""

_OUTSIDE = (0.8, 0.9)
"""Precision and recall of O where nothing else is said."""

_RARE, _BOUNDARY, _TYPE = 0.001, 5.0, 2.0
"""What every vote has beyond its frequency; how much likelier mistakes of boundary and of type are than others."""

_LEAST = 1e-6
"""Least probability of a vote, so that none is impossible."""


def confusion_prior(
    labels: LabelSet,
    precision: NDArray[np.floating],
    recall: NDArray[np.floating],
    frequencies: NDArray[np.floating],
) -> NDArray[np.float64]:
    r"""Confusion matrix of a source from its precision and recall (Lison et al., 2020).

    \[ \Phi_{ii} = r_i, \qquad \Phi_{ij} \propto (1 - r_i)(1 - \pi_j)(0.001 + f_j)\, b_{ij}
       \quad \text{with} \quad \sum_{j \ne i} \Phi_{ij} = 1 - r_i \]

    where \(b\) is 5 for another boundary of the same type (B for I), 2 for another type with the same boundary, else 1.

    Args:
        labels: meaning of the labels.
        precision: \(\pi\), of shape [labels].
        recall: \(r\), of shape [labels].
        frequencies: \(f\), the share of each label in the votes of the source, of shape [labels].

    Returns:
        Of shape [labels, labels] (hidden, observed); rows sum to one.

    >>> confusion_prior(LabelSet(("PER",), "io"), np.array([0.8, 0.9]), np.array([0.9, 0.6]), np.array([0.9, 0.1]))
    array([[0.9, 0.1],
           [0.4, 0.6]])
    """
    same_type = labels.type_ids[:, None] == labels.type_ids[None, :]
    same_boundary = labels.begins[:, None] == labels.begins[None, :]
    entities = (labels.type_ids[:, None] > 0) & (labels.type_ids[None, :] > 0)
    factor = np.where(same_type & ~same_boundary, _BOUNDARY, np.where(~same_type & same_boundary, _TYPE, 1.0))
    errors = (1 - precision) * (_RARE + frequencies) * np.where(entities, factor, 1.0)
    np.fill_diagonal(errors, 0)
    errors[errors.sum(axis=1) == 0] = 1
    np.fill_diagonal(errors, 0)
    matrix = errors * ((1 - recall) / np.maximum(errors.sum(axis=1), 1e-300))[:, None] + np.diag(recall)
    matrix = np.maximum(matrix, _LEAST)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True), np.float64)


def source_priors(parts: Iterable[Observations], priors: SourcePriors, strength: float) -> Counts:
    """Pseudo-counts from the precision and recall of sources.

    Of each source they are `strength` times its `confusion_prior`. A pair without a type is for the types that the
    source votes for; the others, and those that a table does not name, get precision and recall 0: the source then
    says what it says overall. Starts and moves are those of the votes of one source, which votes for more labels than
    others (or else more often), and one more of each that is legal.

    Args:
        parts: votes in which silence is O, in parts of a corpus.
        priors: precision and recall by source, or by source and type.
        strength: pseudo-counts of every row of a source.

    Raises:
        UsageError: a source or type is unknown, a source has no prior, or a number is not from 0 to 1.
    """
    like = first(Observations.of_no_token, parts)
    _check(priors, like)
    said = np.sum(list(each(_votes, parts)), axis=0)
    frequencies = said / np.maximum(said.sum(axis=1, keepdims=True), 1e-300)
    tables = {name: _table(prior) for name, prior in priors.items()}
    labels = like.labels
    size = len(labels)
    emissions = np.full((len(like.sources), size, size), strength / size)
    for k, name in enumerate(like.sources):
        if name in tables:
            precision, recall = _by_label(tables[name], labels, frequencies[k] > 0).T
            emissions[k] = strength * confusion_prior(labels, precision, recall, frequencies[k])
    richest = max(range(len(said)), key=lambda k: (int((said[k, 1:] > 0).sum()), float(said[k, 1:].sum())))
    moves = Counts.none(size, len(like.sources))
    for more in each(partial(_moves, richest), parts):
        moves = moves + more
    return Counts(
        np.where(labels.legal_starts, moves.start + 1.0, 0),
        np.where(labels.legal_moves, moves.transitions + 1.0, 0),
        emissions,
    )


def observed(observations: Observations) -> NDArray[np.bool_]:
    """Which labels some source votes for, of shape [tokens, labels]; all where no source votes.

    A source with probabilities leaves every label possible where it speaks, so that a path through all tokens remains.
    """
    found = np.zeros((int(observations.offsets[-1]), len(observations.labels)), bool)
    for k in range(len(observations.sources)):
        said = observations.source(k) > 0
        found |= said if k in observations.hard else said.any(axis=1, keepdims=True)
    found[~found.any(axis=1)] = True
    return found


def _votes(observations: Observations) -> NDArray[np.float64]:
    """How often each source said each label, of shape [sources, labels]; a spread vote counts in parts."""
    return np.array([observations.source(k).sum(axis=0) for k in range(len(observations.sources))])


def _moves(source: int, observations: Observations) -> Counts:
    """Counts under the votes of one source."""
    return count(observations.source(source).argmax(axis=1).astype(np.int16), observations)


def _table(prior: Sequence[float] | Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    """Pairs by type; the empty name is for types that are not named."""
    return dict(prior) if isinstance(prior, Mapping) else {"": prior}


def _by_label(table: Mapping[str, Sequence[float]], labels: LabelSet, voted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Precision and recall of each label, of shape [labels, 2]."""
    types = ("", *labels.types)
    spoken = np.bincount(labels.type_ids, weights=voted, minlength=len(types)) > 0
    rest = table.get("", (0.0, 0.0))
    rows = [table.get(OUTSIDE, _OUTSIDE)]
    for number, name in enumerate(labels.types, start=1):
        rows.append(table.get(name, rest if spoken[number] else (0.0, 0.0)))
    return np.array(rows, np.float64)[labels.type_ids]


def _check(priors: SourcePriors, observations: Observations) -> None:
    sources, names = observations.sources, (OUTSIDE, *observations.labels.types)
    for source, prior in priors.items():
        if source not in sources:
            raise unknown_name("source", source, sources)
        for name, pair in _table(prior).items():
            if name and name not in names:
                raise unknown_name(f"entity type of source {source!r}", name, names)
            if len(pair) != 2 or not all(0 <= value <= 1 for value in pair):
                place = f"{source}.{name}" if name else source
                raise UsageError(
                    f"source_priors.{place} is {list(pair)}: give two numbers from 0 to 1, precision and recall"
                )
    judged = {sources[k] for k in observations.posteriors}
    missing = [name for name in sources if name not in priors and name not in judged]
    if missing:
        raise UsageError(
            f"source_priors has no precision and recall of {', '.join(missing)}; "
            "name every source, or none to start from the anchor"
        )

"""What a label model of confusion matrices has learned, as tables with names."""

import numpy as np
from numpy.typing import NDArray

from tagweave.labels import LabelSet
from tagweave.report import Cell, Table


def at_its_word(matrix: NDArray[np.floating]) -> bool:
    """Whether the emissions of a source are those of one that is taken at its word, and has no matrix."""
    return np.array_equal(matrix, np.eye(len(matrix)))


def confusion_tables(sources: tuple[str, ...], emissions: NDArray[np.floating], labels: LabelSet) -> list[Table]:
    """One table a source that has a matrix: the probability of each vote under each true label.

    Args:
        sources: names, of the first axis of `emissions`.
        emissions: of shape [sources, labels, labels] (source, hidden, observed).
        labels: names of the other axes.
    """
    return [
        _matrix(f"What {source} says (columns) where the label is ... (rows), in percent", matrix, labels.names)
        for source, matrix in zip(sources, emissions, strict=True)
        if not at_its_word(matrix)
    ]


def transition_table(start: NDArray[np.floating], transitions: NDArray[np.floating], labels: LabelSet) -> Table:
    """The probability of each label after each label, and at the start of a document."""
    return _matrix(
        "Next label (columns) after ... (rows), in percent",
        np.vstack([start, transitions]),
        labels.names,
        ("start", *labels.names),
    )


def _matrix(
    title: str, matrix: NDArray[np.floating], columns: tuple[str, ...], rows: tuple[str, ...] | None = None
) -> Table:
    cells: list[tuple[Cell, ...]] = [
        (name, *(100 * float(value) for value in row)) for name, row in zip(rows or columns, matrix, strict=True)
    ]
    return Table(title, ("", *columns), tuple(cells))

"""Checks of what is said when a corpus is written."""

import warnings

from cases.checks.reading import corpus_of, load
from cases.harness import Check, check
from tagweave.formats import FORMATS, FormatWarning, write


@check("written_with_losses")
def written_with_losses(item: Check) -> None:
    """Writing says in one warning what is left out, each kind with its number, or nothing if nothing is."""
    name = item.expected["format"]
    corpus = corpus_of(item)
    path = item.scratch / f"out{(*FORMATS[name].suffixes, '.jsonl')[0]}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(corpus, path, format=name)
    said = [warning.message for warning in caught]
    losses = item.expected["losses"]
    assert len(said) == bool(losses)
    for message in said:
        assert isinstance(message, FormatWarning)
        assert dict(message.counts) == losses
        assert all(f"{count} " in str(message) for count in losses.values())
        assert path.name in str(message)


@check("all_comes_back")
def all_comes_back(item: Check) -> None:
    """A format that holds everything gives the same corpus again, soft labels to five decimals."""
    corpus = corpus_of(item)
    path = item.scratch / f"out{FORMATS[item.expected['format']].suffixes[0]}"
    write(corpus, path, format=item.expected["format"])
    again = load(item, path)[0]
    assert [*again] == [*corpus]
    assert again.soft_labels is not None
    assert corpus.soft_labels is not None
    assert again.soft_labels.labels == corpus.soft_labels.labels
    assert abs(again.soft_labels.probabilities - corpus.soft_labels.probabilities).max() < 1e-5

"""`with_gold`: gold entities of one corpus laid over the documents of another."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import AlignmentError, DataError
from tagweave.stored import StoredCorpus

Documents = TypeVar("Documents", Corpus, StoredCorpus)


def with_gold(corpus: Documents, gold: Corpus) -> Documents:
    """The corpus with the entities of another one, joined by document id.

    Gold for some of the documents is enough; the others count as documents without gold.

    Raises:
        DataError: no document of `corpus` has gold, or `gold` has documents that `corpus` has not.
        AlignmentError: a document has other tokens in `gold`.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents([Document("a", ["Ada"]), Document("b", ["Oslo"])])
    >>> gold = Corpus.from_documents([Document("b", ["Oslo"], entities=[Span(0, 1, "LOC")])])
    >>> [document.entities for document in with_gold(corpus, gold)]
    [None, [Span(start=0, end=1, type='LOC', score=None)]]
    """
    if gold.entities is None or not gold.entities.ran.any():
        raise DataError("the gold has no entities: it has neither annotated documents nor tags")
    places = {name: index for index, name in enumerate(gold.id_list)}
    missing = set(places)
    if isinstance(corpus, Corpus):
        found = _laid(corpus, gold, places, missing)
    else:
        found = StoredCorpus(_laid(part, gold, places, missing) for part in corpus)
    if missing:
        first = min(missing, key=places.__getitem__)
        raise DataError(f"{len(missing)} documents with gold are not among the documents with votes, first {first!r}")
    return found


def _laid(part: Corpus, gold: Corpus, places: Mapping[str, int], missing: set[str]) -> Corpus:
    """A part with gold where there is some; what is found is no longer missing."""
    assert gold.entities is not None
    spans = []
    for index, name in enumerate(part.id_list):
        place = places.get(name)
        missing.discard(name)
        if place is not None:
            _check_tokens(part, index, gold, place)
        spans.append(None if place is None else gold.entities.document(place, gold.vocabulary))
    types = sorted({*part.types, *gold.types} - set(part.coarse))
    typed = part if set(types) == set(part.types) else part.with_types(types)
    return replace(typed, entities=Annotations.from_lists(spans, typed.vocabulary), soft_labels=None)


def _check_tokens(corpus: Corpus, index: int, gold: Corpus, place: int) -> None:
    ours, theirs = corpus[index].tokens, gold[place].tokens
    if ours == theirs:
        return
    if len(ours) != len(theirs):
        what = f"{len(ours)} tokens with votes, but {len(theirs)} with gold"
    else:
        at = next(number for number, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
        what = f"token {at} is {ours[at]!r} with votes, but {theirs[at]!r} with gold"
    raise AlignmentError(f"document {corpus.id_list[index]!r}: {what}")

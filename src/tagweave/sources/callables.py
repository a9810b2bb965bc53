"""Functions and models that read a text and answer with places of characters, as sources."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Protocol

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, UsageError
from tagweave.formats.words import Alignment
from tagweave.sources.base import Source, Votes, tokens_at

Place = tuple[int, int] | tuple[int, int, str] | tuple[int, int, str, float | None]
"""First character, first character after, entity type (may be left out if there is only one), and a probability."""


def vote_on_text(source: Source, document: Document, place: Sequence[Any], alignment: Alignment) -> Span | None:
    """The vote that a stretch of characters stands for; None, and counted as `cut tokens`, if no token is left.

    Args:
        source: whose vote it is.
        document: the document.
        place: see `Place`.
        alignment: what becomes of a stretch that begins or ends inside a token.

    Raises:
        SourceError: it is no stretch of the text.
    """
    text = document.text or ""
    if not isinstance(place, Sequence) or isinstance(place, str) or not 2 <= len(place) <= 4:
        raise SourceError(f"{place!r} is not (first character, first character after, type)")
    start, end, *rest = place
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end <= len(text):
        raise SourceError(f"{place!r} does not lie within the {len(text)} characters of the text")
    if not rest and len(source.types) != 1:
        raise SourceError(f"{place!r} names no type, and the source has {', '.join(source.types)}")
    name, score = rest[0] if rest else source.types[0], rest[1] if len(rest) == 2 else None
    tokens = tokens_at(document, start, end, alignment)
    if tokens is None:
        source.counters["cut tokens"] += 1
        return None
    return Span(*tokens, name, score)


@dataclass
class TextSource(Source):
    """A source that answers with places of characters.

    Attributes:
        alignment: what becomes of a place that begins or ends inside a token: `strict` leaves it out, `expand` takes
            the whole token in, `contract` leaves the token out. What is left out is counted as `cut tokens`.
    """

    _: KW_ONLY
    alignment: Alignment = "strict"

    @abstractmethod
    def read(self, text: str) -> Iterable[Place] | None:
        """The places of entities in a text; None to abstain."""

    def find(self, document: Document) -> Votes:
        """The places as tokens.

        Raises:
            SourceError: an answer is no stretch of the text.
        """
        places = self.read(document.text or "")
        if places is None:
            return None
        votes = (vote_on_text(self, document, place, self.alignment) for place in places)
        return [vote for vote in votes if vote is not None]


@dataclass
class CallableSource(TextSource):
    """Any function, method or object that is called with a text and answers with places of characters.

    It is for sources in Python.

    Attributes:
        function: called with the text of a document; it returns or yields places, or None to abstain.
        labels: the entity types that it may name; with one, places may leave it out.

    >>> import re
    >>> def years(text):
    ...     return [match.span() for match in re.finditer("[12][0-9]{3}", text)]
    >>> source = CallableSource("years", years, ("DATE",))
    >>> source.find(Document("d", ["In", "1969", "."], "In 1969.", [(0, 2), (3, 7), (7, 8)]))
    [Span(start=1, end=2, type='DATE', score=None)]
    """

    function: Callable[[str], Iterable[Place] | None]
    labels: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared."""
        return tuple(self.labels)

    @property
    def summary(self) -> str:
        """The description, or the first line of the function's docstring."""
        return self.description or (self.function.__doc__ or "").strip().partition("\n")[0]

    def read(self, text: str) -> Iterable[Place] | None:
        """What the function returns or yields."""
        return self.function(text)


class Predictor(Protocol):
    """What GLiNER's models can do."""

    def predict_entities(self, text: str, labels: list[str], threshold: float) -> Iterable[Mapping[str, Any]]:
        """The entities in a text: `start`, `end`, `label`, and as they like `text` and `score`."""


@dataclass
class PredictEntities(TextSource):
    """Any model that can `predict_entities(text, labels, threshold)`, as GLiNER's can.

    It is for sources in Python. What such a model cannot read at once it may leave out silently: cut long texts into
    sentences before.

    Attributes:
        model: the model, or a function without arguments that makes it, which is called once in each process.
        labels: what to ask for, or a table of what to ask for and the type that it stands for.
        threshold: the least probability.

    >>> class Model:
    ...     def predict_entities(self, text, labels, threshold):
    ...         return [{"start": 3, "end": 7, "text": "Oslo", "label": "city", "score": 0.75}]
    >>> source = PredictEntities("gliner", Model, {"city": "LOC"})
    >>> source.find(Document("d", ["to", "Oslo"], "to Oslo", [(0, 2), (3, 7)]))
    [Span(start=1, end=2, type='LOC', score=0.75)]
    """

    model: Predictor | Callable[[], Predictor]
    labels: Mapping[str, str] | Sequence[str]
    threshold: float = 0.5

    @property
    def types(self) -> tuple[str, ...]:
        """The types that the labels stand for."""
        return tuple(dict.fromkeys(self._names.values()))

    @cached_property
    def _names(self) -> dict[str, str]:
        return dict(self.labels) if isinstance(self.labels, Mapping) else {label: label for label in self.labels}

    @cached_property
    def _made(self) -> Any:  # noqa: ANN401
        made = self.model
        if isinstance(made, type) or not hasattr(made, "predict_entities"):
            made = made() if callable(made) else made
        if not hasattr(made, "predict_entities"):
            raise UsageError(f"source {self.name!r}: {made!r} has no method predict_entities(text, labels, threshold)")
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Other processes make the model themselves."""
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def load(self) -> None:
        """Make the model.

        Raises:
            UsageError: it is none.
        """
        _ = self._made

    def read(self, text: str) -> Iterable[Place]:
        """The places of what the model finds.

        Raises:
            SourceError: an answer is no entity, or does not cover the text that it says.
        """
        for found in self._made.predict_entities(text, list(self._names), threshold=self.threshold) if text else ():
            try:
                start, end, label, score = found["start"], found["end"], found["label"], found.get("score")
                covered, said = text[start:end], found.get("text")
            except (AttributeError, KeyError, TypeError):
                raise SourceError(f"{found!r} is not an entity with start, end and label") from None
            if said is not None and said != covered:
                raise SourceError(f"{found!r} covers {covered!r} in the text, not {said!r}")
            if label not in self._names:
                raise SourceError(f"{found!r} has a label that was not asked for")
            yield start, end, self._names[label], None if score is None else min(max(float(score), 0.0), 1.0)

"""`TokenPatterns`: spaCy's patterns over tokens and their attributes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import FormatError, UsageError
from tagweave.formats.base import placed
from tagweave.formats.json_lines import parse_json
from tagweave.formats.streams import read_lines, read_text
from tagweave.pipelines import load_pipeline
from tagweave.sources.base import Source, Votes
from tagweave.sources.words import Phrases, analysis, longest, pipeline_for

ANALYSED = {
    "POS": "POS",
    "TAG": "TAG",
    "DEP": "DEP",
    "LEMMA": "LEMMA",
    "MORPH": "MORPH",
    "ENT_TYPE": "ENT_IOB",
    "ENT_IOB": "ENT_IOB",
    "ENT_ID": "ENT_IOB",
    "ENT_KB_ID": "ENT_IOB",
    "SENT_START": "SENT_START",
    "IS_SENT_START": "SENT_START",
}
"""Attributes in patterns that a pipeline must give, and how spaCy calls what it must set for them."""

BLANK = "blank:en"


@dataclass
class TokenPatterns(Source):
    """Matches of spaCy's token patterns.

    A pattern is a list of tables, one a token, as spaCy's `Matcher` takes them; or a text, whose words must stand there
    exactly. Of matches that overlap, the longest stays, then the leftmost, then that of the pattern named first.

    Attributes:
        type: entity type of the patterns that name none.
        patterns: patterns, each `[{"LOWER": "new"}, {"LOWER": "york"}]` or a text.
        files: files of patterns: JSON lines as spaCy's `EntityRuler` saves them (`{"label": ..., "pattern": ...}`), or
            a JSON list of such records or of patterns.
        pipeline: the pipeline that analyses the tokens; by default one that only knows the words, or the usual English
            one if a pattern asks for more than their surface (`POS`, `LEMMA`, `DEP`, ...).

    Raises:
        UsageError: there is no pattern, one has no type, or spaCy does not take it.
        FormatError: a file is no JSON, or a record no pattern.

    >>> TokenPatterns("versions", "PRODUCT", ([{"LOWER": "windows"}, {"IS_DIGIT": True}],)).pipeline
    'blank:en'
    >>> TokenPatterns("mice", "ANIMAL", ([{"POS": "ADJ"}, {"LEMMA": "mouse"}],)).pipeline
    'en_core_web_sm'
    """

    kind = "token-patterns"

    type: str = ""
    patterns: tuple[Any, ...] = ()
    files: tuple[Path, ...] = ()
    pipeline: str | None = None
    _records: list[tuple[str, Any]] = field(default_factory=list, init=False, repr=False, compare=False)
    _matcher: Any = field(default=None, init=False, repr=False, compare=False)
    _phrases: Phrases[int] = field(default_factory=Phrases, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._records = [(self.type, pattern) for pattern in self.patterns]
        for path in self.files:
            self._records.extend((label or self.type, pattern) for label, pattern in _read(path))
        if not self._records:
            raise UsageError(f"source {self.name!r} has neither patterns nor files of patterns")
        for label, pattern in self._records:
            if not _is_pattern(pattern):
                raise UsageError(f"{json.dumps(pattern)} is no pattern: write a text or a list of tables, one a token")
            if not label:
                raise UsageError(f"the pattern {json.dumps(pattern)} has no type: set type, or a label in the file")
        self.pipeline = pipeline_for(self.pipeline, bool(self._needed())) or BLANK

    @property
    def types(self) -> tuple[str, ...]:
        """The types of all patterns."""
        return tuple(dict.fromkeys(label for label, _ in self._records))

    def _needed(self) -> set[str]:
        """What the pipeline must set."""
        tokens = [token for _, pattern in self._records if not isinstance(pattern, str) for token in pattern]
        return {ANALYSED[key.upper()] for token in tokens for key in token if key.upper() in ANALYSED}

    def load(self) -> None:
        """Make the matcher."""
        if self._matcher is None:
            nlp = load_pipeline(self.pipeline or BLANK)
            from spacy.matcher import Matcher

            self._matcher = Matcher(nlp.vocab, validate=True)
            for number, (_, pattern) in enumerate(self._records):
                if not isinstance(pattern, str):
                    self._add(number, pattern)
            texts = {number: pattern for number, (_, pattern) in enumerate(self._records) if isinstance(pattern, str)}
            self._phrases = Phrases(texts)

    def _add(self, number: int, pattern: Any) -> None:  # noqa: ANN401
        from spacy.errors import MatchPatternError

        try:
            self._matcher.add(str(number), [pattern])
        except (MatchPatternError, ValueError, TypeError, KeyError) as error:
            raise UsageError(
                f"source {self.name!r}: spaCy does not take the pattern {json.dumps(pattern)}: {error}"
            ) from None

    def find(self, document: Document) -> Votes:
        """The longest matches."""
        parse = analysis(self, document, *sorted(self._needed()))
        self.load()
        found = [(int(parse.vocab.strings[key]), start, end) for key, start, end in self._matcher(parse)]
        found.extend((number, start, end) for start, end, number in self._phrases.find(document.tokens))
        return longest((start, end, self._records[number][0]) for number, start, end in sorted(found))


def _is_pattern(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, list) and bool(value) and all(isinstance(token, dict) for token in value)


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """Label (or nothing) and pattern of each record of a file."""
    for place, record in _json_of(path):
        label, pattern = (record.get("label"), record.get("pattern")) if isinstance(record, dict) else (None, record)
        if not _is_pattern(pattern) or not isinstance(label, str | None):
            raise FormatError(f'{place}: {json.dumps(record)} is no pattern. Write {{"label": ..., "pattern": [...]}}')
        yield label or "", pattern


def _json_of(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.name.removesuffix(".gz").endswith(".json"):
        for number, line in read_lines(path):
            if line.strip():
                yield f"{path}, line {number}", _parsed(f"{path}, line {number}", line)
        return
    records = _parsed(str(path), read_text(path))
    if not isinstance(records, list):
        raise FormatError(f"{path}: must hold a list of patterns")
    yield from ((f"{path}, record {number}", record) for number, record in enumerate(records, start=1))


def _parsed(place: str, text: str) -> Any:  # noqa: ANN401
    try:
        return parse_json(text)
    except FormatError as error:
        raise placed(error, place) from None

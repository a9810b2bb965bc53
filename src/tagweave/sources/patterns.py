"""`Regex`: regular expressions on the text of a document, with a limit on the time that they may take."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

from tagweave.corpus import Document
from tagweave.errors import SourceTimeout, UsageError
from tagweave.formats.words import Alignment
from tagweave.sources.base import Source, Votes, tokens_at

Flag = Literal["ignorecase", "multiline", "dotall", "verbose", "fullcase", "bestmatch", "enhancematch"]
"""Flags of the `regex` package, by their long names in small letters."""

_LONGEST = 86400
"""Seconds that patterns may be given; the clock of the package does not take any number."""


_LARGEST = 100_000
"""Parts that a pattern may have; making one of that size ready takes about a second."""

_PART = re.compile(r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|(\()|(\))|\{(\d+)(?:,\d*)?\}|.")


def _written_out(pattern: str) -> int:
    r"""Parts of a pattern when everything that is repeated stands there as often as it must.

    >>> _written_out(r"(?:(?:a{10}){10}[bc]\d){10}") > 1000, _written_out("a{1,9}") < 10
    (True, True)
    """
    groups, last = [0], 0
    for opens, closes, count in (found.groups() for found in _PART.finditer(pattern)):
        if opens:
            groups.append(0)
            continue
        if closes:
            last = groups.pop() if len(groups) > 1 else 0
            groups[-1] += last
        elif count:
            times = max(int(count[:10]), 1)
            groups[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            groups[-1] += 1
    return sum(groups)


@dataclass
class Regex(Source):
    r"""Matches of regular expressions in the text.

    The patterns are those of the `regex` package: Python's, and also sets, Unicode properties and fuzzy matches. They
    see the whole text of the document, blanks included, so `\d+ ?mg` finds `5 mg` and `5mg`.

    Attributes:
        patterns: one regular expression or several; each finds what it can, from left to right.
        type: entity type of the matches; `O` votes against entities.
        group: number or name of the group that is the entity; 0 is the whole match. A match without it counts for
            nothing.
        flags: `ignorecase`, `multiline`, `dotall`, `verbose`, `fullcase`, `bestmatch`, `enhancematch`.
        alignment: what becomes of a match that begins or ends inside a token: `strict` leaves it out, `expand` takes
            the whole token in, `contract` leaves the token out.
        timeout: seconds that all patterns together may take on one document. One that runs out of time makes the
            source fail on this document.

    Raises:
        UsageError: a pattern is not valid, or has no such group.
        SourceTimeout: the time is up.

    >>> source = Regex("doses", r"(\d+) ?mg", "DOSE", group=1)
    >>> list(source.find(Document("d", ["Take", "5", "mg", "."], "Take 5 mg.", [(0, 4), (5, 6), (7, 9), (9, 10)])))
    [(1, 2, 'DOSE')]
    """

    kind = "regex"

    patterns: str | tuple[str, ...]
    type: str
    group: int | str = 0
    flags: tuple[Flag, ...] = ()
    alignment: Alignment = "strict"
    timeout: float = 1.0
    _compiled: tuple[Any, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= _LONGEST:
            raise UsageError(f"timeout must be above 0 and at most {_LONGEST}, not {self.timeout:g}")
        self.load()

    @property
    def types(self) -> tuple[str, ...]:
        """The one type."""
        return (self.type,)

    def load(self) -> None:
        """Compile the patterns."""
        if self._compiled is None:
            patterns = (self.patterns,) if isinstance(self.patterns, str) else self.patterns
            if not patterns:
                raise UsageError(f"source {self.name!r} has no patterns")
            self._compiled = tuple(self._compile(pattern) for pattern in patterns)

    def _compile(self, pattern: str) -> Any:  # noqa: ANN401
        import regex

        if (size := _written_out(pattern)) > _LARGEST:
            raise UsageError(
                f"source {self.name!r}: the pattern {pattern[:60]!r}... has {size} parts when its repetitions are "
                f"written out, more than {_LARGEST}. Use smaller counts, or a dictionary for lists of phrases"
            )
        flags = 0
        for name in self.flags:
            flags |= getattr(regex, name.upper())
        try:
            compiled = regex.compile(pattern, flags)
        except (regex.error, RecursionError) as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from None
        known = compiled.groupindex if isinstance(self.group, str) else range(compiled.groups + 1)
        if self.group not in known:
            raise UsageError(f"{pattern!r} has no group {self.group!r}")
        return compiled

    def find(self, document: Document) -> Votes:
        """The stretches of tokens that match."""
        return list(self._find(document))

    def _find(self, document: Document) -> Iterator[tuple[int, int, str]]:
        deadline = monotonic() + self.timeout
        for pattern in self._compiled or ():
            try:
                spans = [match.span(self.group) for match in self._matches(pattern, document.text or "", deadline)]
            except TimeoutError:
                raise SourceTimeout(
                    f"source {self.name!r}, document {document.id!r}: the pattern {pattern.pattern!r} takes longer "
                    f"than {self.timeout:g} s on {len(document.text or '')} characters. Write it without nested "
                    "repetition, make its parts possessive (`++`), or raise the timeout"
                ) from None
            for start, end in spans:
                tokens = tokens_at(document, start, end, self.alignment) if start < end else None
                if tokens is not None:
                    yield (*tokens, self.type)

    def _matches(self, pattern: Any, text: str, deadline: float) -> Iterator[Any]:  # noqa: ANN401
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        return iter(pattern.finditer(text, timeout=left))

"""Tags of a whole file: parsed one by one, their scheme found out on the way."""

from collections.abc import Sequence

from tagweave.errors import LabelError
from tagweave.formats.problems import Problems
from tagweave.formats.tags import Evidence, Parsed, Scheme, parse_tag, scheme_named
from tagweave.labels import Decoding


class TagParser:
    """Parses the tags of one file and gathers what they tell about the scheme.

    Args:
        scheme: name of the scheme; None finds it out.

    >>> parser = TagParser(None)
    >>> parser.add([parser.parse(tag, "line 1") for tag in ("B-LOC", "E-LOC")])
    >>> parser.scheme
    'BIOES'
    """

    def __init__(self, scheme: str | None) -> None:
        self._named: Scheme | None = None if scheme is None else scheme_named(scheme)
        self._evidence = Evidence()
        self._parsed: dict[str, Parsed] = {}
        self._bare: tuple[str, str] | None = None
        self._prefixed: tuple[str, str] | None = None

    @property
    def scheme(self) -> Scheme:
        """The scheme that was named, or the one that fits what was read so far."""
        if self._named is not None:
            return self._named
        return "bare" if self._bare else self._evidence.scheme()

    def parse(self, tag: str, place: str) -> Parsed:
        """Prefix and type of a tag; `place` is where it stands, for messages about later tags.

        Raises:
            LabelError: it is no tag of the scheme, or some tags have a prefix and others not.
        """
        parsed = self._parsed.get(tag)
        if parsed is None:
            parsed = parse_tag(tag, self._named)
            if self._named is None and parsed[0]:
                self._check_mixture(tag, parsed, place)
            self._parsed[tag] = parsed
        return parsed

    def _check_mixture(self, tag: str, parsed: Parsed, place: str) -> None:
        bare = tag == parsed[1]
        other = self._prefixed if bare else self._bare
        if other is not None:
            raise LabelError(
                f"tag {tag!r} has {'no' if bare else 'a'} prefix, but {other[0]!r} ({other[1]}) has "
                f"{'one' if bare else 'none'}. Did you mean {f'B-{tag}' if bare else 'the scheme bare'!r}?"
            )
        if bare:
            self._bare = self._bare or (tag, place)
        else:
            self._prefixed = self._prefixed or (tag, place)

    def add(self, tags: Sequence[Parsed]) -> None:
        """Take in the parsed tags of one sentence."""
        self._evidence.add(tags)

    def report(self, problems: Problems, mode: Decoding = "lenient") -> None:
        """Note what the scheme cannot tell, and what does not fit it; `mode` is how the tags were read."""
        scheme = self.scheme
        if scheme in ("IO", "bare"):
            if self._evidence.prefixes - {""}:
                how = "given" if self._named else "found"
                title = "tag scheme that merges adjacent entities of one type"
                problems.add("merged", title, None, f"{scheme}, as {how}; a run of one type is one entity")
        elif scheme != "IOB1" and self._evidence.loose_starts:
            problems.add(
                "loose_start",
                f"entities that do not begin as the scheme {scheme} wants, "
                f"{'left out' if mode == 'strict' else 'read as conlleval reads them'}",
                None,
                "name another scheme if this is none of it",
                self._evidence.loose_starts,
            )

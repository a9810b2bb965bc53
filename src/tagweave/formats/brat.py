"""brat standoff: a folder with a text and a file of annotations for each document.

::

    doc.txt   Tim Cook leads Apple.
    doc.ann   T1	PER 0 8	Tim Cook
              T2	ORG 15 20	Apple

Give the folder, or one document by its `.ann`. A text is read as it is, with its line ends; a document is called what
its files are called. A text without `.ann` has no entities, one with an empty `.ann` has none to be found.

`T1	PER 0 3;9 13	Tim Cook` is a mention in several pieces. Relations, events, attributes, normalisations and notes
are left out and reported; the triggers of events are mentions like others.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, UsageError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions
from tagweave.formats.spans import OffsetUnit
from tagweave.formats.standoff import Discontinuous, Mention, mention_documents, text_and_spans
from tagweave.formats.streams import BYTE_ORDER_MARK, STANDARD, read_lines, read_text, shown_name
from tagweave.storage import new_folder

Newlines = Literal["as-is", "collapsed"]
"""How offsets count a line end of two characters, CR LF: as two, or as one."""

_ANNOTATIONS, _TEXT = ".ann", ".txt"
_MENTION = re.compile(r"(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*)")
_OTHER = {
    "R": "relations",
    "*": "relations",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalisations",
    "#": "notes",
}
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_NOT_IN_A_NAME = re.compile(r"[^\w.-]")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)
"""Names that Windows has for devices."""
_LINE = re.compile(r"[^\s](?:[^\r\n]*[^\s])?")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class ReadBrat(TextOptions):
    """Options of reading brat standoff."""

    discontinuous: Discontinuous = "envelope"
    """What a mention in several pieces becomes."""
    newlines: Newlines = "as-is"
    """Whether offsets count CR LF as the two characters that it is, or as one."""


def brat_documents(path: AnyPath, options: ReadBrat, problems: Problems) -> Iterator[Document]:
    """The documents of a folder in the order of their names, or the one of an `.ann`.

    Raises:
        UsageError: there is no such folder or file, or it has no text.
        FormatError: a line is none of brat's; the message names file and line.
        AlignmentError: a mention covers something else than it says.
    """
    for text_path, annotations in _pairs(path):
        name = text_path.name.removesuffix(".gz").removesuffix(_TEXT)
        text = read_text(text_path)
        mentions = None if annotations is None else _mentions(annotations, name, problems)
        if mentions is not None and options.newlines == "collapsed":
            mentions = [*map(_counting_twice(text, options.offset_unit), mentions)]
        try:
            yield from mention_documents(
                name, text, mentions, options, problems, discontinuous=options.discontinuous, hint=_hint(text, options)
            )
        except DataError as error:
            raise placed(error, shown_name(annotations or text_path)) from None


def _pairs(path: AnyPath) -> Iterator[tuple[Path, Path | None]]:
    """Texts with their annotations."""
    found = Path(path)
    if str(path) == STANDARD:
        raise UsageError("brat has two files for each document: name a folder or an .ann, not standard input")
    if not found.is_dir():
        yield _partner(found, _ANNOTATIONS, _TEXT), found
        return
    texts = sorted(file for file in found.iterdir() if file.name.removesuffix(".gz").endswith(_TEXT))
    if not texts:
        raise UsageError(f"{path} has no {_TEXT} file in it, so it is no folder of brat")
    for text in texts:
        annotations = _partner(text, _TEXT, _ANNOTATIONS)
        yield text, annotations if annotations.exists() else None


def _partner(path: Path, ending: str, other: str) -> Path:
    """The other file of a document; it is packed if the one is."""
    packed = ".gz" if path.name.endswith(".gz") else ""
    name = path.name.removesuffix(packed)
    if not name.endswith(ending):
        raise UsageError(f"{path} is neither a folder nor a file that ends in {_ANNOTATIONS}")
    return path.with_name(f"{name.removesuffix(ending)}{other}{packed}")


def _mentions(path: Path, document: str, problems: Problems) -> list[Mention]:
    """The mentions of a file, in order; what else there is gets reported."""
    mentions = []
    others: Counter[str] = Counter()
    for number, line in read_lines(path):
        if line.startswith("T"):
            mentions.append(_mention(line, number, path))
        elif line[:1] in _OTHER and "\t" in line:
            others[_OTHER[line[0]]] += 1
        elif line.strip():
            raise FormatError(f"{path}, line {number}: {line[:40]!r} is no annotation of brat (ID, tab, ...)")
    for kind, count in others.items():
        problems.add(kind, f"{kind} left out", document, f"{count} {kind}", count)
    return mentions


def _mention(line: str, number: int, path: Path) -> Mention:
    name, _, rest = line.partition("\t")
    place, tab, surface = rest.partition("\t")
    found = _MENTION.fullmatch(place)
    if found is None:
        raise FormatError(f"{path}, line {number}: {name[:40]} is no mention (ID, tab, TYPE START END, tab, text)")
    pieces = sorted((int(start), int(end)) for start, end in (piece.split(" ") for piece in found[2].split(";")))
    return Mention(tuple(pieces), found[1], surface if tab else None, f"{name} in line {number}")


def _counting_twice(text: str, unit: OffsetUnit) -> Callable[[Mention], Mention]:
    """A function that makes a mention whose offsets count CR LF once one that counts it twice."""
    counted = text if unit == "codepoint" else _ASTRAL.sub("__", text)
    line_ends = [match.start() - number for number, match in enumerate(re.finditer("\r\n", counted))]

    def moved(mention: Mention) -> Mention:
        pieces = tuple((a + bisect_left(line_ends, a), b + bisect_left(line_ends, b)) for a, b in mention.pieces)
        return mention._replace(pieces=pieces)

    return moved


def _hint(text: str, options: ReadBrat) -> str:
    """What to do about offsets that do not fit, if it may be the line ends."""
    if "\r\n" not in text:
        return ""
    other = "collapsed" if options.newlines == "as-is" else "as-is"
    counted = "once" if other == "collapsed" else "twice"
    return f"If its offsets count each line end (CR LF) {counted}, read with newlines={other!r}"


def write_brat(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write a new folder. A mention that goes over line ends is written in pieces, one a line, as brat does.

    A document whose id is no plain name of a file (letters, digits, `.`, `-`, `_`; no dot in front) is called
    otherwise, which is reported.

    Raises:
        UsageError: the folder exists and is not empty, or cannot be written.
        AlignmentError: brat cannot hold a text, or two documents would have the same name.
        LabelError: the name of a type has a blank in it.
    """
    folder = _new_folder(path)
    for name in corpus.types:
        if not _MENTION.fullmatch(f"{name} 0 1"):
            raise LabelError(f"{path}: brat cannot hold the entity type {name!r}. Rename it, or write JSON lines")
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "brat files", ("entities",))
    names = _FileNames(path, problems)
    with new_folder(folder) as work:
        for document in corpus:
            text, spans = text_and_spans(document, problems)
            if text.startswith(BYTE_ORDER_MARK) or "\0" in text:
                bad = "a NUL character" if "\0" in text else "a byte order mark at its start"
                raise AlignmentError(f"{path}: brat cannot hold document {document.id!r}, which has {bad}")
            name = names.name(document.id)
            (work / f"{name}{_TEXT}").write_bytes(text.encode())
            lines = "".join(_line(number, span, text) for number, span in enumerate(spans, 1))
            (work / f"{name}{_ANNOTATIONS}").write_bytes(lines.encode())
    problems.warn()


def _new_folder(path: AnyPath) -> Path:
    folder = Path(path)
    if str(path) == STANDARD or folder.suffix in (_ANNOTATIONS, _TEXT, ".gz"):
        raise UsageError(f"brat is written as a folder, but {path} is none: name a folder and the format 'brat'")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{path} exists and is no empty folder: name a new one, so that no annotations are lost")
    return folder


def _line(number: int, span: tuple[int, int, str], text: str) -> str:
    start, end, name = span
    pieces = [(start + match.start(), start + match.end()) for match in _LINE.finditer(text[start:end])]
    places = ";".join(f"{first} {last}" for first, last in pieces)
    surface = " ".join(text[first:last] for first, last in pieces).replace("\t", " ")
    return f"T{number}\t{name} {places}\t{surface}\n"


class _FileNames:
    """Names of files for the ids of documents, each once, also where capitals do not count."""

    def __init__(self, path: AnyPath, problems: Problems) -> None:
        self._path = path
        self._problems = problems
        self._ids: dict[str, str] = {}

    def name(self, document: str) -> str:
        """The name for an id.

        Raises:
            AlignmentError: another document has it.
        """
        name = _NOT_IN_A_NAME.sub("_", re.sub(r"^\.", "_", document)) or "_"
        name = f"_{name}" if _DEVICE.match(name) else name
        if len(name.encode()) > _LONGEST_NAME:
            raise AlignmentError(
                f"{self._path}: the document id {document[:60]!r}... is too long for the name of a file"
            )
        if name != document:
            title = "documents called otherwise, because their ids are no names of files"
            self._problems.add("renamed", title, document, f"is now {name!r}")
        before = self._ids.setdefault(name.casefold(), document)
        if before != document:
            raise AlignmentError(
                f"{self._path}: the documents {before!r} and {document!r} would both have files called {name!r}. "
                "Give them other ids"
            )
        return name


def _recognises(path: Path) -> bool:
    return path.is_dir() and any(path.glob(f"*{_ANNOTATIONS}"))


BRAT = Format(
    name="brat",
    suffixes=(_ANNOTATIONS,),
    documents=brat_documents,
    read_options=ReadBrat,
    recognises=_recognises,
    write=write_brat,
)

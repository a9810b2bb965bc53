"""CoNLL-U and CoNLL-U Plus: ten named columns a word, entity tags in MISC (`NER=B-PER`) or in a column of their own.

Reading
    - Tokens are words, the lines with a whole number. The lines of multi-word tokens (`1-2`) tell the text that their
      words stand for, and those of empty nodes (`1.1`) are no words; tags are on words.
    - The tag is in the column that is named, if `# global.columns` has it, else in MISC under that name, in any case. A
      word without a tag is O; where no word of the file has one, nobody looked for entities.
    - `# sent_id` is the id, `# newdoc id` begins a group, and the text is `# text`, or else the forms with a blank
      after each that does not say `SpaceAfter=No`. Where the words of a multi-word token are not in it (zum: zu dem),
      the sentence is read without text, which is reported.

Writing
    Word, tag in MISC (or in a column, with its header), and all of the above that is known.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, FormatError, LabelError
from tagweave.formats.base import AnyPath, Format, placed
from tagweave.formats.losses import held_by_tags
from tagweave.formats.problems import Problems
from tagweave.formats.streams import Lines, shown_name, stem, written
from tagweave.formats.tagged import NumberedLine, Sentence, TagOptions, tagged_documents
from tagweave.formats.tags import tags_from_spans
from tagweave.formats.words import Offsets, locate

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_HEADER = re.compile(r"#\s*global\.columns\s*=(.*)")
_NUMBER = re.compile(r"([0-9]{1,9})(?:([-.])([0-9]{1,9}))?")
_NOTHING = {"_", "*"}
_BREAKS = re.compile(r"[\r\n]")
_UNWRITABLE = re.compile(r"[\t\r\n\0]|^ | $|^$")


@dataclass(frozen=True)
class ReadConllu(TagOptions):
    """Options of reading CoNLL-U."""

    tag: str = "NER"
    """Name of the column of `# global.columns`, or else of the part of MISC, that has the tags."""
    tags: bool | None = None
    """Whether there are tags; None finds it out."""


@dataclass(frozen=True)
class WriteConllu:
    """Options of writing CoNLL-U."""

    tag: str = "NER"
    """Name of the part of MISC, or of the column, that gets the tags."""
    column: bool | None = None
    """Whether tags get a column of their own, after MISC; None goes by the ending `.conllup`."""


class _Row(NamedTuple):
    """A line of a sentence, by what is needed of it."""

    number: int
    first: int
    last: int
    form: str
    tag: str
    glued: bool
    """Whether no blank comes after it."""


class _ConlluReader:
    """Reads the sentences of one file."""

    def __init__(self, path: AnyPath, options: ReadConllu, tags: bool, problems: Problems) -> None:
        self._path = path
        self._tag = options.tag
        self._tags = tags
        self._problems = problems
        self._columns: list[str] = [*COLUMNS]
        self._documents = 0
        self._group: str | None = None

    def blocks(self, lines: Iterable[NumberedLine]) -> Iterator[list[NumberedLine]]:
        """The lines between empty lines."""
        block: list[NumberedLine] = []
        for number, line in lines:
            if line.strip():
                block.append((number, line))
            elif block:
                yield block
                block = []
        if block:
            yield block

    def sentence(self, block: list[NumberedLine], index: int) -> Sentence | None:
        """The sentence of a block, None for one of comments only."""
        comments = self._comments(block)
        rows = [row for number, line in block if line[0] != "#" for row in self._row(number, line)]
        words = [row for row in rows if row.first == row.last]
        if not words:
            return None
        self._check_numbers(words, rows)
        name = comments.get("sent_id", "").strip() or f"{stem(self._path)}-{index}"
        text, characters = self._text(name, comments.get("text"), rows, words)
        document = Document(name, [row.form for row in words], text, characters, self._group)
        return Sentence(document, [(row.number, row.tag) for row in words] if self._tags else None)

    def _comments(self, block: list[NumberedLine]) -> dict[str, str]:
        """The comments of a block by name, of which those about the file and the document are taken in."""
        comments = {}
        for _, line in block:
            if line[0] == "#":
                key, _, value = line[1:].partition("=")
                comments[key.strip()] = value.removeprefix(" ")
        if "global.columns" in comments:
            self._columns = comments["global.columns"].split()
        for key in ("newdoc", "newdoc id"):
            if key in comments:
                self._documents += 1
                name = comments[key].strip() if key == "newdoc id" else ""
                self._group = name or f"{stem(self._path)}-document-{self._documents}"
        return comments

    def _row(self, number: int, line: str) -> list[_Row]:
        """The row of a line, none for an empty node."""
        cells = line.split("\t")
        if len(cells) != len(self._columns):
            raise self._error(
                number,
                f"{len(cells)} columns between tabs, but {len(self._columns)} are expected: {' '.join(self._columns)}",
            )
        fields = dict(zip(self._columns, cells, strict=True))
        found = _NUMBER.fullmatch(fields.get("ID", ""))
        if found is None or not fields.get("FORM"):
            raise self._error(number, "a word needs an ID such as 3, 3-4 or 3.1, and a FORM")
        if found[2] == ".":
            return []
        misc = {
            key.casefold(): value
            for key, _, value in (part.partition("=") for part in fields.get("MISC", "_").split("|"))
        }
        tag = fields[self._tag] if self._tag in fields else misc.get(self._tag.casefold(), "_")
        first = int(found[1])
        return [
            _Row(
                number,
                first,
                int(found[3] or first),
                fields["FORM"],
                "O" if tag in _NOTHING or not tag else tag,
                misc.get("spaceafter") == "No",
            )
        ]

    def _check_numbers(self, words: list[_Row], rows: list[_Row]) -> None:
        for expected, row in enumerate(words, 1):
            if row.first != expected:
                raise self._error(
                    row.number,
                    f"word {row.first} where {expected} is expected. Is the empty line between sentences missing?",
                )
        for row in rows:
            if not row.first <= row.last <= len(words):
                raise self._error(row.number, f"{row.first}-{row.last} are no words of the sentence")

    def _text(
        self, name: str, text: str | None, rows: list[_Row], words: list[_Row]
    ) -> tuple[str | None, Offsets | None]:
        """The text of a sentence and the places of its words; None and None if it is not known or has not all words."""
        covered = {word for row in rows if row.first < row.last for word in range(row.first, row.last + 1)}
        surface = [row for row in rows if row.first < row.last or row.first not in covered]
        if text is None:
            if "MISC" not in self._columns:
                return None, None
            text = "".join(row.form + ("" if row.glued else " ") for row in surface)
            text = text if surface[-1].glued else text[:-1]
        try:
            places = locate([row.form for row in surface], text)
        except AlignmentError as error:
            raise placed(error, f"{shown_name(self._path)}, line {rows[0].number}") from None
        offsets: Offsets = []
        for row, (start, _) in zip(surface, places, strict=True):
            forms = [word.form for word in words[row.first - 1 : row.last]]
            if "".join(forms) != row.form:
                title = "sentences read without their text, which does not have the words of a multi-word token"
                self._problems.add("multiword", title, name, f"{row.form!r} stands for {' '.join(forms)!r}")
                return None, None
            for form in forms:
                offsets.append((start, start + len(form)))
                start += len(form)
        return text, offsets

    def _error(self, number: int, message: str) -> FormatError:
        return FormatError(f"{shown_name(self._path)}, line {number}: {message}")


def conllu_documents(path: AnyPath, options: ReadConllu, problems: Problems) -> Iterator[Document]:
    """The sentences of CoNLL-U; see the module's text for the rules.

    Raises:
        FormatError, AlignmentError: a line or sentence is wrong; the message names file and line.
    """
    lines = Lines(path)
    tags = lines.look(lambda them: _has_tags(them, options.tag)) if options.tags is None else options.tags
    return tagged_documents(path, lines, lambda noted: _ConlluReader(path, options, tags, noted), options, problems)


def _has_tags(lines: Iterable[str], name: str) -> bool:
    """Whether there is a column with that name, or a word that has it in MISC."""
    in_misc = re.compile(rf"[\t|]{re.escape(name)}=", re.IGNORECASE)
    for line in lines:
        header = _HEADER.match(line)
        if (header and name in header[1].split()) or (line[:1] != "#" and in_misc.search(line)):
            return True
    return False


def write_conllu(corpus: Corpus, path: AnyPath, options: WriteConllu) -> None:
    """Write CoNLL-U; see the module's text.

    Raises:
        AlignmentError: a document has no token, or a token, id or group that the format cannot hold; the message names
            the document.
        LabelError: the name of a type cannot stand in MISC or in a column.
    """
    for name in corpus.types:
        if _UNWRITABLE.search(name) or "|" in name or " " in name:
            raise LabelError(f"{path}: CoNLL-U cannot hold the entity type {name!r}. Rename it, or write JSON lines")
    problems = Problems(shown_name(path))
    plain = held_by_tags(corpus, problems, "CoNLL-U")
    column = str(path).removesuffix(".gz").endswith(".conllup") if options.column is None else options.column
    before: str | None = None
    with written(path) as handle:
        if column:
            handle.write(f"# global.columns = {' '.join((*COLUMNS, options.tag))}\n".encode())
        for document in plain:
            try:
                lines = [*_comment_lines(document, before, corpus.groups is not None, problems)]
                lines += _word_lines(document, options.tag, column)
            except AlignmentError as error:
                raise placed(error, f"{path}: CoNLL-U cannot hold document {document.id!r}") from None
            handle.write(("\n".join(lines) + "\n\n").encode())
            before = document.group
    problems.warn()


def _comment_lines(document: Document, before: str | None, grouped: bool, problems: Problems) -> Iterator[str]:
    for what, name in (("id", document.id), ("group", document.group)):
        if name is not None and (_UNWRITABLE.search(name) or name != name.strip()):
            raise AlignmentError(f"the {what} {name!r} is empty, or has line breaks, tabs or blanks at its edges")
    if document.group is not None and document.group != before:
        yield f"# newdoc id = {document.group}"
    elif document.group is None and grouped:
        yield "# newdoc"
    yield f"# sent_id = {document.id}"
    if document.text is not None:
        breaks = len(_BREAKS.findall(document.text))
        if breaks:
            title = "line breaks in texts, written as blanks"
            problems.add("line_breaks", title, document.id, repr(document.text[:40]), breaks)
        yield f"# text = {_BREAKS.sub(' ', document.text)}"


def _word_lines(document: Document, name: str, column: bool) -> Iterator[str]:
    if not document.tokens:
        raise AlignmentError("it has no token")
    tags = None if document.entities is None else tags_from_spans(document.entities, len(document.tokens))
    places = document.characters if document.text is not None else None
    for index, token in enumerate(document.tokens):
        if _UNWRITABLE.search(token):
            raise AlignmentError(f"token {index}, {token!r}, is empty, or has line breaks, tabs or blanks at its edges")
        misc = []
        if tags is not None and not column:
            misc.append(f"{name}={tags[index]}")
        if places is not None and index + 1 < len(places) and places[index][1] == places[index + 1][0]:
            misc.append("SpaceAfter=No")
        cells = [str(index + 1), token, *["_"] * 7, "|".join(misc) or "_"]
        if column:
            cells.append("_" if tags is None else tags[index])
        yield "\t".join(cells)


CONLLU = Format(
    name="conllu",
    suffixes=(".conllu", ".conllup"),
    documents=conllu_documents,
    read_options=ReadConllu,
    holds_tags=lambda path: True,
    write=write_conllu,
    write_options=WriteConllu,
)

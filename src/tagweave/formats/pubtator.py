"""PubTator: title, abstract and mentions of articles, as the corpora of biomedicine have them.

::

    10021369|t|Identification of APC2
    10021369|a|It is a homologue of APC.
    10021369	18	22	APC2	Gene	10297

Offsets count the title, one character, and the abstract, so the text of a document is title, line end, abstract. An
article without a line for its abstract is its title only. A blank line ends an article.

Left out and reported are relations (`ID, CID, D1, D2`), the column of a mention that lists the single mentions in a
composite one, and an article that comes a second time, word for word. Identifiers of concepts are not kept.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions
from tagweave.formats.standoff import LONGEST_NUMBER, Mention, mention_documents, text_and_spans
from tagweave.formats.streams import read_lines, shown_name, written

_PART = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_LINE_BREAK = re.compile(r"[\r\n]")
_NOT_IN_A_CELL = re.compile(r"[\t\r\n]")


@dataclass(frozen=True)
class ReadPubTator(TextOptions):
    """Options of reading PubTator."""

    text_only: bool = False
    """Titles and abstracts only: the documents have no entities, as if nobody had looked for any."""
    one_type: str | None = None
    """One name for the types of all mentions; None keeps them."""


@dataclass
class _Article:
    """An article in the making, and what of it is left out."""

    id: str
    title: str
    abstract: str | None = None
    mentions: list[Mention] = field(default_factory=list)
    relations: int = 0
    lists: int = 0

    @property
    def text(self) -> str:
        return self.title if self.abstract is None else f"{self.title}\n{self.abstract}"

    def content(self) -> int:
        """A number for what is in it, whatever lines it stands in."""
        return hash((self.text, *((mention.pieces, mention.type, mention.surface) for mention in self.mentions)))

    def add_abstract(self, name: str, text: str) -> None:
        if name != self.id or self.abstract is not None:
            raise FormatError(f"an abstract of {name!r} in the article {self.id!r}: a blank line ends an article")
        self.abstract = text

    def add_row(self, cells: list[str], number: int) -> None:
        """A line of cells: a mention or a relation."""
        if cells[0] != self.id:
            raise FormatError(f"{cells[0][:40]!r} is not the article {self.id!r}: a blank line ends an article")
        if len(cells) >= 3 and not _is_number(cells[1]):
            self.relations += 1
            return
        if len(cells) < 5 or not _is_number(cells[2]) or not cells[4]:
            raise FormatError("neither title, abstract, relation nor mention (ID, start, end, text, type, identifier)")
        self.lists += len(cells) > 6
        place = (int(cells[1]), int(cells[2]))
        self.mentions.append(Mention((place,), cells[4], cells[3], f"the mention in line {number}"))


def _is_number(cell: str) -> bool:
    return cell.isascii() and cell.isdigit() and len(cell) <= LONGEST_NUMBER


def pubtator_documents(path: AnyPath, options: ReadPubTator, problems: Problems) -> Iterator[Document]:
    """The documents of a PubTator file; see the module's text for the rules.

    Raises:
        FormatError: a line is none of PubTator's, or an id comes twice with different content.
        AlignmentError: a mention covers something else than it says.
    """
    name = shown_name(path)
    seen: dict[str, int] = {}
    for article in _articles(path):
        content = article.content()
        if article.id not in seen:
            seen[article.id] = content
            try:
                yield from _documents(article, options, problems)
            except DataError as error:
                raise placed(error, f"{name}, document {article.id!r}") from None
        elif seen[article.id] == content:
            problems.add("repeated", "articles left out that are there already", article.id, "word for word the same")
        else:
            raise FormatError(f"{name}: the article {article.id!r} comes twice, with different content")


def _documents(article: _Article, options: ReadPubTator, problems: Problems) -> Iterator[Document]:
    if options.text_only:
        return mention_documents(article.id, article.text, None, options, problems)
    _report(article, problems)
    mentions = article.mentions
    if options.one_type is not None:
        mentions = [mention._replace(type=options.one_type) for mention in mentions]
    return mention_documents(article.id, article.text, mentions, options, problems)


def _report(article: _Article, problems: Problems) -> None:
    if article.relations:
        problems.add("relations", "relations left out", article.id, f"{article.relations} relations", article.relations)
    if article.lists:
        title = "lists of the single mentions in a composite one left out"
        problems.add("single_mentions", title, article.id, f"{article.lists} lists", article.lists)


def _articles(path: AnyPath) -> Iterator[_Article]:
    """The articles of a file."""
    article: _Article | None = None
    for number, line in read_lines(path):
        part = _PART.fullmatch(line)
        begins = part is not None and part[2] == "t"
        if article is not None and (begins or not line.strip()):
            yield article
            article = None
        if part is not None and begins:
            article = _Article(part[1], part[3])
        elif line.strip():
            _add_line(article, line, number, shown_name(path))
    if article is not None:
        yield article


def _add_line(article: _Article | None, line: str, number: int, name: str) -> None:
    part = _PART.fullmatch(line)
    try:
        if article is None:
            raise FormatError("no title (ID|t|TITLE) stands before it")
        if part is not None:
            article.add_abstract(part[1], part[3])
        else:
            article.add_row(line.split("\t"), number)
    except FormatError as error:
        raise FormatError(f"{name}, line {number}: {error}") from None


def write_pubtator(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write titles, abstracts and mentions: what stands before the first line end of a text is its title.

    A further line end, and a blank of another kind in the cell of a mention, becomes a blank.

    Raises:
        AlignmentError: PubTator cannot hold a document's id or text; the message names it.
        LabelError: the name of a type has a tab or line end in it.
    """
    for name in corpus.types:
        if _NOT_IN_A_CELL.search(name) or not name:
            raise LabelError(f"{path}: PubTator cannot hold the entity type {name!r}. Rename it, or write JSON lines")
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "PubTator files", ("entities",))
    with written(path) as handle:
        for document in corpus:
            handle.write(_article_text(document, path, problems).encode())
    problems.warn()


def _article_text(document: Document, path: AnyPath, problems: Problems) -> str:
    if not _PART.fullmatch(f"{document.id}|t|") or _NOT_IN_A_CELL.search(document.id):
        raise AlignmentError(f"{path}: PubTator cannot hold the document id {document.id!r}. Write JSON lines instead")
    text, spans = text_and_spans(document, problems)
    if "\0" in text:
        raise AlignmentError(f"{path}: PubTator cannot hold document {document.id!r}, which has a NUL character in it")
    title, line_end, abstract = text.partition("\n")
    breaks = len(_LINE_BREAK.findall(title + abstract))
    if breaks:
        done = "line ends after the first, written as blanks"
        problems.add("line_ends", done, document.id, f"{breaks} line ends", breaks)
    lines = [f"{document.id}|t|{_LINE_BREAK.sub(' ', title)}"]
    if line_end:
        lines.append(f"{document.id}|a|{_LINE_BREAK.sub(' ', abstract)}")
    for start, end, name in spans:
        surface = _NOT_IN_A_CELL.sub(" ", text[start:end])
        lines.append(f"{document.id}\t{start}\t{end}\t{surface}\t{name}\t-")
    return "".join(f"{line}\n" for line in (*lines, ""))


PUBTATOR = Format(
    name="pubtator",
    suffixes=(".pubtator",),
    documents=pubtator_documents,
    read_options=ReadPubTator,
    write=write_pubtator,
)

"""XML files from anyone: read element by element, with nothing resolved, fetched or expanded.

A document type may be named (`<!DOCTYPE collection SYSTEM "BioC.dtd">`), but it is never loaded; a file that declares
entities of its own is refused, and so is one that is not well-formed or goes beyond the limits of the parser (text of
10 million characters in one element, 256 levels).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from tagweave.corpus import Document
from tagweave.errors import AlignmentError, FormatError
from tagweave.formats.base import AnyPath
from tagweave.formats.standoff import LONGEST_NUMBER
from tagweave.formats.streams import opened, shown_name, written

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def has_root(path: Path, root: str) -> bool:
    """Whether a path is an XML file with a certain root element; files with other endings are not looked into."""
    from lxml import etree

    if not path.name.lower().removesuffix(".gz").endswith(".xml") or not path.is_file():
        return False
    with opened(path) as handle:
        try:
            return any(str(element.tag) == root for _, element in islice(_events(handle, ("start",)), 1))
        except etree.XMLSyntaxError:
            return False


def elements(path: AnyPath, root: str, name: str) -> Iterator[Any]:
    """The elements of one name, complete; each is emptied when the next one is asked for.

    Args:
        path: the file.
        root: what the root element must be called.
        name: what the wanted elements are called.

    Raises:
        FormatError: the file is not well-formed, has another root, or uses entities; the message names file and line.
    """
    from lxml import etree

    with opened(path) as handle:
        try:
            for event, element in _events(handle, ("start", "end")):
                if event == "start" and element.getparent() is None:
                    _check_root(element, root, path)
                elif event == "end" and element.tag == name:
                    _check_entities(element, path)
                    yield element
                    _clear(element)
        except etree.XMLSyntaxError as error:
            place = f", line {error.lineno}" if error.lineno else ""
            raise FormatError(f"{shown_name(path)}{place}: not well-formed XML ({error.msg})") from None


def fail(path: AnyPath, element: Any, message: str) -> NoReturn:  # noqa: ANN401
    """Raise a `FormatError` about an element, with its line."""
    raise FormatError(f"{shown_name(path)}, line {element.sourceline}: {message}")


def whole_number(value: str | None, what: str) -> int:
    """The number of an attribute or element.

    Raises:
        FormatError: it is none.

    >>> whole_number(" 12", "offset")
    12
    """
    digits = (value or "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > LONGEST_NUMBER:
        raise FormatError(f"the {what} must be a whole number, not {digits[:40]!r}")
    return int(digits)


def text_element(name: str, text: str, **attributes: str) -> Any:  # noqa: ANN401
    """An element with text in it."""
    from lxml import etree

    element = etree.Element(name, attributes)
    element.text = text
    return element


def _events(handle: Any, events: tuple[str, ...]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    from lxml import etree

    return iter(
        etree.iterparse(
            handle,
            events=events,
            resolve_entities=False,
            no_network=True,
            huge_tree=False,
            load_dtd=False,
            remove_comments=True,
            remove_pis=True,
        )
    )


def _check_root(element: Any, root: str, path: AnyPath) -> None:  # noqa: ANN401
    if element.tag != root:
        fail(path, element, f"the root element is {element.tag!r}, not {root!r}: the file is of another format")
    declared = element.getroottree().docinfo.internalDTD
    names = [entity.name for entity in declared.iterentities()] if declared is not None else []
    if names:
        fail(path, element, f"declares the entity {names[0]!r}. Write the text itself in its place")


def _check_entities(element: Any, path: AnyPath) -> None:  # noqa: ANN401
    from lxml import etree

    for entity in element.iter(etree.Entity):
        fail(path, element, f"uses the entity {entity.text!r}, which is none of XML's own. Write the text itself")


def _clear(element: Any) -> None:  # noqa: ANN401
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def write_elements(path: AnyPath, root: str, elements: Iterable[Any]) -> None:
    """Write an XML file of elements, one after the other, inside a root element.

    Raises:
        UsageError: the file cannot be written.
    """
    from lxml import etree

    with written(path) as handle, etree.xmlfile(handle, encoding="utf-8") as file:
        file.write_declaration(standalone=True)
        with file.element(root):
            file.write("\n")
            for element in elements:
                file.write(element)
                file.write("\n")


def checked_text(text: str, document: Document, path: AnyPath) -> str:
    """The text of a document, if XML can hold it.

    Raises:
        AlignmentError: it has control characters in it, which XML has no way to write.
    """
    found = _NOT_XML.search(text)
    if found is not None:
        raise AlignmentError(
            f"{path}: XML cannot hold document {document.id!r}, which has {found[0]!r} in it. Take such characters "
            "out, or write JSON lines"
        )
    return text

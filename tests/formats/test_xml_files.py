import gzip
from pathlib import Path

import pytest

from tagweave.corpus import Document
from tagweave.errors import AlignmentError, FormatError, UsageError
from tagweave.formats.xml_files import checked_text, elements, has_root, text_element, whole_number, write_elements


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.xml"


def texts(path: Path, content: bytes) -> list[str | None]:
    path.write_bytes(content)
    return [element.text for element in elements(path, "all", "one")]


def test_elements_one_by_one(path: Path) -> None:
    assert texts(path, b"\xef\xbb\xbf<all><one>a</one><two/><one>b<!-- c -->d</one><?e f?></all>") == ["a", "bd"]


def test_an_element_is_emptied_when_the_next_is_asked_for(path: Path) -> None:
    path.write_bytes(b"<all>" + b"<one>a</one>" * 9 + b"</all>")
    found = elements(path, "all", "one")
    first = next(found)
    *_, last = found
    assert first.text is None
    assert len(last.getparent() if last.getparent() is not None else ()) <= 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_any_encoding_that_the_file_names(path: Path, encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?><all><one>\u00e9</one></all>'
    assert texts(path, content.encode(encoding)) == ["\u00e9"]


def test_a_document_type_may_be_named(path: Path) -> None:
    assert texts(path, b'<!DOCTYPE all SYSTEM "all.dtd"><all><one>&lt;&#233;&amp;</one></all>') == ["<\u00e9&"]


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not well-formed"),
        (b"hello", "line 1: not well-formed"),
        (b"<all><one>a</one>\n", "line 2: not well-formed"),
        (b"<all>\n<one>a</two></all>", "line 2: not well-formed"),
        (b"<all/><all/>", "line 1: not well-formed"),
        (b"<all><one>\xff</one></all>", "line 1: not well-formed"),
        (b"<all><one>a\0b</one></all>", "line 1: not well-formed"),
        (b"<all>\n<one>&nbsp;</one></all>", "not well-formed"),
        (b'<!DOCTYPE all SYSTEM "a.dtd">\n<all>\n<one>a&nbsp;b</one></all>', "line 3: uses the entity '&nbsp;'"),
        (b'<!DOCTYPE all [<!ENTITY a "b">]><all><one>&a;</one></all>', "declares the entity 'a'"),
        (b'<!DOCTYPE all [<!ENTITY a "b">]><all><one x="&a;">c</one></all>', "declares the entity 'a'"),
        (
            b'<!DOCTYPE all [<!ENTITY a SYSTEM "file:///etc/passwd">]><all><one>&a;</one></all>',
            "declares the entity 'a'",
        ),
        (b'<!DOCTYPE all [<!ENTITY % a SYSTEM "http://127.0.0.1:9/a"> %a;]><all/>', "declares the entity 'a'"),
        (f'<!DOCTYPE all [<!ENTITY l0 "ha">{LAUGHS}]><all><one>&l9;</one></all>'.encode(), "declares|not well-formed"),
        (f'<!DOCTYPE all [<!ENTITY l0 "ha">{LAUGHS}]><all x="&l9;"/>'.encode(), "declares|not well-formed"),
        (b"<all>" + b"<one>" * 300 + b"</one>" * 300 + b"</all>", "not well-formed"),
        (b"<all><one>" + b"a" * 11_000_000 + b"</one></all>", "not well-formed"),
        (b"<html/>", "line 1: the root element is 'html', not 'all'"),
    ],
    ids=range(18),
)
def test_what_is_refused(path: Path, content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=rf"in\.xml.*({message})"):
        texts(path, content)


def test_files_that_are_included_are_not_read(path: Path) -> None:
    content = b'<all xmlns:x="http://www.w3.org/2001/XInclude"><one><x:include href="in.xml" parse="text"/></one></all>'
    assert texts(path, content) == [None]


def test_a_packed_file_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "in.xml.gz"
    path.write_bytes(gzip.compress(b"<all><one>a</one></all>")[:-9])
    with pytest.raises(FormatError, match="not a complete gzip file"):
        list(elements(path, "all", "one"))


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        list(elements(path, "all", "one"))


def test_the_root_is_known_without_reading_on(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b'<!DOCTYPE all SYSTEM "a.dtd"><all><one>')
    assert has_root(path, "all") and not has_root(path, "one")
    packed = tmp_path / "b.XML.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert has_root(packed, "all")
    other = tmp_path / "in.txt"
    other.write_bytes(path.read_bytes())
    path.write_bytes(b"no xml")
    assert not any(has_root(given, "all") for given in (path, other, tmp_path, tmp_path / "none.xml"))


def test_what_is_written_is_read(path: Path) -> None:
    text = "\U0001f680\r\n\t<&>\u2028 \r"
    write_elements(path, "all", [text_element("one", text), text_element("two", "x")])
    assert texts(path, path.read_bytes()) == [text]
    assert path.read_bytes().startswith(b"<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n<all>\n<one>")


def test_half_a_file_is_not_left(path: Path) -> None:
    def failing() -> object:
        yield text_element("one", "a")
        raise FormatError("b")

    with pytest.raises(FormatError, match="b"):
        write_elements(path, "all", failing())  # type: ignore[arg-type]
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x0b", "\ufffe", "\uffff"])
def test_characters_that_xml_cannot_hold(character: str) -> None:
    with pytest.raises(AlignmentError, match="out.xml: XML cannot hold document 'd'"):
        checked_text(f"a{character}b", Document("d", []), "out.xml")


@pytest.mark.parametrize("value", [None, "", "a", "-1", "1.5", "\u0663", "9" * 5000])
def test_what_is_no_whole_number(value: str | None) -> None:
    with pytest.raises(FormatError, match="the offset must be a whole number"):
        whole_number(value, "offset")

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tagweave.corpus import Document
from tagweave.errors import FormatError, MissingExtraError, SourceError, UsageError
from tagweave.sources import SOURCES, Regex, Source, create_source, load_sources
from tagweave.sources.base import Votes

YEARS = '[[source]]\nkind = "regex"\nname = "years"\npatterns = "[12][0-9]{3}"\ntype = "DATE"\n'


@dataclass
class Shelf(Source):
    kind = "shelf"

    book: Path
    books: tuple[Path, ...] = ()
    by_type: dict[str, Path] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    of: str | tuple[str, ...] = ()
    cover: Path | None = None
    title: str = ""

    @property
    def types(self) -> tuple[str, ...]:
        return ("BOOK",)

    def find(self, document: Document) -> Votes:
        return []


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "shelf", Shelf)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# Settings


@pytest.mark.usefixtures("shelf")
def test_relative_paths_count_from_the_folder(tmp_path: Path) -> None:
    settings = {
        "name": "s",
        "book": "a.txt",
        "books": ["b.txt", "/c.txt"],
        "by_type": {"X": "d.txt"},
        "names": {"x": "y"},
        "title": "e.txt",
        "cover": "f.txt",
    }
    made = create_source("shelf", settings, tmp_path)
    assert made == Shelf(
        "s",
        tmp_path / "a.txt",
        (tmp_path / "b.txt", Path("/c.txt")),
        {"X": tmp_path / "d.txt"},
        {"x": "y"},
        title="e.txt",
        cover=tmp_path / "f.txt",
    )
    assert create_source("shelf", {"name": "s", "book": "a.txt"}) == Shelf("s", Path("a.txt"))


@pytest.mark.usefixtures("shelf")
def test_one_text_for_a_list_is_a_list_of_one() -> None:
    made = create_source("shelf", {"name": "s", "book": "a", "words": "x, y", "books": "b", "of": "z, z"}, Path("f"))
    assert isinstance(made, Shelf)
    assert (made.words, made.books, made.of) == (("x, y",), (Path("f/b"),), "z, z")
    listed = create_source("shelf", {"name": "s", "book": "a", "of": ["p", "q"]})
    assert isinstance(listed, Shelf)
    assert listed.of == ("p", "q")


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("shlef", {"name": "s"}, "no kind of source is called 'shlef'. Did you mean 'shelf'"),
        ("shelf", {"name": "s"}, "shelf needs the setting book"),
        ("shelf", {}, "shelf needs the setting name and book"),
        ("shelf", {"name": "s", "bok": "a"}, "no setting of Shelf is called 'bok'. Did you mean 'book'"),
        ("shelf", {"name": "s", "book": 5}, r"Shelf\.book must be of type Path, not 5"),
    ],
)
def test_wrong_settings(kind: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        create_source(kind, settings)


# TOML


@pytest.mark.usefixtures("shelf")
def test_a_toml_file(tmp_path: Path) -> None:
    path = written(tmp_path, "x/sources.toml", YEARS + '[[source]]\nkind = "shelf"\nname = "s"\nbook = "a.txt"\n')
    assert load_sources(path) == [Regex("years", "[12][0-9]{3}", "DATE"), Shelf("s", tmp_path / "x" / "a.txt")]
    assert load_sources(str(path)) == load_sources(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"s\.toml has no sources"),
        ("[source]\nkind = 'regex'", "two brackets"),
        ("source = ['regex']", "two brackets"),
        ("[[sources]]\nkind = 'regex'", r"s\.toml: no table is called 'sources'. Did you mean 'source'"),
        ("[[source]]\nname = 'years'", r"s\.toml, source 'years': needs a kind"),
        (YEARS + "grup = 1", r"s\.toml, source 'years': no setting of Regex is called 'grup'. Did you mean 'group'"),
        ("[[source]]\nkind = 'regexp'", r"s\.toml, source 1: no kind of source is called 'regexp'"),
        ("[[source]]\nkind = 'regex'\nname='x'\ntype='X'\npatterns='('", "source 'x': '\\(' is no regular expression"),
        (YEARS + YEARS, r"s\.toml: sources 1 and 2 are both called 'years'"),
    ],
)
def test_wrong_toml(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_sources(written(tmp_path, "s.toml", text))


def test_what_is_no_toml(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"s\.toml cannot be read.*line 2"):
        load_sources(written(tmp_path, "s.toml", "[[source]]\nkind = \nname = 1"))


@pytest.mark.parametrize("name", ["missing.py", "sources.yaml", "sources"])
def test_other_files(tmp_path: Path, name: str) -> None:
    written(tmp_path, "sources.yaml", "a: b")
    with pytest.raises(UsageError, match="there is no file|come from a Python file"):
        load_sources(tmp_path / name)


# Python

FUNCTIONS = """
from tagweave.sources import Regex, labeling_function
from neighbour import TOWNS, rivers

@labeling_function("LOC")
def zebra(document):
    return [(0, 1)]

def helper(document):
    return []

years = Regex("years", "[12][0-9]{3}", "DATE")
again = years

@labeling_function("LOC", name="apes")
def apes_(document):
    "Where apes are."
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token in TOWNS]
"""


def test_a_python_file(tmp_path: Path) -> None:
    written(
        tmp_path,
        "neighbour.py",
        "from tagweave.sources import labeling_function\nTOWNS = {'Oslo'}\n"
        "@labeling_function('LOC')\ndef rivers(document):\n    return []\n",
    )
    before = list(sys.path)
    found = load_sources(written(tmp_path, "mine.py", FUNCTIONS))
    sys.modules.pop("neighbour")
    assert [source.name for source in found] == ["rivers", "zebra", "years", "apes"]
    assert list(found[3].find(Document("d", ["In", "Oslo"])) or ()) == [(1, 2)]
    assert sys.path == before
    assert not list(tmp_path.glob("__pycache__/mine*"))


def test_the_list_says_which_and_in_what_order(tmp_path: Path) -> None:
    text = "from tagweave.sources import Regex\nSOURCES = [Regex(c, c, 'X') for c in 'ba']\nd = Regex('d', 'd', 'X')"
    assert [source.name for source in load_sources(written(tmp_path, "listed.py", text))] == ["b", "a"]


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    text = "from tagweave.sources import Regex\na = Regex('{}', 'a', 'X')"
    for name in "ab":
        path = written(tmp_path, "changing.py", text.format(name))
        assert [source.name for source in load_sources(path)] == [name]


def test_dataclasses_of_a_file_work(tmp_path: Path) -> None:
    text = """
from __future__ import annotations
from dataclasses import dataclass
from tagweave.sources import Source

@dataclass
class Loud(Source):
    least: int = 2

    types = ("LOUD",)

    def find(self, document):
        return [(i, i + 1) for i, token in enumerate(document.tokens) if len(token) >= self.least and token.isupper()]

loud = Loud("loud", 3)
"""
    (found,) = load_sources(written(tmp_path, "classes.py", text))
    assert list(found.find(Document("d", ["NO", "WAY"])) or ()) == [(1, 2)]


def failing(tmp_path: Path, text: str) -> str:
    with pytest.raises((SourceError, UsageError)) as caught:
        load_sources(written(tmp_path, "bad.py", text))
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n1 / 0", "bad.py, line 3: ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('x')\n\nf()", "bad.py, line 2: KeyError: 'x'"),
        ("a = 1\nb = (a\nc = 2", "bad.py, line 2: '(' was never closed: b = (a"),
        ("import no_such_module", "bad.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit('enough')", "bad.py, line 1: SystemExit: enough"),
        (
            "from tagweave.sources import Regex\nr = Regex('r', '(', 'X')",
            "bad.py, line 2: '(' is no regular expression",
        ),
        ("def f(document):\n    return []", "bad.py has no sources. A file of sources may look like this"),
        ("SOURCES = []", "bad.py has no sources"),
        ("SOURCES = 5", "bad.py: SOURCES must be a list of sources, not 5"),
        ("def f(document):\n    return []\nSOURCES = [f]", "which is no source. Put @labeling_function above"),
        ("from tagweave.sources import Regex\nSOURCES = [Regex('a', 'a', 'X')] * 2", "sources 1 and 2 are both called"),
    ],
)
def test_errors_in_a_python_file(tmp_path: Path, text: str, message: str) -> None:
    assert message in failing(tmp_path, text)


def test_an_error_in_a_neighbour_names_both(tmp_path: Path) -> None:
    written(tmp_path, "broken_neighbour.py", "x = (")
    message = failing(tmp_path, "\nimport broken_neighbour")
    assert "bad.py, line 2" in message
    assert "broken_neighbour.py" in message


def test_errors_of_the_library_keep_their_class(tmp_path: Path) -> None:
    text = "from tagweave.errors import MissingExtraError\nraise MissingExtraError('pip install x')"
    with pytest.raises(MissingExtraError, match=r"bad\.py, line 2: pip install x"):
        load_sources(written(tmp_path, "bad.py", text))


def test_the_example_in_the_message_works(tmp_path: Path) -> None:
    message = failing(tmp_path, "")
    example = message.partition(":\n")[2]
    (found,) = load_sources(written(tmp_path, "example.py", example))
    assert list(found.find(Document("d", ["Oslo"])) or ()) == [(0, 1)]


def test_sources_load_no_heavy_package() -> None:
    code = (
        "import sys, tagweave.sources as s; s.create_source('regex', {'name': 'a', 'patterns': 'a', 'type': 'X'}); "
        "print([n for n in ('spacy', 'torch', 'transformers', 'pandas') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

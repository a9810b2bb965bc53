"""The votes that AutoNER learns from: matches of a dictionary with types, and of a longer list of phrases without."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tagweave.annotating import annotate
from tagweave.corpus import Corpus
from tagweave.errors import DataError
from tagweave.sources.dictionary import Dictionary
from tagweave.sources.outside import ENGLISH_STOP_WORDS
from tagweave.sources.phrase_files import read_phrases

CORE, FULL = "core", "full"
"""What the two sources are called."""

_LISTS = ("geo_", "wiki_", "crunchbase_", "multitoken_", "full_name_detector")
"""How the names of sources begin that look names up in lists, in the votes on CoNLL-2003."""


def autoner_labels(corpus: Corpus, core_file: Path, full_file: Path, rename: Mapping[str, str] | None = None) -> Corpus:
    r"""A corpus with two sources, `core` and `full`, in place of those that it has.

    Phrases count as they are listed, in capitals, and in small letters; the latter only if the phrase has no stop word
    and its type is none of people, organisations or places, whose names are words too. A stop word alone is no phrase.

    Args:
        corpus: the documents.
        core_file: lines of type, tab, phrase.
        full_file: a phrase a line.
        rename: other names for the types of the core file.

    Raises:
        DataError: the core file has no phrase, or one without a type.
        UsageError: a file cannot be opened.
        FormatError: a file cannot be read.

    >>> import tempfile
    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents([Document("d", ["The", "TRACK", "pad", "is", "a", "touch", "screen"])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     core, full = Path(folder, "core.tsv"), Path(folder, "full.tsv")
    ...     _ = core.write_text("PART\tTrack pad\n"), full.write_text("touch screen\nTrack\nIs\n")
    ...     found = autoner_labels(corpus, core, full)[0].sources
    >>> {name: [vote[:2] for vote in votes] for name, votes in found.items()}
    {'core': [], 'full': [(1, 2), (5, 7)]}
    """
    entries: dict[str, dict[str, None]] = {}
    for phrase, kind, _ in read_phrases(Path(core_file)):
        if kind is None:
            raise DataError(f"{core_file}: the phrase {phrase!r} has no type: lines must be type, tab, phrase")
        entries.setdefault((rename or {}).get(kind, kind), {}).update(dict.fromkeys(_forms(phrase, kind)))
    if not entries:
        raise DataError(f"{core_file} has no phrase")
    phrases = dict.fromkeys(form for phrase in read_phrases(Path(full_file)) for form in _forms(phrase.text, ""))
    any_type = next(iter(entries))
    sources = [_dictionary(CORE, entries), _dictionary(FULL, {any_type: phrases})]
    return annotate(corpus.select_sources([]), sources)


def list_sources(corpus: Corpus) -> tuple[str, ...]:
    """The sources of CoNLL-2003 that look names up in lists: what `core` of AutoNER is where there is no dictionary.

    >>> from tagweave.corpus import Document
    >>> sources = {name: [] for name in ("geo_cased", "nationalities", "full_name_detector")}
    >>> list_sources(Corpus.from_documents([Document("d", ["Oslo"], sources=sources)]))
    ('geo_cased', 'full_name_detector')
    """
    return tuple(name for name in corpus.sources if name.startswith(_LISTS))


def _dictionary(name: str, entries: Mapping[str, Iterable[str]]) -> Dictionary:
    words = {kind: tuple(phrases) for kind, phrases in entries.items()}
    return Dictionary(name, words=words, exclude=tuple(sorted(ENGLISH_STOP_WORDS)))


def _forms(phrase: str, kind: str) -> Iterator[str]:
    """The spellings of a phrase that count."""
    yield phrase
    yield phrase.upper()
    if not any(name in kind for name in ("PER", "ORG", "LOC")) and ENGLISH_STOP_WORDS.isdisjoint(
        phrase.lower().split()
    ):
        yield phrase.lower()

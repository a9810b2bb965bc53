"""The same damage to a good file of every format: what disks, transfers, editors and ill will do to any file."""

import gzip
import json
import os
import random
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import tagweave
from hostile.cases import Case
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.formats import FormatWarning

NAMES = {
    "jsonl": "good.jsonl",
    "text": "good.txt",
    "conll": "good.conll",
    "conllu": "good.conllu",
    "chmm-alt": "good.json",
    "pubtator": "good.pubtator",
    "bioc": "good.xml",
    "semeval": "good.xml",
    "docbin": "good.spacy",
    "parquet": "good.parquet",
    "label-studio": "good.json",
    "doccano": "good.jsonl",
    "prodigy": "good.jsonl",
    "argilla": "good.jsonl",
}
"""A name of a file in each format that is a single file."""

BINARY = ("docbin", "parquet")
UNPACKED = ("parquet",)
"""Formats that are never packed by gzip."""

MEMBER = gzip.compress(bytes(1 << 23), 9, mtime=0)
"""8 MiB of zeros in 8 KiB."""


def corpus() -> Corpus:
    """A few documents that all formats can hold."""
    texts = ("Ada Lovelace saw Oslo .", "Oslo saw Bo .", "nobody came", "Ada came .")
    spans = ([Span(0, 2, "PER"), Span(3, 4, "LOC")], [Span(0, 1, "LOC")], [], [Span(0, 1, "PER")])
    documents = []
    for number, (text, entities) in enumerate(zip(texts, spans, strict=True)):
        tokens = text.split()
        starts = [sum(len(token) + 1 for token in tokens[:index]) for index in range(len(tokens))]
        places = [(start, start + len(token)) for start, token in zip(starts, tokens, strict=True)]
        documents.append(Document(f"d{number}", tokens, text, places, entities=entities))
    return Corpus.from_documents(documents)


def write(path: Path, name: str) -> None:
    """Writes the corpus in a format; what that cannot hold does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        tagweave.write(corpus(), path, format=name)


def damaged(folder: Path) -> Iterator[Case]:
    """Every damage to every format."""
    for name, file in NAMES.items():
        whole = folder / name / file
        whole.parent.mkdir()
        write(whole, name)
        yield Case(whole, "cleanly", format=name)
        yield from _damages(whole, name)
    yield from _damaged_datasets(folder)


def _damages(whole: Path, name: str) -> Iterator[Case]:
    content = whole.read_bytes()

    def case(what: str, raw: bytes, ends: str = "refused", says: str = "", packed: bool = False) -> Case:
        path = whole.with_name(f"{what}{whole.suffix}{'.gz' * packed}")
        path.write_bytes(raw)
        return Case(path, ends, says, name)  # type: ignore[arg-type]

    text = name not in BINARY
    xml = name in ("bioc", "semeval")
    plain = name == "text"
    yield case("empty", b"", "cleanly")
    yield case("blank", b" \n\t\n\r\n   \n", "cleanly")
    yield case("half", content[: len(content) // 2], "cleanly")
    yield case("random", random.Random(name).randbytes(4000), "refused")
    yield case("other", b"%PDF-1.7 \n" + b"lorem ipsum\n" * 3, "fine" if plain else "cleanly")
    yield case("nul", content[:20] + b"\0" + content[20:], "refused" if text else "cleanly")
    yield case("zeros", bytes(5000), "refused")
    yield case("broken_utf8", content[:-4] + b"\xff\xfe" + content[-4:], "refused" if text else "cleanly")
    yield case("long_line", content + b"x" * 10_000_000 + b"\n", "cleanly")
    if text:
        decoded = content.decode()
        yield case("bom", b"\xef\xbb\xbf" + content, "cleanly")
        yield case("two_boms", b"\xef\xbb\xbf" * 2 + content, "cleanly")
        yield case("utf16", decoded.encode("utf-16"), "refused" if not xml else "cleanly")
        yield case("utf32", decoded.encode("utf-32"), "refused" if not xml else "cleanly")
        yield case("latin1", decoded.replace("a", "\xe4").encode("latin-1"), "refused")
        yield case("crlf", decoded.replace("\n", "\r\n").encode(), "cleanly")
        yield case("cr", decoded.replace("\n", "\r").encode(), "cleanly")
        yield case("zero_width", decoded.replace("saw", "s\u200bw \u0301\u202e\ufeff").encode(), "cleanly")
        yield case("control", decoded.replace("saw", "s\x0b\x0c\x1e\x85\u2028w").encode(), "cleanly")
        yield case("surrogates", decoded.replace("saw", "s\ud800w").encode("utf-8", "surrogatepass"), "refused")
        yield case("twice", content + content, "cleanly")
        yield case("many_lines", content * 300, "cleanly")
        yield case("nested", b"[" * 100_000 + b"\n", "fine" if plain else "cleanly")
        yield case("objects", b'{"a":' * 100_000 + b"\n", "fine" if plain else "cleanly")
    yield from _flips(whole, name, content)
    yield from _packed(whole, name, content)
    yield from _no_files(whole, name)


def _flips(whole: Path, name: str, content: bytes) -> Iterator[Case]:
    chance = random.Random(f"flips {name}")
    for number in range(4):
        raw = bytearray(content)
        for _ in range(1 + number):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path = whole.with_name(f"flip{number}{whole.suffix}")
        path.write_bytes(bytes(raw))
        yield Case(path, "cleanly", format=name)
    for number in range(2):
        raw = bytearray(content)
        start = chance.randrange(len(raw) // 2)
        del raw[start : start + 1 + chance.randrange(20)]
        path = whole.with_name(f"gap{number}{whole.suffix}")
        path.write_bytes(bytes(raw))
        yield Case(path, "cleanly", format=name)


def _packed(whole: Path, name: str, content: bytes) -> Iterator[Case]:
    if name in UNPACKED:
        return
    packed = gzip.compress(content, mtime=0)
    damages = {
        "packed": (packed, "cleanly", ""),
        "packed_half": (packed[: len(packed) // 2], "refused", "gzip"),
        "packed_sum": (packed[:-8] + bytes(8), "refused", "gzip"),
        "packed_not": (content, "refused", "gzip"),
        "packed_nothing": (b"", "cleanly", ""),
        "packed_twice": (gzip.compress(packed, mtime=0), "refused", ""),
        "packed_trailing": (packed + b"garbage", "refused", "gzip"),
        "bomb": (packed + MEMBER * 256, "refused", "unpacked|NUL|not well-formed|DocBin"),
        "bomb_lines": (packed + LINES * 200, "refused", "unpacked|not well-formed|DocBin|line"),
    }
    for what, (raw, ends, says) in damages.items():
        path = whole.with_name(f"{what}{whole.suffix}.gz")
        path.write_bytes(raw)
        yield Case(path, ends, says, name)  # type: ignore[arg-type]


LINES = gzip.compress((b" " * 127 + b"\n") * (1 << 16), 9, mtime=0)
"""8 MiB of blank lines."""


def _no_files(whole: Path, name: str) -> Iterator[Case]:
    folder = whole.with_name(f"folder{whole.suffix}")
    folder.mkdir()
    yield Case(folder, "refused", "", name)
    pipe = whole.with_name(f"pipe{whole.suffix}")
    os.mkfifo(pipe)
    yield Case(pipe, "refused", "no (plain )?file", name)
    for what, target in (("zero", "/dev/zero"), ("null", "/dev/null"), ("loop", f"loop{whole.suffix}")):
        path = whole.with_name(f"{what}{whole.suffix}")
        path.symlink_to(target)
        yield Case(path, "refused", "", name)
    yield Case(whole.with_name(f"missing{whole.suffix}"), "refused", "", name)


def _damaged_datasets(folder: Path) -> Iterator[Case]:
    """Folders of Hugging Face datasets with each of their files damaged."""
    parts = ("data-00000-of-00001.arrow", "state.json", "dataset_info.json")
    for part in parts:
        for what, damage in _PARTS.items():
            broken = folder / "datasets" / f"{what}-{part.partition('.')[0]}"
            write(broken, "datasets")
            raw = (broken / part).read_bytes()
            (broken / part).unlink()
            if damage is not None:
                (broken / part).write_bytes(damage(raw))
            elif what == "pipe":
                os.mkfifo(broken / part)
            yield Case(broken, "cleanly", format="datasets")
    for what, state in _STATES.items():
        broken = folder / "datasets" / what
        write(broken, "datasets")
        (broken / "state.json").write_text(json.dumps(state))
        yield Case(broken, "refused", format="datasets")


_PARTS = {
    "missing": None,
    "pipe": None,
    "empty": lambda raw: b"",
    "half": lambda raw: raw[: len(raw) // 2],
    "zeros": lambda raw: bytes(len(raw)),
    "nested": lambda raw: b"[" * 100_000,
    "squeezed": zlib.compress,
}
_STATES = {
    "elsewhere": {"_data_files": [{"filename": "../../../../etc/passwd"}]},
    "device": {"_data_files": [{"filename": "/dev/zero"}]},
    "numbers": {"_data_files": [1, 2]},
    "no-list": {"_data_files": "data-00000-of-00001.arrow"},
    "none": {},
}

"""Folders of saved models, changed as an attacker would change them: with a manifest that fits again."""

import hashlib
import json
import os
import pickle
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document


class Payload:
    """What a pickle that is opened would do: make a file."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self._mark),)


def planted(folder: Path, mark: Path) -> list[Path]:
    """Puts pickles under all names that anything might open by itself, and code under those that might be imported."""
    pickled = pickle.dumps(Payload(mark))
    code = f"import os\nos.makedirs({str(mark)!r}, exist_ok=True)\n"
    names = [
        "pytorch_model.bin",
        "training_args.bin",
        "optimizer.pt",
        "scheduler.pt",
        "rng_state.pth",
        "adapter_model.bin",
    ]
    names += [
        "model.pkl",
        "pytorch_model.pt",
        "flax_model.msgpack",
        "tf_model.h5",
        "vocab.pkl",
        "model.joblib",
        "crf.pt",
    ]
    names += ["parameters.pkl", "config.pkl", "scaler.pt", "trainer_state.pkl", "model.npy", "parameters.npz"]
    modules = [
        "modeling_evil.py",
        "configuration_evil.py",
        "tokenization_evil.py",
        "__init__.py",
        "setup.py",
        "model.py",
    ]
    modules += ["sitecustomize.py", "conftest.py", "custom_generate.py"]
    for name in names:
        (folder / name).write_bytes(pickled)
    for name in modules:
        (folder / name).write_text(code)
    return [folder / name for name in (*names, *modules)]


def signed(folder: Path) -> None:
    """Makes the manifest fit the files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    found = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in files
    }
    (folder / "manifest.json").write_text(json.dumps(found))


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """A JSON file with some change; what the change returns, unless it is None, takes its place."""
    value = json.loads(path.read_text())
    result = change(value)
    path.write_text(json.dumps(value if result is None else result))


def tensors(header: dict[str, Any] | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file that says what one wants."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def broken_tensors(good: bytes) -> Iterator[tuple[str, bytes]]:
    """What a safetensors file must not be, by what is wrong with it."""
    start = 8 + struct.unpack("<Q", good[:8])[0]
    header, data = json.loads(good[8:start]), good[start:]
    header.pop("__metadata__", None)
    name = next(iter(header))

    def entry(**values: Any) -> bytes:  # noqa: ANN401
        return tensors({**header, name: {**header[name], **values}}, data)

    yield "nothing", b""
    yield "zeros", bytes(1000)
    yield "half", good[: len(good) // 2]
    yield "huge header", tensors(header, data, length=2**63 - 1)
    yield "longest header", tensors(header, data, length=2**64 - 1)
    yield "header as long as the file", tensors(header, data, length=len(good))
    yield "header is no JSON", tensors(b"{", data)
    yield "header is a list", tensors(b"[]", data)
    yield "deep header", tensors(b'{"a":' * 50_000, data)
    yield "pickle", pickle.dumps(header)
    yield "overlap", tensors({**header, "extra": header[name]}, data)
    yield "reversed offsets", entry(data_offsets=[8, 0])
    yield "offsets beyond", entry(data_offsets=[0, 2**62])
    yield "negative offsets", entry(data_offsets=[-8, 0])
    yield "no offsets", entry(data_offsets=[])
    yield "huge shape", entry(shape=[2**40, 2**40])
    yield "overflowing shape", entry(shape=[2**63, 2])
    yield "negative shape", entry(shape=[-1])
    yield "other shape", entry(shape=[*header[name]["shape"], 1])
    yield "other kind", entry(dtype="I64" if header[name]["dtype"] != "I64" else "F64")
    yield "unknown kind", entry(dtype="PICKLE")
    yield "rest", tensors(header, data + b"rest")
    yield "missing data", tensors(header, data[:-1])
    yield "other names", tensors({f"x{key}": value for key, value in header.items()}, data)
    twice = json.dumps(header)[:-1] + "," + json.dumps({name: header[name]})[1:]
    yield "name twice", tensors(twice.encode(), data)


def corpus(count: int = 6) -> Corpus:
    """Documents with the votes of three sources and one linking rule, and gold."""
    tokens, gold = ["Ada", "Lovelace", "saw", "Oslo"], [Span(0, 2, "PER"), Span(3, 4, "LOC")]
    sources = {"a": gold[:1], "b": gold[1:], "c": gold}
    documents = [
        Document(f"d{number}", tokens, entities=gold, sources=sources, links={"l": [Span(0, 2, "same")]})
        for number in range(count)
    ]
    return Corpus.from_documents(documents)

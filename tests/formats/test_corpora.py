import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.standard_input import standard_input
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, UsageError
from tagweave.formats import FORMATS, Format, FormatWarning, corpora, read, read_batches, write, write_batches
from tagweave.formats.base import Types
from tagweave.formats.problems import Problems


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def ids(path: Path, **options: Any) -> list[list[str]]:  # noqa: ANN401
    return [corpus.id_list for corpus in read_batches(path, **options)]


def test_batches_of_documents(tmp_path: Path) -> None:
    path = lines(tmp_path / "in.jsonl", *({"id": n, "tokens": ["a"]} for n in range(5)))
    assert ids(path, documents=2) == [["0", "1"], ["2", "3"], ["4"]]
    assert ids(path, documents=5) == ids(path) == [["0", "1", "2", "3", "4"]]
    assert ids(lines(path)) == []
    with pytest.raises(UsageError, match="at least 1"):
        read_batches(path, documents=0)
    with pytest.raises(UsageError, match="Did you mean 'scheme'"):
        read_batches(path, schema="BIO")


@given(st.lists(st.sampled_from(["g", "h", None]), max_size=12), st.integers(1, 5))
def test_batches_are_the_whole(tmp_path_factory: pytest.TempPathFactory, groups: list[str | None], size: int) -> None:
    path = tmp_path_factory.mktemp("batches") / "in.jsonl"
    lines(path, *({"id": n, "tokens": ["a"], "group": group} for n, group in enumerate(groups)))
    batches = [*read_batches(path, documents=size)]
    found = [document for corpus in batches for document in corpus]
    assert found == [*read(path)]
    for before, after in zip(batches, batches[1:], strict=False):
        assert after[0].group is None or before[-1].group != after[0].group
        assert len(before) >= size
        runs = [n for n in range(1, len(before)) if before[n].group is None or before[n].group != before[n - 1].group]
        assert max(runs, default=0) < size


def test_one_warning_in_the_end(tmp_path: Path) -> None:
    records = ({"id": n, "text": "Oslo", "entities": [[0, 2, "LOC"], [0, 4, "X"]]} for n in range(4))
    path = lines(tmp_path / "in.jsonl", *records)
    with pytest.warns(FormatWarning) as caught:
        assert len([*read_batches(path, documents=1)]) == 4
    [warning] = caught
    assert warning.message.counts == {"misaligned": 4, "overlap": 4}  # type: ignore[union-attr]


def test_an_id_that_occurs_twice_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora.SeenNames, "_MOST", 3)
    numbers = [*range(10), 1, 8, 10]
    path = lines(tmp_path / "in.jsonl", *({"id": n, "tokens": ["a"]} for n in numbers))
    with pytest.raises(DataError, match="in.jsonl, line 11, record '1': document id '1' occurs twice"):
        ids(path, documents=2)
    with pytest.warns(FormatWarning, match="2 records left out.*line 11") as caught:
        found = ids(path, documents=4, on_error="skip")
    assert [name for batch in found for name in batch] == [str(n) for n in range(11)]
    assert len(caught) == 1


class TestSoftLabels:
    @staticmethod
    def record(number: int, **fields: object) -> dict[str, object]:
        return {"id": number, "tokens": ["a"], **fields}

    def test_they_come_in_every_batch(self, tmp_path: Path) -> None:
        path = lines(
            tmp_path / "in.jsonl",
            self.record(0, labels=["O", "B-X"], probabilities=[[0.25, 0.75]]),
            self.record(1, labels=["B-Y", "O"], probabilities=[[0.5, 0.5]]),
        )
        first, second = read_batches(path, documents=1)
        assert (first.types, second.types) == (("X",), ("Y",))
        assert first.soft_labels is not None and second.soft_labels is not None
        assert second.soft_labels.probabilities.tolist() == [[0.5, 0.5, 0.0]]
        first, second = read_batches(path, documents=1, types=["Y", "X"])
        assert first.soft_labels is not None
        assert first.soft_labels.probabilities.tolist() == [[0.25, 0, 0, 0.75, 0]]
        with pytest.raises(LabelError, match="types Y, but only X"):
            [*read_batches(path, documents=1, types=["X"])]

    def test_they_come_in_all_batches_or_in_none(self, tmp_path: Path) -> None:
        soft = self.record(0, labels=["O", "B-X"], probabilities=[[0.25, 0.75]])
        source = self.record(0, sources={"s": {"labels": ["O"], "probabilities": [[1]]}})
        for first, second in ((soft, {}), ({}, soft), (source, {"sources": {"s": []}}), (soft, source)):
            path = lines(
                tmp_path / "in.jsonl", {**self.record(1), **first, "id": 1}, {**self.record(2), **second, "id": 2}
            )
            with pytest.raises(FormatError, match="document '2' has other soft labels, or none"):
                [*read_batches(path, documents=1)]
            with pytest.raises(FormatError, match="has no soft labels"):
                read(path)


def made(documents: Callable[[Any, Any, Problems], Iterator[Document]]) -> Format:
    return Format("made", (".made",), documents)


class TestErrorsOfTheCorpus:
    """They are raised where a reader made the document."""

    @staticmethod
    def wrong() -> Document:
        return Document("d", ["a"], entities=[Span(0, 2, "X")])

    def test_a_reader_may_add_the_place(self) -> None:
        def documents(path: object, options: object, problems: Problems) -> Iterator[Document]:
            try:
                yield self.wrong()
            except DataError as error:
                raise AlignmentError(f"line 7: {error}") from None

        with pytest.raises(AlignmentError, match="^line 7: document 'd'"):
            [*corpora.corpora_of(made(documents), "f.made", Types(), None)]

    def test_a_reader_may_go_on(self) -> None:
        def documents(path: object, options: object, problems: Problems) -> Iterator[Document]:
            for name in ("e", "d", "f", "d"):
                try:
                    yield self.wrong() if name == "d" else Document(name, ["a"])
                except DataError:
                    problems.add("wrong", "wrong ones", name, "left out")

        with pytest.warns(FormatWarning, match="2 wrong ones"):
            [corpus] = corpora.corpora_of(made(documents), "f.made", Types(), None)
        assert corpus.id_list == ["e", "f"]

    def test_a_reader_that_does_not_care(self) -> None:
        def documents(path: object, options: object, problems: Problems) -> Iterator[Document]:
            yield self.wrong()

        for function in (documents, lambda *_: iter([self.wrong()])):
            with pytest.raises(AlignmentError, match="^f.made: document 'd', entities: span"):
                [*corpora.corpora_of(made(function), "f.made", Types(), None)]

    def test_a_format_that_cannot_be_read(self) -> None:
        with pytest.raises(UsageError, match="can be written, but not read"):
            [*corpora.corpora_of(Format("made", ()), "f.made", Types(), None)]


def test_columns_from_standard_input_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "-DOCSTART-\n\na I-X\n\nb O\n\n-DOCSTART-\n\nc B-X\n\nd I-X\nd B-X\n\n"
    standard_input(monkeypatch, text.encode())
    with pytest.warns(FormatWarning, match="as the scheme BIO wants") as caught:
        batches = [*read_batches("-", format="conll", documents=1, mode="strict")]
    assert len(caught) == 1
    assert [corpus.id_list for corpus in batches] == [["stdin-0", "stdin-1"], ["stdin-2", "stdin-3"]]
    assert [document.entities for document in batches[0]] == [[], []]
    assert [document.entities for document in batches[1]] == [[Span(0, 1, "X")], [Span(1, 2, "X")]]


@pytest.mark.parametrize("name", ["jsonl", "text", "conll", "conllu"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(corpora.SeenNames, "_MOST", 100)
    document = {
        "jsonl": '{{"id": {0}, "tokens": ["a", "b"], "sources": {{"s": [[0, 1, "X"]]}}}}\n',
        "text": "Ada wrote {0}.\n",
        "conll": "Ada B-X\n{0} O\n\n",
        "conllu": "# sent_id = {0}\n1\tAda" + 7 * "\t_" + "\tNER=B-X\n\n",
    }[name]
    path = tmp_path / f"in.{FORMATS[name].suffixes[0]}"

    def peak(count: int, documents: int = 100) -> int:
        path.write_text("".join(document.format(number) for number in range(count)), encoding="utf-8")
        tracemalloc.start()
        total = sum(len(corpus) for corpus in read_batches(path, format=name, documents=documents))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert total == count
        return most

    peak(200)  # caches
    small, large, whole = peak(500), peak(5000), peak(5000, 5000)
    assert large - small < 0.2 * (whole - small), "more than the ids"


def test_ids_are_kept_in_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora.SeenNames, "_MOST", 10)
    seen = corpora.SeenNames()
    names = [str(number) for number in np.random.default_rng(0).permutation(100)]
    for number, name in enumerate(names):
        assert name not in seen
        seen.add(name)
        assert all(before in seen for before in names[: number + 1])
    assert len(seen._sorted) == 100


def test_a_stream_is_written_as_the_whole(tmp_path: Path) -> None:
    records = [{"id": str(n), "tokens": ["a"], "group": "g", "sources": {"s": [[0, 1, "X"]]}} for n in range(5)]
    path = lines(tmp_path / "in.jsonl", *records)
    write(read(path), tmp_path / "whole.jsonl")
    write_batches(read_batches(path, documents=2), tmp_path / "parts.jsonl.gz")
    assert [*read(tmp_path / "parts.jsonl.gz")] == [*read(path)]
    write_batches(read_batches(path, documents=2), path)
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    with pytest.raises(UsageError, match="conll cannot be written as a stream, but can: jsonl"):
        write_batches([], tmp_path / "out.conll")

"""Adapters for how sources run over documents."""

import gzip
import warnings

import pytest

from annotating import troublesome
from annotating.test_workers import corpus, lines
from cases.harness import Check, check
from tagweave import annotate, load_sources, read, write
from tagweave.annotating import annotate_file
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, TagweaveWarning
from tagweave.sources import Source


def chosen(item: Check) -> tuple[Corpus, list[Source]]:
    """The documents of a case, and the sources that a check names."""
    documents, file = sorted(item.paths)
    sources = {source.name: source for source in load_sources(file)}
    return read(documents), [sources[name] for name in item.expected["sources"]]


@check("annotation_stops", all_files=True)
def annotation_stops(item: Check) -> None:
    """The run ends with a message that mentions something."""
    with pytest.raises(SourceError) as caught:
        annotate(*chosen(item))
    assert [text for text in item.expected["mentions"] if text not in str(caught.value)] == []


@check("annotation_tolerates", all_files=True)
def annotation_tolerates(item: Check) -> None:
    """The run goes on; failures are said and counted, and all other votes are there."""
    documents, sources = chosen(item)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = annotate(documents, sources, tolerant=True)
    failures = {name: f"source {name!r} failed {count} times" for name, count in item.expected["failures"].items()}
    assert len(said) == len(failures)
    assert all(text in str(each.message) for text, each in zip(failures.values(), said, strict=True))
    votes = {
        document.id: {
            name: None if spans is None else [list(span[:3]) for span in spans]
            for name, spans in document.sources.items()
        }
        for document in found
    }
    assert votes == item.expected["votes"]


@check("annotated_alike")
def annotated_alike(item: Check) -> None:
    """Numbers of processes with which the votes are the same, in the same order."""
    sources = [troublesome.cities, troublesome.talkative]
    first, *others = [lines(annotate(corpus(), sources, processes=count)) for count in item.expected["processes"]]
    assert first
    assert all(other == first for other in others)


@check("work_is_shared")
def work_is_shared(item: Check) -> None:
    """How many processes take part."""
    count = item.expected["processes"]
    column = annotate(corpus(), [troublesome.process], processes=count).sources["process"]
    assert isinstance(column, Annotations)
    assert len(set(column.scores.tolist())) == count


@check("unsendable_sources_run_here")
def unsendable_sources_run_here(item: Check) -> None:
    """What the warning mentions; the votes are there all the same."""
    source = troublesome.Unsendable("here", lambda: None)
    with pytest.warns(TagweaveWarning) as said:
        found = annotate(corpus(), [source], processes=item.expected["processes"])
    assert [text for text in item.expected["mentions"] if text not in str(said[0].message)] == []
    assert all(document.sources["here"] for document in found)


@check("goes_on_after_a_break")
def goes_on_after_a_break(item: Check) -> None:
    """A source fails in the middle; what was written before is kept, and the end is as if nothing had happened."""
    expected, folder = item.expected, item.scratch
    names = [["Genua", "sleeps"], ["from", "Triest"], ["nowhere"]]
    made = [Document(str(number), names[number % 3]) for number in range(expected["documents"])]
    write(Corpus.from_documents(made), folder / "in.jsonl")
    out, partial = folder / expected["out"], folder / f"{expected['out']}.partial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAILS_AT", str(expected["fails_at"]))
        with pytest.raises(SourceError, match=f"'ports', document '{expected['fails_at']}': OSError"):
            annotate_file(folder / "in.jsonl", item.path, out)
    assert not out.exists()
    unpack = gzip.decompress if out.suffix == ".gz" else bytes
    assert len(unpack(partial.read_bytes()).splitlines()) == expected["kept"]
    annotate_file(folder / "in.jsonl", item.path, out, resume=True)
    annotate_file(folder / "in.jsonl", item.path, whole := folder / f"whole-{expected['out']}")
    assert out.read_bytes() == whole.read_bytes()
    assert read(out).id_list == [document.id for document in made]

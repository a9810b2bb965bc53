"""The examples that rebuild published sources from raw text: they run, and the dictionaries find what they should."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tagweave
from tagweave.annotating import annotate
from tagweave.corpus import Corpus
from tagweave.evaluation import Score, source_scores
from tagweave.sources import Source, load_sources

EXAMPLES = Path(__file__).parent.parent / "examples"
POINTS = 3.0


@pytest.fixture
def data(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("spacy")
    monkeypatch.setenv("TAGWEAVE_DATA", str(data_folder))
    return data_folder


def chosen(sources: Sequence[Source], names: Sequence[str]) -> list[Source]:
    """The named sources and those that they build on, in order."""
    needed = set(names)
    for source in reversed(sources):
        if source.name in needed:
            for setting in ("of", "links"):
                value = getattr(source, setting, ())
                needed.update([value] if isinstance(value, str) else value)
    return [source for source in sources if source.name in needed]


def far_off(ours: dict[str, Score], given: dict[str, Score], names: Sequence[str]) -> list[str]:
    """Sources whose precision or recall is more than three points from what the given votes have."""
    return [
        f"{name}: {[round(value, 1) for value in ours[name].cells()[:2]]} for {given[name].cells()[:2]}"  # type: ignore[arg-type]
        for name in names
        if any(abs(a - b) > POINTS for a, b in zip(ours[name].cells()[:2], given[name].cells()[:2], strict=True))  # type: ignore[operator]
    ]


def given_scores(data: Path, name: str) -> dict[str, Score]:
    return source_scores(tagweave.read(data / "weak" / name / "dev.jsonl.gz"))


def test_ncbi_disease(data: Path) -> None:
    names = ["tag-CoreDictionaryUncased", "tag-CoreDictionaryExact", "tag-CancerLike"]
    sources = chosen(load_sources(EXAMPLES / "ncbi_disease" / "sources.py"), [*names, "core"])
    raw = tagweave.read(data / "raw/ncbi-disease/dev.pubtator.gz", tokenizer="spacy", one_type="Disease")
    assert far_off(source_scores(annotate(raw, sources)), given_scores(data, "ncbi-disease"), names) == []


def test_bc5cdr(data: Path) -> None:
    names = [f"tag-DictCore-{kind}{exact}" for kind in ("Chemical", "Disease") for exact in ("", "-Exact")]
    sources = chosen(load_sources(EXAMPLES / "bc5cdr" / "sources.py"), names)
    with pytest.warns(tagweave.TagweaveWarning, match="relations"):
        raw = tagweave.read(data / "raw/bc5cdr/dev.pubtator.gz", tokenizer="spacy")
    assert far_off(source_scores(annotate(raw, sources)), given_scores(data, "bc5cdr"), names) == []


def test_laptop_review(data: Path, tmp_path: Path) -> None:
    for path in (EXAMPLES / "laptop_review" / "sources.toml", *(data / "raw/dictionaries").glob("laptop-review-*")):
        shutil.copy(path, tmp_path)
    names = ["tag-CoreDictionary", "link-ExtractedPhrase"]
    sources = chosen(load_sources(tmp_path / "sources.toml"), names)
    sources = [source for source in sources if source.pipeline is None]
    for source in sources:
        if source.name == "link-ExtractedPhrase":
            source.of = tuple(other.name for other in sources if other.name.startswith("tag-"))  # type: ignore[attr-defined]
    with pytest.warns(tagweave.TagweaveWarning, match="inside a token"):
        raw = tagweave.read(data / "raw/laptop-review/train.xml.gz", tokenizer="spacy")
    held_out = set((EXAMPLES / "laptop_review" / "dev_ids.txt").read_text(encoding="utf-8").split())
    dev = raw.subset(np.flatnonzero([name in held_out for name in raw.id_list]))
    assert len(dev) == 609
    assert far_off(source_scores(annotate(dev, sources)), given_scores(data, "laptop-review"), names) == []


def test_conll_2003(data: Path) -> None:
    sources = [
        source for source in load_sources(EXAMPLES / "conll2003" / "sources.py") if "crunchbase" not in source.name
    ]
    for source in sources:
        if hasattr(source, "of") and isinstance(source.of, tuple):
            source.of = tuple(name for name in source.of if "crunchbase" not in name)
    raw = tagweave.read(data / "raw/conll-2003/dev.conll.gz")
    few: Corpus = raw.subset(np.arange(300))
    votes = annotate(few, sources)
    speaking = [name for name, column in votes.sources.items() if len(column)]  # type: ignore[arg-type]
    assert len(speaking) >= 12
    scores = source_scores(votes)
    assert scores["edited_core_web_sm"].f1 > 0.4
    assert scores["misc_detector"].precision > 0.8

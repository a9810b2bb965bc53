"""Shards in other processes: label models learn from them what they learn in one process, to the last bit."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from stored.test_corpora import COARSE, documents
from tagweave.corpus import Corpus
from tagweave.errors import DataError, ShardError, UsageError
from tagweave.formats import write
from tagweave.label_models import LABEL_MODELS, LabelModel, create_label_model
from tagweave.stored import StoredCorpus
from tagweave.stored.labelling import read_parts
from tagweave.stored.spread import Crew, SpreadCorpus, spread_crew


def write_shards(folder: Path) -> list[Path]:
    """Three shards and an empty one, of which each knows only its own types and sources."""
    folder.mkdir()
    every = list(documents())
    for name, chosen in (("a", slice(0, 20)), ("b", slice(0, 0)), ("c", slice(20, 50)), ("d", slice(50, 90))):
        write(Corpus.from_documents(every[chosen], coarse=COARSE), folder / f"{name}.jsonl")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_shards(tmp_path_factory.mktemp("spread") / "in")


@pytest.fixture(scope="module")
def crew(shards: list[Path]) -> Iterator[Crew]:
    with spread_crew(shards, 2) as found:
        yield found


def stored(shards: list[Path]) -> StoredCorpus:
    """The same in this process."""
    return StoredCorpus(chain.from_iterable(read_parts(shard, coarse=COARSE) for shard in shards))


def assert_same(one: LabelModel, other: LabelModel) -> None:
    assert (one.types_, one.sources_, one.links_, one.history_) == (
        other.types_, other.sources_, other.links_, other.history_,
    )  # fmt: skip
    for name, value in one.parameters().items():
        np.testing.assert_array_equal(value, other.parameters()[name], err_msg=name)


@pytest.mark.parametrize("name", sorted(name for name, model in LABEL_MODELS.items() if model.adds_up))
def test_a_model_learns_the_same(crew: Crew, shards: list[Path], name: str) -> None:
    here = create_label_model(name, {}).fit(stored(shards))
    there = create_label_model(name, {}).fit(SpreadCorpus(crew, COARSE))
    assert here.sources_ == ("good", "fair", "poor", "late")
    assert_same(here, there)


def test_a_model_with_known_sources_learns_the_same(crew: Crew, shards: list[Path]) -> None:
    settings = {"source_priors": {"good": (0.9, 0.9), "poor": (0.6, 0.5)}}
    here = create_label_model("hmm", settings).fit(stored(shards).select_sources(["poor", "good"]))
    there = create_label_model("hmm", settings).fit(SpreadCorpus(crew, COARSE).select_sources(["poor", "good"]))
    assert here.sources_ == ("poor", "good")
    assert_same(here, there)


def test_what_is_said_of_it(crew: Crew, shards: list[Path]) -> None:
    corpus = SpreadCorpus(crew, COARSE)
    assert (len(corpus), corpus.frame.documents, corpus.types) == (3, 90, ("LOC", "PER"))
    assert list(corpus.each(len)) == [20, 30, 40]
    assert corpus.first(len) == 20
    assert corpus.split_group == "g12"
    with pytest.raises(DataError, match="documents of group 'g12' are not all in one part"):
        create_label_model("hmm", {"silence": "document"}).fit(corpus)
    with pytest.raises(UsageError, match="no source is called 'goof'"):
        corpus.select_sources(["goof"])
    with pytest.raises(UsageError, match="swellshark model learns from all documents at once"):
        create_label_model("swellshark", {}).fit(corpus)
    with pytest.raises(TypeError):
        list(corpus)


def fatal(flag: Path, part: Corpus) -> int:
    """Kills its process at the last shard, once."""
    if len(part) == 40 and flag.exists():
        flag.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return len(part)


def always_fatal(part: Corpus) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def wrong(part: Corpus) -> int:
    return [][len(part)]


def test_a_worker_that_is_killed_is_replaced_with_all_that_it_had(shards: list[Path], tmp_path: Path) -> None:
    here = create_label_model("naive-bayes", {}).fit(stored(shards))
    with spread_crew(shards, 2) as crew:
        corpus = SpreadCorpus(crew, COARSE)
        (tmp_path / "flag").touch()
        assert list(corpus.each(partial(fatal, tmp_path / "flag"))) == [20, 30, 40]
        assert not (tmp_path / "flag").exists()
        assert_same(here, create_label_model("naive-bayes", {}).fit(corpus))
        with pytest.raises(ShardError, match=r"shard '[acd]\.jsonl': its worker died 3 times \(signal SIGKILL\)"):
            list(corpus.each(always_fatal))
        with pytest.raises(ShardError, match=r"shard 'a\.jsonl': IndexError: list index out of range \(.*test_spread"):
            list(corpus.each(wrong))


def test_an_error_in_the_data_names_shard_and_line(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "in")
    shards[2].write_text("{}\n")
    with spread_crew(shards) as crew, pytest.raises(DataError, match=r"shard 'c\.jsonl': .*c\.jsonl, line 1"):
        SpreadCorpus(crew)

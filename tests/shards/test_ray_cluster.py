"""`map_shards` on a Ray cluster of two workers that is started here."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import tiny_encoder
from shards.shard_functions import DyingRows, Logged, upper
from stored.test_corpora import COARSE
from stored.test_spread import assert_same, fatal, stored, write_shards
from tagweave.corpus import Corpus, Document
from tagweave.encoder import embeddings
from tagweave.encoder.embeddings import embed
from tagweave.errors import MissingExtraError, ShardError, UsageError
from tagweave.label_models import create_label_model
from tagweave.shards import map_shards
from tagweave.stored.spread import SpreadCorpus, spread_crew

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'tagweave[ray]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # else workers get no time on a machine that does other things too
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        ray.init(
            address="local", num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False,
            logging_level="ERROR", object_store_memory=80 * 1024 * 1024,
        )  # fmt: skip
        yield
        ray.shutdown()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "in").mkdir()
    paths = [tmp_path / "in" / f"{name}.txt" for name in "abcd"]
    for path in paths:
        path.write_text(f"{path.stem} words\n")
    return paths


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_bytes_are_those_of_the_local_engine_also_when_a_worker_is_killed(
    cluster: None, files: list[Path], tmp_path: Path
) -> None:
    function = Logged(str(tmp_path / "log"), suffix="!")
    map_shards(function, files, tmp_path / "local")
    (tmp_path / "log").unlink()
    (tmp_path / "die-b.txt").touch()
    map_shards(function, files, tmp_path / "ray", engine="ray", processes=2)
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    assert (tmp_path / "log").read_text().split().count("b.txt") == 2


def test_label_models_learn_what_they_learn_here_also_when_a_worker_is_killed(cluster: None, tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "in")
    here = create_label_model("hmm", {"iterations": 3}).fit(stored(shards))
    with spread_crew(shards, 2, engine="ray") as crew:
        corpus = SpreadCorpus(crew, COARSE)
        (tmp_path / "flag").touch()
        assert list(corpus.each(partial(fatal, tmp_path / "flag"))) == [20, 30, 40]
        assert not (tmp_path / "flag").exists()
        assert_same(here, create_label_model("hmm", {"iterations": 3}).fit(corpus))


def test_embeddings_are_those_of_the_local_engine_also_when_a_worker_is_killed(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["Orlin", "visited", "Vestara"]
    encoder = tiny_encoder.build(tmp_path / "tiny", words)
    corpus = Corpus.from_documents([Document(f"d{i}", [words[k % 3] for k in range(i % 7)]) for i in range(60)])
    monkeypatch.setattr(embeddings, "PART", 40)
    embed(corpus, encoder, cache=tmp_path / "local", processes=2)
    monkeypatch.setattr(embeddings, "_PartRows", partial(DyingRows, tmp_path / "flag"))
    (tmp_path / "flag").touch()
    embed(corpus, encoder, cache=tmp_path / "ray", processes=2, engine="ray")
    assert not (tmp_path / "flag").exists()
    (one,), (other,) = (list((tmp_path / name).iterdir()) for name in ("local", "ray"))
    assert (one.name, content(one)) == (other.name, content(other))


def test_a_death_names_the_shard(cluster: None, files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "always-b.txt").touch()
    function = Logged(str(tmp_path / "log"))
    with pytest.raises(ShardError, match=r"shard 'b\.txt': its worker died \(its worker process has died, "):
        map_shards(function, files[1:2], tmp_path / "out", engine="ray", retries=0)


def test_a_cluster_that_is_too_small_is_not_waited_for(cluster: None, files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the Ray cluster has 2 CPUs, and 3 workers need 3"):
        map_shards(upper, files, tmp_path / "out", engine="ray", processes=3)


def test_without_ray_the_extra_is_named(files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tagweave\[ray\]'"):
        map_shards(upper, files, tmp_path / "out", engine="ray")

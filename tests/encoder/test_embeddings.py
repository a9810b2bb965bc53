"""Embeddings: one row a word, cached on disk."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import tiny_encoder
from tagweave.corpus import Corpus, Document
from tagweave.encoder import Encoder, embeddings
from tagweave.encoder.embeddings import embed
from tagweave.errors import StorageError, UsageError
from tagweave.shards import Manifest, map_shards
from tagweave.writing import lock_of

WORDS = ["Orlin", "visited", "Vestara", "yesterday", "."]


def corpus_of(*documents: list[str]) -> Corpus:
    return Corpus.from_documents([Document(f"d{i}", tokens) for i, tokens in enumerate(documents)], types=["PER"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("layer", [-1, 1])
def test_rows_are_pooled_from_the_pieces(tiny: str, pooling: embeddings.Pooling, layer: int) -> None:
    tokens = ["Orlin", "visits", "Vestaras", "."]
    rows = embed(corpus_of(tokens), tiny, pooling=pooling, layers=(layer,))
    encoder = Encoder.load(tiny)
    inputs = encoder.tokenizer(tokens, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        hidden = encoder.model()(**inputs, output_hidden_states=True).hidden_states[layer][0].numpy()
    of_word = [[i for i, word in enumerate(inputs.word_ids()) if word == w] for w in range(len(tokens))]
    expected = np.stack([hidden[p].mean(axis=0) if pooling == "mean" else hidden[p[0]] for p in of_word])
    np.testing.assert_allclose(rows, expected, atol=2e-3)


def test_every_word_has_a_finite_row(tiny: str) -> None:
    rows = embed(corpus_of(["Orlin", "\u200b", "Vestara"], [], ["\ue000"], ["a" * 30_000]), tiny)
    assert rows.shape == (5, 32)
    assert np.isfinite(rows).all()
    alone = embed(corpus_of(["\u200b"]), tiny)
    assert np.isfinite(alone).all()


def test_rows_do_not_depend_on_other_documents(tiny: str) -> None:
    documents = [["Orlin", "."], ["Vestara"] * 30, ["yesterday", "visited"]]
    together = embed(corpus_of(*documents), tiny)
    for first, last, tokens in zip([0, 2, 32], [2, 32, 34], documents, strict=True):
        np.testing.assert_allclose(embed(corpus_of(tokens), tiny), together[first:last], atol=2e-3)


def test_a_long_document_is_covered(tiny: str) -> None:
    tokens = [WORDS[i % 5] for i in range(500)]
    rows = embed(corpus_of(tokens), tiny)
    assert rows.shape == (500, 32)
    assert (np.abs(rows).sum(axis=1) > 0).all()


def test_the_lock_of_a_run_that_was_killed_at_its_end_goes(tiny: str, cache: Path) -> None:
    rows = embed(corpus_of(["Orlin"]), tiny)
    [place] = cache.iterdir()
    lock_of(place).touch()
    np.testing.assert_array_equal(embed(corpus_of(["Orlin"]), tiny), rows)
    assert list(cache.iterdir()) == [place]


def test_no_words_no_rows(tiny: str) -> None:
    assert embed(corpus_of([]), tiny).shape == (0, 32)


def test_the_second_call_reads_the_file(tiny: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(["Orlin", "."])
    first = np.array(embed(corpus, tiny))
    monkeypatch.setattr(Encoder, "model", None)
    assert np.array_equal(embed(corpus, tiny), first)
    part = corpus_of(["."], ["Orlin", "."], ["."]).subset([1])
    assert np.array_equal(embed(part, tiny), first)
    assert len(list(cache.iterdir())) == 1


def test_other_tokens_borders_or_settings_have_files_of_their_own(tiny: str, cache: Path) -> None:
    embed(corpus_of(["ab", "c"]), tiny)
    embed(corpus_of(["a", "bc"]), tiny)
    embed(corpus_of(["ab"], ["c"]), tiny)
    embed(corpus_of(["ab", "c"]), tiny, layers=(1,))
    embed(corpus_of(["ab", "c"]), tiny, pooling="first")
    assert len(list(cache.iterdir())) == 5


@pytest.mark.parametrize("damage", ["emptied", "cut", "flipped", "missing"])
@pytest.mark.parametrize("name", ["rows.npy", "manifest.json"])
def test_what_is_damaged_is_computed_again(tiny: str, cache: Path, name: str, damage: str) -> None:
    corpus = corpus_of(["Orlin", "."])
    rows = np.array(embed(corpus, tiny))
    (place,) = cache.iterdir()
    content = (place / name).read_bytes()
    flipped = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
    if damage == "missing":
        (place / name).unlink()
    else:
        (place / name).write_bytes({"emptied": b"", "cut": content[:-1], "flipped": flipped}[damage])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert np.array_equal(embed(corpus, tiny), rows)
    assert any("made anew" in str(warning.message) for warning in told) or (name, damage) == ("manifest.json", "cut")
    assert np.array_equal(embed(corpus, tiny), rows)


def test_a_layer_that_does_not_exist(tiny: str) -> None:
    with pytest.raises(UsageError, match="no layer 9, only 0 to 2"):
        embed(corpus_of(["."]), tiny, layers=(9,))


def test_an_argument_goes_before_the_variable(tiny: str, tmp_path: Path, cache: Path) -> None:
    embed(corpus_of(["."]), tiny, cache=tmp_path / "other")
    assert len(list((tmp_path / "other").iterdir())) == 1
    assert not cache.exists()


def test_a_failed_computation_leaves_no_file(tiny: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(embeddings, "_rows", fail)
    with pytest.raises(KeyboardInterrupt):
        embed(corpus_of(["."]), tiny)
    assert list(cache.iterdir()) == []


def test_too_little_space_is_said_before(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    with pytest.raises(StorageError, match="space"):
        embed(corpus_of(["."]), tiny)


def test_an_unknown_pooling_is_an_error(tiny: str) -> None:
    with pytest.raises(UsageError, match="mean"):
        embed(corpus_of(["."]), tiny, pooling="men")  # type: ignore[arg-type]


def test_the_default_encoder_is_384_wide() -> None:
    rows = embed(corpus_of(["Orlin", "\u200b", "Vestara"]))
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float16
    assert not rows.flags.writeable


def test_layers_stand_side_by_side(tiny: str) -> None:
    corpus = corpus_of(["ab", "c"])
    both = embed(corpus, tiny, layers=(1, -1))
    np.testing.assert_array_equal(both, np.hstack([embed(corpus, tiny, layers=(n,)) for n in (1, -1)]))


MANY = [[WORDS[(i + k) % 5] for k in range(i % 7)] for i in range(40)]


def test_workers_make_the_file_that_is_looked_for(tiny: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "PART", 30)
    corpus = corpus_of(*MANY)
    here = np.array(embed(corpus, tiny, cache=cache.parent / "other"))
    there = np.array(embed(corpus, tiny, processes=2))
    np.testing.assert_allclose(here, there, atol=2e-3)
    (place,) = cache.iterdir()
    monkeypatch.setattr(Encoder, "model", None)
    assert np.array_equal(embed(corpus, tiny), there)
    assert sorted(path.name for path in place.iterdir()) == ["manifest.json", "rows.npy"]


def test_parts_that_are_done_outlive_a_run(tiny: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "PART", 30)
    corpus = corpus_of(*MANY)
    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "new_folder", None)
        with pytest.raises(TypeError):
            embed(corpus, tiny, processes=2)
    (aside,) = cache.glob("*.parts")
    made = {path.name: path.stat().st_ino for path in aside.glob("rows/*.npy")}
    assert sorted(made) == [f"part-{number:05d}.npy" for number in range(4)]
    (aside / "rows" / "part-00002.npy").write_bytes(b"damaged")
    again: dict[str, int] = {}

    def listed(*arguments: object, **settings: object) -> Manifest:
        found = map_shards(*arguments, **settings)  # type: ignore[arg-type]
        again.update({path.name: path.stat().st_ino for path in found.paths})
        return found

    monkeypatch.setattr(embeddings, "map_shards", listed)
    rows = embed(corpus, tiny, processes=2)
    assert {name for name in made if again[name] != made[name]} == {"part-00002.npy"}
    np.testing.assert_allclose(rows, embed(corpus, tiny, cache=cache.parent / "other"), atol=2e-3)
    assert not aside.exists()


def test_another_encoder_under_the_same_name_is_refused(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = embeddings._Recipe(tiny, "another", (-1,), "mean", "float32")
    with pytest.raises(StorageError, match="is another one than where the command was given"):
        embeddings._PartRows(Path("words.arrow"), recipe).load()


def test_an_unknown_engine_is_an_error(tiny: str, cache: Path) -> None:
    with pytest.raises(UsageError, match="no engine is called 'rya'"):
        embed(corpus_of(["."]), tiny, engine="rya")
    assert not cache.exists()

"""Encoders by name, pieces of words, batches."""

from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_encoder
from tagweave.encoder import encoder as encoder_module
from tagweave.encoder.encoder import (
    PIECES_PER_WORD,
    Encoder,
    _cpu_has_bfloat16,
    locate,
    precision,
    require_bert,
)
from tagweave.encoder.windows import Windows
from tagweave.errors import MissingExtraError, StorageError, UsageError

WORDS = ["Orlin", "visited", "Vestara", "yesterday", "."]
VANISHING = ["\u200b", "\u200d", "\ufeff", "\u00ad", "\ue000", "\ufffd", "\x07", ""]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder.load(tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS))


def test_default_is_found_in_its_package() -> None:
    folder = locate("default")
    assert (folder / "model.safetensors").is_file()
    encoder = Encoder.load("default")
    assert encoder.limit == 510
    assert encoder.added == 2


def test_every_word_has_a_piece_also_one_that_vanishes(tiny: Encoder) -> None:
    words = [word for vanishing in VANISHING for word in ("Orlin", vanishing, "Vestara")]
    pieces = tiny.pieces(words)
    assert pieces.counts.tolist() == [1] * len(words)
    assert pieces.vanished.tolist() == [False, True, False] * len(VANISHING)
    assert (pieces.ids[1::3] == tiny.tokenizer.unk_token_id).all()
    assert len(set(pieces.ids[0::3])) == len(set(pieces.ids[2::3])) == 1


@pytest.mark.parametrize("word", ["a" * 30_000, "contact" * 800, "ab" * 40])
def test_a_giant_word_is_bounded(tiny: Encoder, word: str) -> None:
    pieces = tiny.pieces(["Orlin", word, "Vestara"])
    assert pieces.counts.max() <= PIECES_PER_WORD
    assert pieces.counts[[0, 2]].tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["wordpiece", "byte_level", "unigram"])
def test_pieces_are_those_of_the_tokenizer(tmp_path: Path, kind: tiny_encoder.Kind) -> None:
    encoder = Encoder.load(tiny_encoder.build(tmp_path, WORDS, kind))
    words = ["Orlin", "and", "Orlin's", "yesterdays", "."]
    expected = encoder.tokenizer(words, is_split_into_words=True)
    pieces = encoder.pieces(words)
    assert [*encoder.prefix, *pieces.ids, *encoder.suffix] == expected["input_ids"]
    word_of_piece = np.repeat(np.arange(len(words)), pieces.counts)
    assert [None, *word_of_piece, None] == expected.word_ids()


def test_a_byte_level_tokenizer_sees_words_as_inside_text(tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_encoder.build(tmp_path, WORDS, "byte_level"))
    first = encoder.pieces(["Vestara", "Vestara"])
    assert encoder.tokenizer.convert_ids_to_tokens(first.ids.tolist()) == ["ĠVestara", "ĠVestara"]


def test_a_slow_tokenizer_is_asked_word_by_word(tmp_path: Path) -> None:
    from transformers import ByT5Tokenizer

    name = tiny_encoder.build(tmp_path, WORDS)
    (tmp_path / "tokenizer.json").unlink()
    ByT5Tokenizer().save_pretrained(tmp_path)
    encoder = Encoder.load(name)
    assert not encoder.tokenizer.is_fast
    assert encoder.pieces(["abc", "", "d"]).counts.tolist() == [3, 1, 1]
    assert encoder.pieces(["abc"]).ids.tolist() == encoder.tokenizer.encode("abc", add_special_tokens=False)


def test_truncation_stored_with_a_tokenizer_has_no_effect() -> None:
    assert Encoder.load("default").pieces(["word"] * 1000).counts.tolist() == [1] * 1000


def test_a_batch_is_laid_out_as_the_tokenizer_does_it(tiny: Encoder) -> None:
    words = ["Orlin", "visited", "Vestaras", ".", "Orlin", "."]
    offsets = np.array([0, 4, 6])
    pieces = tiny.pieces(words)
    windows = Windows.cut(pieces.counts, offsets, size=16, overlap=0)
    batch = tiny.batch(pieces, windows, np.array([1, 0]))
    expected = tiny.tokenizer([words[4:], words[:4]], is_split_into_words=True, padding=True, return_tensors="pt")
    assert torch.equal(batch.inputs["input_ids"], expected["input_ids"])
    assert torch.equal(batch.inputs["attention_mask"], expected["attention_mask"])
    assert batch.words.tolist() == [4, 5, 0, 1, 2, 3]
    first = batch.inputs["input_ids"].flatten()[batch.positions]
    assert first.tolist() == pieces.ids[pieces.offsets[batch.words]].tolist()
    assert batch.counts.tolist() == pieces.counts[batch.words].tolist()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        locate(str(tmp_path / "nothing"))


def test_a_name_that_nobody_has_says_where_was_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match=r"hub or its cache .*download") as caught:
        locate("nobody/has-this")
    assert constants.HF_HUB_CACHE in str(caught.value)


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"config\.json"):
        locate(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(StorageError, match="safetensors"):
        locate(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be (loaded|read)"):
        Encoder.load(str(tmp_path))


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tagweave\[bert\]'"):
        require_bert()
    with pytest.raises(MissingExtraError, match=r"pip install 'tagweave\[bert\]'"):
        locate("default")


def test_identity_changes_with_the_weights(tmp_path: Path) -> None:
    name = tiny_encoder.build(tmp_path, WORDS)
    before = Encoder.load(name).identity
    assert Encoder.load(name).identity == before
    weights = tmp_path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert Encoder.load(name).identity != before


def test_a_new_head_depends_on_the_seed_only(tiny: Encoder) -> None:
    def head(seed: int) -> torch.Tensor:
        weight: torch.Tensor = tiny.classifier(["O", "B-PER", "I-PER"], seed).classifier.weight
        return weight.detach()

    torch.manual_seed(5)
    first = head(0)
    torch.manual_seed(6)
    assert torch.equal(head(0), first)
    assert not torch.equal(head(1), first)


def test_precision_is_chosen_by_name() -> None:
    cpu = torch.device("cpu")
    assert precision("bfloat16", cpu) is torch.bfloat16
    assert precision("float32", cpu) is torch.float32
    assert precision("auto", cpu) is (torch.bfloat16 if _cpu_has_bfloat16() else torch.float32)
    with pytest.raises(UsageError, match="float16"):
        precision("float16", cpu)  # type: ignore[arg-type]

"""Tiny encoders with random weights, made on the spot: nothing is downloaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
Kind = Literal["wordpiece", "byte_level", "unigram"]


def build(folder: Path, words: Sequence[str], kind: Kind = "wordpiece", positions: int = 64) -> str:
    """Writes an encoder of two layers, 32 wide, whose tokenizer knows the words; returns its name."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from tagweave.encoder.model_folders import quiet

    backend = {"wordpiece": _wordpiece, "byte_level": _byte_level, "unigram": _unigram}[kind](words)
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], SPECIAL, strict=True))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=positions, **names)
    config = BertConfig(
        vocab_size=backend.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
    )
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(1)
        BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


def _finish(backend: Any) -> Any:  # noqa: ANN401
    from tokenizers import processors

    special = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    return backend


def _wordpiece(words: Sequence[str]) -> Any:  # noqa: ANN401
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = sorted({letter for word in words for letter in word} | set("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = dict.fromkeys([*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *words])
    numbers = {piece: number for number, piece in enumerate(vocabulary)}
    backend = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _finish(backend)


def _byte_level(words: Sequence[str]) -> Any:  # noqa: ANN401
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=backend.pre_tokenizer.alphabet(), show_progress=False
    )
    backend.train_from_iterator([" " + " ".join(words)] * 20, trainer)
    return _finish(backend)


def _unigram(words: Sequence[str]) -> Any:  # noqa: ANN401
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=100, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False)
    backend.train_from_iterator([" ".join(words)] * 20, trainer)
    return _finish(backend)

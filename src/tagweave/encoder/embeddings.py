"""Embeddings of words from a frozen encoder: one row a word, kept on disk.

A corpus is cut into parts of whole documents, and what is computed of a part depends on nothing else. So other
processes, on one machine or a cluster, can compute the parts, and the result is kept in the same place.
"""

import hashlib
import os
import shutil
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.encoder import DEFAULT, Batch, Encoder, device, precision
from tagweave.encoder.windows import Windows, batches
from tagweave.errors import StorageError, TagweaveWarning, UsageError, unknown_name
from tagweave.progress import track
from tagweave.shards import map_shards
from tagweave.shards.engines import check_engine
from tagweave.storage import CACHE_VARIABLE, cache_folder, new_folder, verify
from tagweave.writing import lock_of, new_file, only_run

if TYPE_CHECKING:
    import torch

VERSION = 1
"""Part of every key in the cache; raised when the meaning of a row changes."""

Pooling = Literal["mean", "first"]

WINDOW = 256
"""Most pieces in a window."""
OVERLAP = 64
"""Pieces that neighbouring windows of a long document share."""
PART = 50_000
"""Words in a part, more where a document is longer."""
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
    processes: int = 1,
    engine: str = "local",
    address: str = "auto",
) -> NDArray[np.float16]:
    """Embeddings of all words of a corpus.

    Long documents are read in overlapping windows, and each word is taken from where it has most context. A word that
    the tokenizer makes nothing of gets the row of the unknown piece. The result lies in a file that is mapped into
    memory; a second call with the same tokens, encoder and settings opens that file, if nothing has happened to it.
    With several processes, or on a Ray cluster, it is the same file; the parts that are done outlive a run that is
    ended. All of them compute in the number format of this machine, as it is here that the file is looked for.

    Args:
        corpus: only its tokens and where documents end matter.
        encoder: name, see `tagweave.encoder.locate`.
        layers: which hidden layers, side by side in a row: -1 is the last, 0 the input embeddings.
        pooling: `mean` of the word's pieces, or the `first` piece.
        cache: folder of the files; by default `$TAGWEAVE_CACHE` or `~/.cache/tagweave`, and in it `embeddings`. All
            machines of a cluster must see it under the same path.
        processes: how many workers share the work; with one, and the engine `local`, it is done in this process.
        engine, address: as for `tagweave.map_shards`.

    Returns:
        float16 of shape [tokens, width], read-only.

    Raises:
        StorageError: there is not enough space for the file, or a machine has another encoder under this name.
        UsageError: a layer does not exist, or the folder cannot be written, or no cluster runs.
        ShardError: a worker dies again and again.

    Warns:
        TagweaveWarning: what was kept is damaged, and made anew.

    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents([Document("d", ["Oslo", "is", "cold"])])
    >>> embed(corpus).shape
    (3, 384)
    """
    if pooling not in ("mean", "first"):
        raise unknown_name("pooling", pooling, ("mean", "first"))
    check_engine(engine, processes)
    loaded = Encoder.load(encoder)
    folder = (cache_folder("embeddings") if cache is None else Path(cache)).absolute()
    kind = precision("auto", device())
    settings = f"{VERSION} {loaded.identity} {tuple(layers)} {pooling} {WINDOW} {OVERLAP} {kind}"
    place = folder / _key(corpus, settings)
    found = _open(place, len(corpus.tokens))
    if found is not None and not lock_of(place).exists():
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with only_run(place, waits=True):
        found = _open(place, len(corpus.tokens))
        if found is not None:
            return found
        recipe = _Recipe(encoder, loaded.identity, tuple(layers), pooling, str(kind).removeprefix("torch."))
        words = Corpus(corpus.ids, corpus.offsets, corpus.tokens, ())
        here = processes == 1 and engine == "local"
        workers = {} if here else {"processes": processes, "engine": engine, "address": address}
        return _compute(words, loaded, recipe, place, **workers)


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
    corpus: Corpus,
    encoder: Encoder,
    recipe: "_Recipe",
    place: Path,
    **workers: Any,  # noqa: ANN401
) -> NDArray[np.float16]:
    """Compute the rows in this process, or in workers."""
    model: Any = encoder.model()
    depth = int(model.config.num_hidden_layers)
    if beyond := [layer for layer in recipe.layers if not -depth - 1 <= layer <= depth]:
        raise UsageError(
            f"layers: the encoder has no layer {beyond[0]}, only 0 to {depth} and, from the last, -1 and on"
        )
    shape = (len(corpus.tokens), int(model.config.hidden_size) * len(recipe.layers))
    if not shape[0]:
        return np.zeros(shape, np.float16)
    needed, free = 2 * shape[0] * shape[1] * (2 if workers else 1), shutil.disk_usage(place.parent).free
    if needed > free:
        raise StorageError(
            f"the embeddings need {needed / 1e6:.0f} MB of space in {place.parent}, but {free / 1e6:.0f} MB are free. "
            f"Make room, or name another folder in {CACHE_VARIABLE}"
        )
    shutil.rmtree(place, ignore_errors=True)  # if there is anything, it is damaged
    aside = place.with_name(f"{place.name}.parts")
    if workers:
        blocks = _shared(corpus, recipe, aside, **workers)
    else:
        blocks = map(partial(_rows, encoder, model.to(device()), recipe), corpus.batches(PART))
    with new_folder(place) as work:
        rows = np.lib.format.open_memmap(work / _ROWS, "w+", np.float16, shape)
        _claim_space(work / _ROWS)
        first = 0
        for block in blocks:
            rows[first : first + len(block)] = block
            first += len(block)
        rows.flush()
        del rows
    shutil.rmtree(aside, ignore_errors=True)
    found = _open(place, shape[0])
    if found is None:
        raise StorageError(f"{place} was written but cannot be read back")
    return found


def _shared(
    corpus: Corpus,
    recipe: "_Recipe",
    aside: Path,
    **workers: Any,  # noqa: ANN401
) -> Iterator[NDArray[np.float16]]:
    """The rows of each part, which workers compute and keep in a folder until all are there."""
    aside.mkdir(exist_ok=True)
    words, count = aside / "words.arrow", 0
    schema = pa.schema([("tokens", pa.large_list(pa.large_string()))])
    with new_file(words) as handle, pa.ipc.new_file(handle, schema) as writer:
        for part in corpus.batches(PART):
            documents = pa.LargeListArray.from_arrays(pa.array(part.offsets), part.tokens)
            writer.write_batch(pa.record_batch([documents], schema=schema))
            count += 1
    names = [f"part-{number:05d}.npy" for number in range(count)]
    made = map_shards(_PartRows(words, recipe), range(count), aside / "rows", names=names, **workers)
    return (np.load(path, mmap_mode="r", allow_pickle=False) for path in made.paths)


@dataclass(frozen=True)
class _Recipe:
    """How words become rows.

    Attributes:
        encoder: its name.
        identity: of its content.
        layers, pooling: as for `embed`.
        precision: the number format, a name of torch.
    """

    encoder: str
    identity: str
    layers: tuple[int, ...]
    pooling: Pooling
    precision: str


@dataclass(frozen=True)
class _PartRows:
    """Embeds parts of a corpus; each worker loads the encoder once.

    Attributes:
        words: the file of all parts; its folder is named after its content.
        recipe: how it is done.
    """

    words: Path = field(compare=False)
    recipe: _Recipe

    def load(self) -> Callable[[int, Path], None]:
        """What writes the rows of a part, by its number.

        Raises:
            StorageError: the encoder of this machine is another one.
        """
        encoder = Encoder.load(self.recipe.encoder)
        if encoder.identity != self.recipe.identity:
            raise StorageError(
                f"on {socket.gethostname()} the encoder {self.recipe.encoder!r} is another one than where the command "
                "was given. Put the same files there, or name a folder that all machines see"
            )
        model: Any = encoder.model()
        return partial(self._write, encoder, model.to(device()))

    def _write(self, encoder: Encoder, model: Any, number: int, target: Path) -> None:  # noqa: ANN401
        with pa.memory_map(str(self.words)) as mapped:
            documents = pa.ipc.open_file(mapped).get_batch(number).column(0)
            part = Corpus(pa.nulls(len(documents)), documents.offsets.to_numpy(), documents.values, ())
            rows = _rows(encoder, model, self.recipe, part)
        with target.open("wb") as handle:
            np.save(handle, rows, allow_pickle=False)


def _claim_space(path: Path) -> None:
    """Take the space of a file that is mapped into memory: where a disk fills up later, the system kills who writes.

    Raises:
        OSError: there is too little.
    """
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as handle:
            os.posix_fallocate(handle.fileno(), 0, path.stat().st_size)


def _rows(encoder: Encoder, model: Any, recipe: _Recipe, part: Corpus) -> NDArray[np.float16]:  # noqa: ANN401
    """The rows of a part."""
    import torch

    kind: torch.dtype = getattr(torch, recipe.precision)
    pieces = encoder.pieces(part.tokens)
    windows = Windows.cut(pieces.counts, part.offsets, min(WINDOW, encoder.limit), OVERLAP)
    plan = batches(windows.lengths(pieces.offsets) + encoder.added, _BATCH_PIECES)
    rows = np.zeros((len(part.tokens), int(model.config.hidden_size) * len(recipe.layers)), np.float16)
    for chosen in track(plan, "embedding", len(plan)):
        batch = encoder.batch(pieces, windows, chosen)
        inputs = {name: tensor.to(device()) for name, tensor in batch.inputs.items()}
        with torch.no_grad(), torch.autocast(device().type, kind, enabled=kind != torch.float32):
            states = model(**inputs, output_hidden_states=True).hidden_states
        hidden = torch.cat([states[layer].float() for layer in recipe.layers], dim=-1)
        rows[batch.words] = _pool(hidden.flatten(0, 1), batch, recipe.pooling)
    return rows


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

"""What a token classifier says of words: read at the first sub-word piece of each, in windows where texts are long."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tagweave.encoder import Encoder, Precision, WordPieces, device, precision
from tagweave.encoder.frozen import Cut, KeptStates
from tagweave.encoder.windows import Windows, batches
from tagweave.progress import track

if TYPE_CHECKING:
    import torch

_BATCH_PIECES = 4096


def word_logits(
    encoder: Encoder,
    model: "torch.nn.Module",
    pieces: WordPieces,
    windows: Windows,
    chosen: NDArray[np.int64],
    number_format: Precision = "auto",
    kept: KeptStates | None = None,
) -> "tuple[NDArray[np.int64], torch.Tensor]":
    """The words that belong to some windows, and the scores of their labels.

    Args:
        encoder: the tokenizer.
        model: the classifier, see `Encoder.classifier`, on `device()`.
        pieces: of all words.
        windows: over all words.
        chosen: numbers of windows.
        number_format: of the arithmetic.
        kept: what the frozen layers say of the windows, see `states_of`; without it they are computed.

    Returns:
        numbers of words, of shape [words], and float32 scores of shape [words, labels].
    """
    import torch

    where = device()
    kind = precision(number_format, where)
    batch = encoder.batch(pieces, windows, chosen)
    inputs = {name: tensor.to(where) for name, tensor in batch.inputs.items()}
    with torch.autocast(where.type, kind, enabled=kind != torch.float32):
        work = partial(model, **inputs) if kept is None else kept.rest(model, inputs, chosen)
        with _attention(where, kind):
            logits: torch.Tensor = work().logits
    return batch.words, logits.flatten(0, 1)[torch.from_numpy(batch.positions).to(where)].float()


@contextmanager
def _attention(where: "torch.device", kind: "torch.dtype") -> Iterator[None]:
    """Inside the block, attention that learns in bfloat16 on a CPU is two plain products.

    The fused kernel saves memory, but its way back is slow there: without it training is 1.3 to 1.5 times as fast
    (`benchmarks/encoder.py`, beside the bare loop, which has the kernel).
    """
    import torch

    if where.type != "cpu" or kind == torch.float32 or not torch.is_grad_enabled():
        yield
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    flags: Any = torch.backends.cuda  # of all devices, in spite of its name
    before = flags.fp16_bf16_reduction_math_sdp_allowed()
    flags.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        flags.allow_fp16_bf16_reduction_math_sdp(before)


def all_word_logits(
    encoder: Encoder,
    model: Any,  # noqa: ANN401
    words: Any,  # noqa: ANN401
    offsets: NDArray[np.int64],
    *,
    window: int,
    overlap: int,
    number_format: Precision = "auto",
    cut: Cut | None = None,
) -> NDArray[np.float32]:
    """The scores of the labels of all words, of shape [words, labels], computed batch by batch.

    Args:
        encoder: the tokenizer.
        model: the classifier, on `device()`.
        words: all words, a sequence of strings or an Arrow array.
        offsets: where each document starts among them, of shape [documents + 1].
        window: most sub-word pieces in a window; the encoder's own limit where that is lower.
        overlap: pieces that neighbouring windows share.
        number_format: of the arithmetic.
        cut: where the model is cut, if what its lower layers say of the words is to be kept.

    >>> encoder = Encoder.load("default")
    >>> model = encoder.classifier(["O", "B-LOC", "I-LOC"], seed=0).to(device())
    >>> all_word_logits(encoder, model, ["to", "Oslo"], np.array([0, 2]), window=64, overlap=8).shape
    (2, 3)
    """
    import torch

    pieces = encoder.pieces(words)
    windows = Windows.cut(pieces.counts, offsets, min(window, encoder.limit), overlap)
    plan = batches(windows.lengths(pieces.offsets) + encoder.added, _BATCH_PIECES)
    kept = states_of(cut, encoder, pieces, windows, number_format)
    found = np.zeros((len(words), model.config.num_labels), np.float32)
    model.eval()
    for chosen in track(plan, "tagging", len(plan)):
        with torch.no_grad():
            numbers, logits = word_logits(encoder, model, pieces, windows, chosen, number_format, kept)
            found[numbers] = logits.cpu().numpy()
    return found


def states_of(
    cut: Cut | None, encoder: Encoder, pieces: WordPieces, windows: Windows, number_format: Precision
) -> KeptStates | None:
    """What the layers below a cut say of windows; None where there is no cut or nothing is kept any more."""
    return None if cut is None else cut.states(encoder, pieces, windows, precision(number_format, device()))


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities of labels from their scores, row by row.

    >>> softmax(np.array([[0, 0]], np.float32)).tolist()
    [[0.5, 0.5]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=1, keepdims=True)  # type: ignore[no-any-return, unused-ignore]

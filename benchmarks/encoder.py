"""How fast words go through an encoder: embedding, prediction and training beside a bare loop of the same model.

    python benchmarks/encoder.py            # text of ncbi-disease where TAGWEAVE_DATA names the data, else made up
    python benchmarks/encoder.py --small    # seconds, little text

The bare loop calls the model alone, on batches without any padding that lie ready in memory: the pieces of the same
windows, end to end, cut into rows that are as long as a window is on average. Its batch size is the best of those in
the table. Its training step is forward, cross-entropy, backward, clipping and AdamW, with the same layers frozen, and
the fused attention that transformers chooses. What tagweave does has everything else in it: tokenising, windows,
padding, pooling, decoding, soft labels as targets; in bfloat16 it trains without the fused attention, whose way back is
slow on CPUs.

Everything runs on one thread but where the table says so, the ways in turn, the best of all rounds counts; times are
those of the processor (of the clock for two threads), so that others on the machine disturb them little.
"""

import argparse
import copy
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recording import Claim, record
from torch import nn

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.encoder import Encoder, Precision, precision
from tagweave.encoder.embeddings import OVERLAP, PART, WINDOW, _Recipe, _rows
from tagweave.encoder.windows import Windows, batches
from tagweave.evaluation import evaluate
from tagweave.report import Table
from tagweave.tagger import Tagger
from tagweave.tagger.exporting import export
from tagweave.tagger.fitting import Fitting

FORMATS: tuple[Precision, ...] = ("float32", "bfloat16")
SIZES = (1024, 2048, 4096, 8192)
BATCH = 4096
"""Pieces in a batch of embedding and prediction."""
NOTES = (
    "Padding weighs on this little text only, where a batch holds much of it: on all of ncbi-disease it is below 1 %. "
    "The context that neighbouring windows share is in both loops, so the ratios do not count it.",
    "Bfloat16 by autocast is nearly as fast as with weights converted once, and fused and plain attention are about as "
    "fast at these lengths. `torch.compile` gains hardly anything and compiles for a minute or more, so it is not "
    "used. Two threads tell something only where the process may use two processors.",
    "In 8 bits the narrowing products of the feed-forward layers stay in float32. That was chosen among nine ways on "
    "2,500 words at the beginning of dev, where entities agreed to 100 % (88 % with all products rounded); the table "
    "is on the end of dev. The tagger has seen 15,000 words in three epochs, so many of its decisions are close.",
)


@dataclass(frozen=True)
class Text:
    """What is read: `corpus` is for speed, and a tagger learns from `train`; both have labels, `dev` has gold."""

    name: str
    corpus: Corpus
    train: Corpus
    dev: Corpus


def text(small: bool) -> Text:
    """Some documents."""
    words = 300 if small else 1500
    if not small and os.environ.get("TAGWEAVE_DATA"):
        from tagweave.benchmark.datasets import load_dataset
        from tagweave.label_models import MajorityVote

        data = load_dataset(Path(os.environ["TAGWEAVE_DATA"]), "ncbi-disease")
        model = MajorityVote().fit(data.fit)
        labelled = model.predict(_first(data.fit, 10 * words)).select_sources([])
        return Text("ncbi-disease", _first(labelled, words), labelled, _last(data.dev.select_sources([]), 4 * words))
    chance = np.random.default_rng(0)
    forms = ["".join(chance.choice(list("aeiourstln"), chance.integers(2, 10))) for _ in range(words)]
    documents, done = [], 0
    while done < words:
        tokens = [forms[i] for i in chance.zipf(1.3, int(chance.integers(80, 350))) % len(forms)]
        starts = np.flatnonzero(chance.random(len(tokens)) < 0.05)
        documents.append(Document(f"d{done}", tokens, entities=[Span(int(i), int(i) + 1, "X") for i in starts]))
        done += len(tokens)
    corpus = Corpus.from_documents(documents)
    return Text("made-up text", corpus, corpus, corpus)


def _first(corpus: Corpus, words: int) -> Corpus:
    return corpus.subset(np.arange(int(np.searchsorted(corpus.offsets, words))))


def _last(corpus: Corpus, words: int) -> Corpus:
    """Documents at the end: what is rounded to 8 bits was decided on those at the beginning of dev."""
    first = int(np.searchsorted(corpus.offsets, corpus.offsets[-1] - words))
    return corpus.subset(np.arange(first, len(corpus)))


def best(
    ways: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """The least seconds of each way, taken in turn."""
    found = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            start = clock()
            way()
            found[name] = min(found[name], clock() - start)
    return found


def packed(encoder: Encoder, corpus: Corpus, window: int, overlap: int, size: int) -> list[torch.Tensor]:
    """The pieces of all windows in full rectangles of about so many pieces, and one that holds what is left."""
    pieces = encoder.pieces(corpus.tokens)
    windows = Windows.cut(pieces.counts, corpus.offsets, min(window, encoder.limit), overlap)
    rows = [
        np.concatenate([encoder.prefix, pieces.ids[pieces.offsets[first] : pieces.offsets[last]], encoder.suffix])
        for first, last in zip(windows.first, windows.last, strict=True)
    ]
    stream = np.concatenate(rows).astype(np.int64)
    width = max(1, round(len(stream) / len(rows)))
    full = torch.from_numpy(stream[: len(stream) // width * width].reshape(-1, width))
    found = list(full.split(max(1, size // width)))
    rest = stream[len(full) * width :]
    return [*found, *([torch.from_numpy(rest)[None]] if len(rest) else [])]


def run(model: nn.Module, data: Sequence[torch.Tensor], kind: torch.dtype) -> None:
    """The bare loop."""
    with torch.no_grad(), torch.autocast("cpu", kind, enabled=kind != torch.float32):
        for ids in data:
            model(input_ids=ids)


def train(model: nn.Module, data: Sequence[torch.Tensor], kind: torch.dtype) -> None:
    """The bare training loop."""
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    for ids in data:
        with torch.autocast("cpu", kind, enabled=kind != torch.float32):
            logits = model(input_ids=ids).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.flatten() % logits.shape[2]).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()


def training(corpus: Corpus, kind: Precision) -> tuple[Fitting, Callable[[], None]]:
    """A training, and one epoch of it without what is done around epochs."""
    fitting = Fitting(Tagger(precision=kind, epochs=10**6, empty_share=1.0), corpus, None, None)

    def epoch() -> None:
        for step in fitting._loop:
            if step.epoch_ends:
                break

    return fitting, epoch


def ratios(data: Text, kind: Precision, rounds: int, sizes: Sequence[int]) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of everything in one number format; and those of the bare loop by batch size."""
    encoder, corpus, dtype = Encoder.load("default"), data.corpus, precision(kind, torch.device("cpu"))
    body = encoder.model()
    plain, plain_epoch = training(corpus, kind)
    kept, kept_epoch = training(corpus, kind)
    bare, _ = training(corpus, kind)
    model, tagger = bare._tagger.model_, Tagger(precision=kind, epochs=1).fit(corpus)
    steps = packed(encoder, corpus, tagger.window, tagger.overlap, tagger.batch_windows * tagger.window)
    by_size = {size: packed(encoder, corpus, WINDOW, OVERLAP, size) for size in sizes}
    bare_sizes = best({str(size): lambda s=size: run(body, by_size[s], dtype) for size in sizes}, rounds)
    size = int(min(bare_sizes, key=lambda name: bare_sizes[name]))
    labels = packed(encoder, corpus, tagger.window, tagger.overlap, size)
    unlabelled = corpus.with_entities(None)
    recipe = _Recipe(encoder.name, encoder.identity, (-1,), "mean", str(dtype).removeprefix("torch."))

    def embedded() -> None:
        for part in corpus.batches(PART):
            _rows(encoder, body, recipe, part)

    with kept._keeping():
        kept_epoch()
        found = best(
            {
                "embedding": embedded,
                "embedding, bare": lambda: run(body, by_size[size], dtype),
                "prediction": lambda: tagger.predict(unlabelled),
                "prediction, bare": lambda: run(tagger.model_, labels, dtype),
                "training": plain_epoch,
                "training, kept": kept_epoch,
                "training, bare": lambda: train(model, steps, dtype),
            },
            rounds,
        )
    return found, bare_sizes


def waste(data: Text, tagger: Tagger, size: int) -> Table:
    """How many of the pieces that are computed are those of words, each once."""
    encoder, corpus = Encoder.load("default"), data.corpus
    pieces = encoder.pieces(corpus.tokens)
    rows = []
    for name, window, overlap in (("embedding", WINDOW, OVERLAP), ("prediction", tagger.window, tagger.overlap)):
        windows = Windows.cut(pieces.counts, corpus.offsets, min(window, encoder.limit), overlap)
        lengths = windows.lengths(pieces.offsets)
        whole = lengths + encoder.added
        for plan_name, plan in (
            (name, batches(whole, size)),
            ("training", batches(whole, tagger.batch_pieces, tagger.batch_windows, np.random.default_rng(0))),
        ):
            if plan_name != "training" or name == "prediction":
                computed = sum(len(batch) * whole[batch].max() for batch in plan)
                rows.append((plan_name, len(windows), *(f"{100 * part / computed:.1f}" for part in (
                    len(pieces.ids), lengths.sum() - len(pieces.ids), encoder.added * len(windows),
                    computed - whole.sum()))))  # fmt: skip
    return Table(
        "Of the pieces that are computed, %",
        ("for", "windows", "words, each once", "context of neighbours", "beginnings and ends", "padding"),
        tuple(rows),
    )


def parts(data: Text, kind: Precision, rounds: int) -> Table:
    """What prediction is made of."""
    tagger = Tagger(precision=kind, epochs=1).fit(data.corpus)
    encoder, corpus = tagger.encoder_, data.corpus
    pieces = encoder.pieces(corpus.tokens)
    windows = tagger._windows(pieces, corpus.offsets)
    plan = batches(windows.lengths(pieces.offsets) + encoder.added, BATCH)
    outputs = tagger._outputs_of(corpus)
    found = best(
        {
            "tokenising": lambda: encoder.pieces(corpus.tokens),
            "windows and batches": lambda: [encoder.batch(pieces, windows, chosen) for chosen in plan],
            "decoding": lambda: tagger._read(corpus.offsets, outputs),
            "all": lambda: tagger.predict(corpus),
        },
        rounds,
    )
    return Table(
        f"What prediction is made of, {kind}",
        ("part", "ms", "%"),
        tuple((name, round(1000 * s, 1), round(100 * s / found["all"], 1)) for name, s in found.items()),
    )


def settings(data: Text, rounds: int, small: bool) -> Table:
    """Other ways to run the model, bare."""
    encoder = Encoder.load("default")
    ids = packed(encoder, data.corpus, 160, 32, 2048)
    plain, eager = encoder.model(), encoder.model()
    eager.set_attn_implementation("eager")  # type: ignore[operator]
    ways: dict[str, tuple[Any, torch.dtype, int]] = {}
    for kind in FORMATS:
        dtype = precision(kind, torch.device("cpu"))
        ways |= {f"sdpa, {kind}": (plain, dtype, 1), f"eager, {kind}": (eager, dtype, 1)}
        half = encoder.model().to(dtype)
        if dtype != torch.float32:
            ways[f"sdpa, weights in {kind}"] = (half, torch.float32, 1)
        if not small and dtype != torch.float32:
            ways[f"sdpa, {kind}, torch.compile"] = (torch.compile(plain, dynamic=True), dtype, 1)
        ways[f"sdpa, {kind}, 2 threads"] = (plain, dtype, 2)
    rows = []
    for name, (model, dtype, threads) in ways.items():
        torch.set_num_threads(threads)
        start = time.perf_counter()
        run(model, ids, dtype)
        first = time.perf_counter() - start
        clock = time.process_time if threads == 1 else time.perf_counter
        seconds = best({"": lambda m=model, d=dtype: run(m, ids, d)}, rounds, clock)[""]
        torch.set_num_threads(1)
        rows.append((name, round(sum(part.numel() for part in ids) / seconds), round(first, 1)))
    return Table("Ways to run the model, bare", ("way", "pieces a second", "first pass, s"), tuple(rows))


def agreement(data: Text, rounds: int) -> tuple[Table, list[Claim]]:
    """One tagger in several forms: how fast it labels, and how far it says the same as in float32."""
    tagger = Tagger(precision="bfloat16", epochs=3).fit(data.train)
    tagger = _as(tagger, "float32")
    forms = {"torch, float32": tagger, "torch, bfloat16": _as(tagger, "bfloat16")}
    with tempfile.TemporaryDirectory() as folder:
        for name, int8 in (("ONNX Runtime, float32", False), ("ONNX Runtime, int8", True)):
            export(tagger, Path(folder) / name, int8=int8)
            forms[name] = Tagger.load(Path(folder) / name)
        sizes = {name: sum(path.stat().st_size for path in (Path(folder) / name).iterdir()) / 1e6
                 for name in list(forms)[2:]}  # fmt: skip
    corpus = data.dev.with_entities(None)
    found: dict[str, Corpus] = {}
    seconds = best({name: lambda n=name: found.update({n: forms[n].predict(corpus)}) for name in forms}, rounds)
    first, *_ = found.values()
    rows, speed = [], seconds["torch, float32"]
    for name, labelled in found.items():
        f1 = [100 * evaluate(gold, labelled, bootstrap=0).f1 for gold in (first, data.dev)]
        apart = np.abs(labelled.soft_labels.probabilities - first.soft_labels.probabilities)
        row = (
            name,
            round(len(corpus.tokens) / seconds[name]),
            f"{speed / seconds[name]:.2f}",
            round(f1[0], 2),
            f"{apart.max():.1e}",
            f"{apart.mean():.1e}",
            round(f1[1], 2),
            round(sizes.get(name, 0)) or None,
        )
        rows.append(row)
    heads = (
        "form",
        "words a second",
        "times float32",
        "F1 against float32",
        "largest difference of a probability",
        "mean difference",
        "F1 on dev",
        "megabytes",
    )
    claims = [
        Claim("prediction by ONNX Runtime in int8", speed / seconds["ONNX Runtime, int8"], "times", None, "higher",
              "torch in float32"),
        Claim("prediction in bfloat16", speed / seconds["torch, bfloat16"], "times", None, "higher",
              "torch in float32"),
    ]  # fmt: skip
    return Table(f"One tagger in several forms, dev of {data.name}", heads, tuple(rows)), claims


def _as(tagger: Tagger, kind: Precision) -> Tagger:
    other = copy.copy(tagger)
    other.precision = kind
    return other


def main() -> None:
    """Measure, and record what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="seconds, on little text")
    parser.add_argument("--rounds", type=int, default=2, help="how often everything is measured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds = 1 if options.small else options.rounds
    data = text(options.small)
    sizes = SIZES[:2] if options.small else SIZES
    found = {kind: ratios(data, kind, rounds, sizes) for kind in FORMATS}
    words = len(data.corpus.tokens)
    rows = [
        (name, kind, round(words / seconds[name]), round(words / seconds[f"{name}, bare".replace(", kept", "")]),
         f"{seconds[name] / seconds[f'{name}, bare'.replace(', kept', '')]:.2f}")
        for kind, (seconds, _) in found.items() for name in seconds if not name.endswith("bare")
    ]  # fmt: skip
    claims = [
        Claim(f"{name}, {kind}", float(ratio), "times", 1.2 if "training" in name else 1.3, "lower", "the bare loop")
        for name, kind, _, _, ratio in rows
    ]
    forms, more = agreement(data, rounds)
    tables = [
        Table(f"Words a second on {data.name}", ("what", "format", "tagweave", "bare loop", "times"), tuple(rows)),
        Table("The bare loop by pieces in a batch, s", ("format", *map(str, sizes)),
              tuple((kind, *(round(s, 2) for s in by_size.values())) for kind, (_, by_size) in found.items())),
        waste(data, Tagger(), BATCH),
        parts(data, FORMATS[0], rounds),
        settings(data, rounds, options.small),
        forms,
    ]  # fmt: skip
    record("encoder", claims=[*claims, *more], tables=tables, notes=NOTES, keep=not options.small)


if __name__ == "__main__":
    main()

"""How long an epoch of the conditional HMM takes, beside a step as people write it and beside matrix products alone.

    python benchmarks/chmm.py            # in full, a few minutes
    python benchmarks/chmm.py --small    # seconds, on little

The votes of the paper's sources on the training documents of ncbi-disease and their embeddings (encoder and layers of
the model's defaults), where `TAGWEAVE_DATA` names the data; else made-up votes and embeddings of the same shape.
Everything is float32. All rows go over the same documents in the same batches, either batches of `batch_tokens` as
tagweave makes them, or of 128 documents as the published code does. The best of `--epochs` epochs counts, in turn.

The step as people write it, below, is the published model with right mathematics: two linear layers give transitions
and emissions; documents are padded to the longest of the batch; the tensor of emissions [documents, longest, sources,
labels, labels] is built and goes through softmax and log-sum-exp with the votes; the recursion runs in log space, a
step a token; torch differentiates through all of it; Adam. `forward` has the forward recursion only, whose gradient is
that of the likelihood. `published` does what the published code does: shared matrices are mixed in with weight zero,
there is a backward recursion and a loop for the pair marginals, and the expected log-likelihood is differentiated
through all of them.

tagweave's `same model` has the same layers and the same objective; loss and gradient are compared with the step's
before anything is timed. `default` is the model with its defaults: shared emissions, and neighbours in view.

The matrix products alone are those of the layers, forward and for the weights' gradient, on packed float32 embeddings
that are ready in memory, by `torch.nn.functional.linear` and `torch.matmul`.
"""

import argparse
import copy
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from recording import Claim, record
from torch import Tensor, nn

from tagweave.annotations import Annotations
from tagweave.benchmark.datasets import load_dataset
from tagweave.chain.threads import thread_limit
from tagweave.corpus import Corpus, Document
from tagweave.encoder.embeddings import embed
from tagweave.label_models import ConditionalHMM
from tagweave.label_models.conditional_data import ConditionalData
from tagweave.labels import LabelSet
from tagweave.report import Table

DOCUMENTS, WORDS, WIDTH, SOURCES = 592, 217, 1152, 5
"""Of made-up data: like those of ncbi-disease and the default encoder."""

PUBLISHED_BATCH = 128
"""Documents of a batch in the published settings."""

SAME: dict[str, Any] = {"context": 0, "by_move": True, "emissions": "token", "missed": None, "pull": 0.0}
"""Settings of the published model."""

OURS, PRODUCTS = "tagweave, default", "matrix products alone, default"
SAME_FORWARD, SAME_PUBLISHED = "tagweave, same model, forward", "tagweave, same model, published"
SAME_PRODUCTS = "matrix products alone, same model"
STEP_FORWARD, STEP_PUBLISHED = "as people write it, forward", "as people write it, published"

NOTES = (
    "The same model cannot be 20 times as fast as the step: its matrix products alone are about ten times as fast, and "
    "they are two thirds of tagweave's epoch, although tagweave computes them faster than the library that they are "
    "timed with. Tried: products in blocks through that library, its convolutions, and its products in another order; "
    "its speed at a few outputs swings by a factor of five with their number. The default shares emissions between "
    "tokens and so has a sixth of the products.",
    "The step as people write it pads: with batches of 128 documents about half of what it computes is padding.",
)

Batches = list[NDArray[np.int64]]


@dataclass(kw_only=True)
class Given(ConditionalHMM):
    """The model on embeddings that are given."""

    name: ClassVar[str] = "given"
    given: Any = None

    def _features(self, corpus: Corpus) -> NDArray[np.float16]:
        features: NDArray[np.float16] = self.given
        return features


class Step(nn.Module):
    """The conditional HMM as people write it.

    Args:
        width: numbers of an embedding.
        sources, labels: how many there are.
        full: whether the expected log-likelihood is differentiated, with both recursions, or the likelihood.
    """

    def __init__(self, width: int, sources: int, labels: int, full: bool) -> None:
        super().__init__()
        self.sources, self.labels, self.full = sources, labels, full
        self.to_moves = nn.Linear(width, labels * labels)
        self.to_emissions = nn.Linear(width, sources * labels * labels)
        self.shared_moves = nn.Parameter(torch.zeros(labels, labels))
        self.shared_emissions = nn.Parameter(torch.zeros(sources, labels, labels))

    def forward(self, embeddings: Tensor, votes: Tensor, lengths: Tensor) -> Tensor:
        """The objective, summed over documents; embeddings and votes (one-hot) are padded."""
        shape = embeddings.shape[:2]
        moves = self._logs(self.to_moves(embeddings).view(*shape, self.labels, self.labels), self.shared_moves)
        scores = self.to_emissions(embeddings).view(*shape, self.sources, self.labels, self.labels)
        said = votes.log()[:, :, :, None, :]
        evidence = torch.logsumexp(self._logs(scores, self.shared_emissions) + said, -1).sum(2)
        there = torch.arange(shape[1]) < lengths[:, None]
        return self._expected(moves, evidence, there) if self.full else self._likelihood(moves, evidence, lengths)

    def _logs(self, scores: Tensor, shared: Tensor) -> Tensor:
        """Logarithms of rows that sum to one. The published code mixes shared matrices in, with a weight of zero."""
        if not self.full:
            return torch.log_softmax(scores, -1)
        weight = 1.0
        return ((1 - weight) * torch.softmax(shared, -1) + weight * torch.softmax(scores, -1)).clamp_min(1e-30).log()

    def _alpha(self, moves: Tensor, evidence: Tensor) -> list[Tensor]:
        rows = [moves[:, 0, 0] + evidence[:, 0]]
        for t in range(1, evidence.shape[1]):
            rows.append(torch.logsumexp(rows[-1][:, :, None] + moves[:, t], 1) + evidence[:, t])
        return rows

    def _likelihood(self, moves: Tensor, evidence: Tensor, lengths: Tensor) -> Tensor:
        alpha = torch.stack(self._alpha(moves, evidence), 1)
        return torch.logsumexp(alpha[torch.arange(len(alpha)), lengths - 1], -1).sum()

    def _expected(self, moves: Tensor, evidence: Tensor, there: Tensor) -> Tensor:
        alpha = self._alpha(moves, evidence)
        row = torch.zeros_like(evidence[:, 0])
        beta = [row]
        for t in range(evidence.shape[1] - 1, 0, -1):
            before = torch.logsumexp(moves[:, t] + (evidence[:, t] + row)[:, None, :], 2)
            row = torch.where(there[:, t, None], before, row)
            beta.insert(0, row)
        marginals = torch.softmax(torch.stack(alpha, 1) + torch.stack(beta, 1), -1)
        total = (marginals[:, 0] * moves[:, 0, 0]).sum() + (marginals * evidence)[there].sum()
        pairs = []
        for t in range(1, evidence.shape[1]):
            pair = alpha[t - 1][:, :, None] + moves[:, t] + (evidence[:, t] + beta[t])[:, None, :]
            pairs.append(torch.softmax(pair.flatten(1), -1).view_as(pair))
        return total + (torch.stack(pairs, 1) * moves[:, 1:])[there[:, 1:]].sum()


def made_up(documents: int) -> tuple[Corpus, NDArray[np.float16]]:
    """Documents with random votes, and random embeddings."""
    chance = np.random.default_rng(0)
    lengths = np.clip(chance.normal(WORDS, WORDS / 3, documents), 20, 500).astype(int)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    empty = Corpus.from_documents((Document(f"d{n}", ["w"] * length) for n, length in enumerate(lengths)), ["Disease"])
    for k in range(SOURCES):
        votes = (chance.random(offsets[-1]) < 0.06).astype(np.int64)
        empty = empty.with_source(f"s{k}", Annotations.from_labels(votes, offsets, LabelSet(("Disease",))))
    return empty, chance.normal(size=(offsets[-1], WIDTH)).astype(np.float16)


def material(small: bool) -> tuple[str, Corpus, NDArray[np.float16]]:
    """What it is, the documents, and their embeddings."""
    if small or not os.environ.get("TAGWEAVE_DATA"):
        corpus, features = made_up(12 if small else DOCUMENTS)
        return "made-up votes and embeddings", corpus, features
    corpus = load_dataset(Path(os.environ["TAGWEAVE_DATA"]), "ncbi-disease").fit
    return "ncbi-disease", corpus, embed(corpus, layers=ConditionalHMM().layers)


class Padded:
    """Batches as people make them: everything in memory in float32, padded when it is needed."""

    def __init__(self, model: Given, corpus: Corpus) -> None:
        mean, inverse = model.scale_  # type: ignore[misc]
        data = ConditionalData(model, corpus, model.given)
        rows = np.arange(int(corpus.offsets[-1]))
        self.documents = []
        for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
            own = (model.given[first:last].astype(np.float32) - mean) * inverse
            said = data._said(rows[first:last])
            self.documents.append((torch.from_numpy(own), torch.from_numpy(said).float()))

    def batch(self, documents: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        chosen = [self.documents[number] for number in documents]
        lengths = torch.tensor([len(embeddings) for embeddings, _ in chosen])
        embeddings = nn.utils.rnn.pad_sequence([e for e, _ in chosen], batch_first=True)
        # Padding votes for O, so that nothing is minus infinity there; the recursions do not read it.
        votes = nn.utils.rnn.pad_sequence([v for _, v in chosen], batch_first=True)
        votes[..., 0] = torch.where(votes.sum(-1) > 0, votes[..., 0], 1.0)
        return embeddings, votes, lengths


def step_epoch(step: Step, padded: Padded, batches: Batches) -> Callable[[], None]:
    optimizer = torch.optim.Adam(step.parameters(), lr=1e-3)

    def run() -> None:
        for documents in batches:
            embeddings, votes, lengths = padded.batch(documents)
            optimizer.zero_grad()
            loss = -step(embeddings, votes, lengths) / lengths.sum()
            loss.backward()
            optimizer.step()

    return run


def our_epoch(model: Given, corpus: Corpus, batches: Batches) -> Callable[[], None]:
    data = ConditionalData(model, corpus, model.given)
    data.batches = lambda epoch: batches  # type: ignore[method-assign, assignment]
    steps = iter(model._loop(data, epochs=1000))

    def run() -> None:
        for _ in batches:
            next(steps)

    return run


def products_epoch(features: Tensor, outputs: int, sizes: list[int]) -> Callable[[], None]:
    weights, slopes = torch.randn(outputs, features.shape[1]), torch.randn(max(sizes), outputs)

    def run() -> None:
        first = 0
        for size in sizes:
            rows = features[first : first + size]
            nn.functional.linear(rows, weights)
            torch.matmul(slopes[:size].T, rows)
            first += size

    return run


def check(model: Given, corpus: Corpus, padded: Padded, documents: NDArray[np.int64], full: bool) -> None:
    """An error unless both have the same loss and gradient where they have the same weights."""
    network, size = model._network(), len(model.labels)
    step = Step(network.shape.width, len(network.base_emissions), size, full)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        for mine, theirs in ((network.to_moves, step.to_moves), (network.to_emissions, step.to_emissions)):
            mine.weight.normal_(std=0.01)
            theirs.weight.copy_(mine.weight)
        step.to_moves.bias.copy_(network.base.flatten().clamp_min(-1e4))
        step.to_emissions.bias.copy_(network.base_emissions.flatten())
    theirs_loss = -step(*padded.batch(documents))
    theirs_loss.backward()
    mine_loss, _ = ConditionalData(with_objective(model, full), corpus, model.given).loss(documents)
    network.zero_grad()
    mine_loss.backward()
    np.testing.assert_allclose(float(mine_loss.detach()), float(theirs_loss.detach()), rtol=1e-4)
    for mine, theirs in ((network.to_moves, step.to_moves), (network.to_emissions, step.to_emissions)):
        assert mine.weight.grad is not None and theirs.weight.grad is not None
        error = float((mine.weight.grad - theirs.weight.grad).norm() / theirs.weight.grad.norm())
        assert error < 1e-3, f"gradients differ by {error}"
    with torch.no_grad():
        network.to_moves.weight.zero_()
        network.to_emissions.weight.zero_()
    network.zero_grad()


def with_objective(model: Given, full: bool) -> Given:
    """The same model, which learns by the expected log-likelihood if `full`, else by the likelihood."""
    changed = copy.copy(model)
    changed.sharpening = 1.0 if full else 0.0
    return changed


def fitted(corpus: Corpus, features: NDArray[np.float16], **settings: Any) -> Given:  # noqa: ANN401
    """The model before its first step."""
    return Given(epochs=0, given=features, **settings).fit(corpus)


class Seconds(NamedTuple):
    """By the clock, and of all processors together."""

    clock: float
    processors: float


def best_of(runs: Mapping[str, Callable[[], None]], epochs: int) -> dict[str, Seconds]:
    """The best epoch of each, all in turn."""
    found = dict.fromkeys(runs, Seconds(float("inf"), float("inf")))
    for _ in range(epochs):
        for name, run in runs.items():
            begun, spent = time.perf_counter(), time.process_time()
            run()
            clock, processors = time.perf_counter() - begun, time.process_time() - spent
            found[name] = Seconds(min(found[name].clock, clock), min(found[name].processors, processors))
    return found


def seconds_of(corpus: Corpus, features: NDArray[np.float16], documents: int | None, epochs: int) -> dict[str, Seconds]:
    """Seconds an epoch of everything, in batches of so many documents, or in those of tagweave."""
    same, default = fitted(corpus, features, silence="never", weight=1.0, **SAME), fitted(corpus, features)
    padded, network = Padded(same, corpus), same._network()
    batches = ConditionalData(same, corpus, features).batches(0)
    if documents:
        order = np.concatenate(batches)
        batches = [order[first : first + documents] for first in range(0, len(order), documents)]
    for full in (False, True):
        check(same, corpus, padded, batches[0][:8], full)
    rows = torch.from_numpy(np.array(features)).float()
    lengths = np.diff(corpus.offsets)
    sizes = [int(lengths[chosen].sum()) for chosen in batches]
    shape = (features.shape[1], len(network.base_emissions), len(same.labels))
    torch.manual_seed(0)
    all_outputs = len(network.to_moves.weight) + len(network.to_emissions.weight)
    runs = {
        OURS: our_epoch(default, corpus, batches),
        PRODUCTS: products_epoch(rows, len(default._network().to_moves.weight), sizes),
        SAME_FORWARD: our_epoch(with_objective(same, full=False), corpus, batches),
        SAME_PUBLISHED: our_epoch(with_objective(same, full=True), corpus, batches),
        SAME_PRODUCTS: products_epoch(rows, all_outputs, sizes),
        STEP_FORWARD: step_epoch(Step(*shape, full=False), padded, batches),
        STEP_PUBLISHED: step_epoch(Step(*shape, full=True), padded, batches),
    }
    return best_of(runs, epochs)


def table_of(title: str, found: Mapping[str, Seconds]) -> Table:
    rows = [
        (
            name,
            own.clock,
            own.processors,
            found[STEP_FORWARD].clock / own.clock,
            found[STEP_PUBLISHED].clock / own.clock,
        )
        for name, own in found.items()
    ]
    columns = (
        "",
        "seconds an epoch",
        "of processors",
        "as fast as the step, forward",
        "as fast as the step, published",
    )
    return Table(title, columns, tuple(rows), decimals=(0, 3, 3, 1, 1))


def claims_of(batch: str, found: Mapping[str, Seconds]) -> list[Claim]:
    def times(slow: str, fast: str) -> float:
        return found[slow].clock / found[fast].clock

    def peer(name: str) -> str:
        return f"{name} {found[name].clock:.2f} s"

    return [
        Claim(f"an epoch, {batch}", times(STEP_PUBLISHED, OURS), "times as fast", 20.0, peer=peer(STEP_PUBLISHED)),
        Claim(f"an epoch, {batch}", times(STEP_FORWARD, OURS), "times as fast", None, peer=peer(STEP_FORWARD)),
        Claim(
            f"an epoch of the same model, {batch}",
            times(STEP_PUBLISHED, SAME_PUBLISHED),
            "times as fast",
            20.0,
            peer=peer(STEP_PUBLISHED),
        ),
        Claim(f"an epoch, {batch}", times(OURS, PRODUCTS), "times as long", 2.0, "lower", peer(PRODUCTS)),
        Claim(
            f"an epoch of the same model, {batch}",
            times(SAME_PUBLISHED, SAME_PRODUCTS),
            "times as long",
            2.0,
            "lower",
            peer(SAME_PRODUCTS),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="little data and one epoch: shows that it works")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=thread_limit())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    what, corpus, features = material(options.small)
    claims, tables = [], []
    for documents in (None, PUBLISHED_BATCH):
        batch = f"batches of {documents} documents" if documents else "tagweave's batches"
        found = seconds_of(corpus, features, documents, 1 if options.small else options.epochs)
        tables.append(table_of(f"{what}, {batch}, {options.threads} threads", found))
        claims += claims_of(batch, found)
    record("chmm", claims=claims, tables=tables, notes=NOTES, keep=not options.small)


if __name__ == "__main__":
    main()

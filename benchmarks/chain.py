"""How fast chains are: forward-backward with expected counts, in tokens per second, beside other libraries.

    python benchmarks/chain.py            # in full, a few minutes
    python benchmarks/chain.py --small    # seconds, on little

Every tool gets the same float32 potentials, with 3 or 9 labels, one matrix of transitions for all tokens (shared) or
one for each (token-wise), and gives the marginals of all tokens and the expected counts of moves. Sentences have 20
tokens each, which is the best case of everything that pads, or mixed lengths from 3 to 80, 20 on average. Before a tool
is timed, its marginals and counts are compared with tagweave's.

tagweave runs with one thread and with `--threads`; the others with as many as they take. `ratio` is tagweave's speed
with all threads over the speed of the row. Tools:

- torch-batches: the recursion in log space over sentences padded in batches of 64, as they come, written below, and
  automatic differentiation: what people's code does. Padding is done before the clock starts;
- torch: the same over all sentences at once, a single batch of tens of thousands, as nobody trains;
- hmmlearn: one step of `fit` on log-likelihoods that are given, the scaled recursions; shared transitions only;
- dynamax: `hmm_smoother`, compiled for all sentences at once, in float32; equal lengths only.

hmmlearn and dynamax are rows without numbers where they are not installed. They go best into an environment that is
thrown away: python -m venv peers && peers/bin/pip install . torch hmmlearn dynamax

The best of `--repeats` runs counts, of fewer if they take long. The first speed is by the clock, the second by the
seconds that all threads together spent on processors: on a machine with other work the clock says little, and a tool
that has its processors for itself reaches at most the second speed times its threads. `ratio` is of the clock.

`--tokens` is the number of tokens with 3 labels; with 9 there are a quarter of them.

Where there is a CUDA device, the Triton kernels are timed there, on eight times as many tokens, which are on the card
already; token-wise transitions give pair marginals of each token. What they move is set beside a copy on the card.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from recording import Claim, record

from tagweave.chain import posterior, threads
from tagweave.report import Table

CARD = "cuda"
LENGTH = 20
BATCH = 64
"""Sentences of a batch, as people train."""

TARGETS = {(3, False): 20.0, (9, True): 5.0}
"""Millions of tokens per second with all threads, by labels and whether transitions are token-wise."""

PATIENCE = 3.0
"""Seconds after which a tool is not run once more."""

RATIOS = {"torch-batches": 50.0, "torch": None, "hmmlearn": 1.0, "dynamax": 1.0}
"""How many times as fast as these tagweave should be."""

MODULES = {"torch-batches": "torch"}
"""Which module a tool is in, where its name is another."""


class Task(NamedTuple):
    """Packed potentials, as logarithms of probabilities."""

    start: NDArray[np.float32]
    transitions: NDArray[np.float32]
    evidence: NDArray[np.float32]
    offsets: NDArray[np.int64]


Answer = tuple[Any, Any]
"""Marginals, and counts of moves: [labels, labels], or [tokens, labels, labels] where a tool gives no sums."""


def made_up(tokens: int, labels: int, token_wise: bool, mixed: bool = False) -> Task:
    generator = np.random.default_rng(labels)
    lengths = np.full(tokens // LENGTH, LENGTH)
    if mixed:
        lengths = np.clip(generator.gamma(3.0, LENGTH / 3.0, tokens // LENGTH).astype(np.int64), 3, 4 * LENGTH)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    start = generator.dirichlet(np.ones(labels))
    transitions = generator.dirichlet(np.ones(labels), (offsets[-1], labels) if token_wise else labels)
    evidence = generator.random((offsets[-1], labels))
    potentials = (np.log(part).astype(np.float32) for part in (start, transitions, evidence))
    return Task(*potentials, offsets)


def with_tagweave(task: Task, count: int) -> Callable[[], Answer]:
    def run() -> Answer:
        # What `tagweave.chain.forward_backward` does, with a given number of threads.
        potentials, offsets = posterior.prepare(*task)
        values, marginals, pairs = posterior.run(potentials, offsets, posterior.MODES["sum"], count)
        posterior.check_results(values, potentials, offsets)
        return marginals, pairs[0]

    return run


def with_torch(task: Task, count: int, batch: int = 1 << 60) -> Callable[[], Answer]:
    import torch
    from torch.nn.utils.rnn import pad_sequence

    torch.set_num_threads(count)
    start, matrix = torch.from_numpy(task.start), torch.from_numpy(task.transitions)
    token_wise = matrix.dim() == 3
    lengths = np.diff(task.offsets)
    batches = []
    for first in range(0, len(lengths), batch):
        own = lengths[first : first + batch]
        rows = slice(int(task.offsets[first]), int(task.offsets[first + len(own)]))
        evidence = pad_sequence(torch.from_numpy(task.evidence[rows]).split(own.tolist()), batch_first=True)
        transitions = matrix
        if token_wise:
            transitions = pad_sequence(matrix[rows].split(own.tolist()), batch_first=True)
        there = torch.arange(int(own.max())) < torch.from_numpy(own)[:, None]
        batches.append((evidence.requires_grad_(), transitions.clone().requires_grad_(), there))

    def run() -> Answer:
        marginals, counts = [], torch.zeros_like(matrix[0] if token_wise else matrix)
        for evidence, transitions, there in batches:
            row = start + evidence[:, 0]
            full = bool(there.all())
            for t in range(1, evidence.shape[1]):
                moves = transitions[:, t] if token_wise else transitions
                after = torch.logsumexp(row[:, :, None] + moves, 1) + evidence[:, t]
                row = after if full else torch.where(there[:, t, None], after, row)
            own, moved = torch.autograd.grad(torch.logsumexp(row, 1).sum(), (evidence, transitions))
            marginals.append(own[there])
            counts = counts + (moved.sum((0, 1)) if token_wise else moved)
        return torch.cat(marginals), counts

    return run


def with_torch_in_batches(task: Task, count: int) -> Callable[[], Answer]:
    return with_torch(task, count, BATCH)


def with_hmmlearn(task: Task, count: int) -> Callable[[], Answer] | None:
    from hmmlearn.base import BaseHMM

    if task.transitions.ndim == 3:
        return None
    kept: dict[str, Any] = {}

    class Given(BaseHMM):  # type: ignore[misc]
        """Observations are the log-likelihoods themselves."""

        def _compute_log_likelihood(self, X: Any) -> Any:  # noqa: ANN401, N803
            return X

        def _compute_likelihood(self, X: Any) -> Any:  # noqa: ANN401, N803
            return np.exp(X)

        def _get_n_fit_scalars_per_param(self) -> dict[str, int]:
            return {"s": 1, "t": 1}

        def _accumulate_sufficient_statistics(self, stats: Any, *rest: Any) -> None:  # noqa: ANN401
            super()._accumulate_sufficient_statistics(stats, *rest)
            kept.setdefault("marginals", []).append(rest[2])
            kept["counts"] = stats["trans"]

    lengths = np.diff(task.offsets)
    evidence = task.evidence.astype(np.float64)

    def run() -> Answer:
        kept.clear()
        model = Given(len(task.start), n_iter=1, params="st", init_params="", implementation="scaling")
        model.startprob_ = np.exp(task.start, dtype=np.float64)
        model.transmat_ = np.exp(task.transitions, dtype=np.float64)
        for part in (model.startprob_, model.transmat_):
            part /= part.sum(-1, keepdims=True)
        model.fit(evidence, lengths)
        return np.concatenate(kept["marginals"]), kept["counts"]

    return run


def with_dynamax(task: Task, count: int) -> Callable[[], Answer] | None:
    if len(set(np.diff(task.offsets))) > 1:
        return None
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import hmm_smoother

    labels = len(task.start)
    start, evidence = jnp.exp(task.start), jnp.asarray(task.evidence.reshape(-1, LENGTH, labels))
    token_wise = task.transitions.ndim == 3
    moves = jnp.asarray(task.transitions.reshape(-1, LENGTH, labels, labels)[:, 1:] if token_wise else task.transitions)

    def smooth(matrix: Any, scores: Any) -> Answer:  # noqa: ANN401
        found = hmm_smoother(start, jnp.exp(matrix), scores)
        return found.smoothed_probs, found.trans_probs

    @jax.jit
    def smooth_all(matrix: Any, scores: Any) -> Answer:  # noqa: ANN401
        marginals, counts = jax.vmap(smooth, (0 if token_wise else None, 0))(matrix, scores)
        return marginals.reshape(-1, labels), counts.sum((0, 1) if counts.ndim == 4 else 0)

    def run() -> Answer:
        return jax.block_until_ready(smooth_all(moves, evidence))

    return run


TOOLS: dict[str, Callable[[Task, int], Callable[[], Answer] | None]] = {
    "tagweave": with_tagweave,
    "torch-batches": with_torch_in_batches,
    "torch": with_torch,
    "hmmlearn": with_hmmlearn,
    "dynamax": with_dynamax,
}


def speeds(run: Callable[[], Answer], task: Task, repeats: int, expected: Answer) -> tuple[float, float]:
    """Millions of tokens per second by the clock and of processors, the best of several; an error if answers differ."""
    for mine, theirs, scale in zip(expected, run(), (1, len(task.evidence)), strict=True):
        np.testing.assert_allclose(np.asarray(theirs) / scale, mine / scale, rtol=0, atol=2e-4)
    clock, processors = np.inf, np.inf
    ends = time.perf_counter() + PATIENCE
    for repeat in range(repeats):
        if repeat and time.perf_counter() > ends:
            break
        begun, spent = time.perf_counter(), time.process_time()
        run()
        clock, processors = min(clock, time.perf_counter() - begun), min(processors, time.process_time() - spent)
    return len(task.evidence) / float(clock) / 1e6, len(task.evidence) / float(processors) / 1e6


Row = tuple[str | int | float | None, ...]


class Measured(NamedTuple):
    """A row, without speeds where the tool is absent or cannot do the work."""

    tool: str
    threads: int | None = None
    clock: float | None = None
    processors: float | None = None


def measured(task: Task, tools: list[str], count: int, repeats: int) -> list[Measured]:
    expected = with_tagweave(task, 1)()
    found: list[Measured] = []
    for tool in tools:
        if find_spec(MODULES.get(tool, tool)) is None:
            found.append(Measured(f"{tool} (not installed)"))
            continue
        chosen = tool in ("tagweave", "torch", "torch-batches")
        for number in sorted({1, count}) if chosen else [count]:
            run = TOOLS[tool](task, number)
            if run is None:
                found.append(Measured(f"{tool} (cannot)"))
            else:
                found.append(Measured(tool, number if chosen else None, *speeds(run, task, repeats, expected)))
                print(*found[-1], file=sys.stderr)
    return found


class Case(NamedTuple):
    """What is computed."""

    labels: int
    token_wise: bool
    mixed: bool

    def __str__(self) -> str:
        return f"{self.labels} labels, {self.transitions} transitions, {self.lengths} lengths"

    @property
    def transitions(self) -> str:
        return "token-wise" if self.token_wise else "shared"

    @property
    def lengths(self) -> str:
        return "mixed" if self.mixed else "equal"


CASES = [
    Case(labels, token_wise, mixed) for mixed in (False, True) for labels in (3, 9) for token_wise in (False, True)
]


def claims_of(case: Case, found: list[Measured], count: int) -> list[Claim]:
    ours = next(row for row in found if row[:2] == ("tagweave", count))
    claims = []
    if not case.mixed and (case.labels, case.token_wise) in TARGETS:
        target = TARGETS[case.labels, case.token_wise]
        claims.append(Claim(f"forward-backward, {case}", ours.clock, "M tokens/s", target))
    for tool, target in RATIOS.items():
        if tool == "torch-batches" and not case.mixed:
            continue
        rows = [row for row in found if row.tool == tool and row.clock]
        if rows and ours.clock:
            fastest = max(rows, key=lambda row: row.clock or 0.0)
            ratio = ours.clock / (fastest.clock or 1.0)
            claims.append(
                Claim(str(case), ratio, "times as fast", target, peer=f"{tool} {fastest.clock:.3g} M tokens/s")
            )
    return claims


def on_card(case: Case, tokens: int, repeats: int) -> tuple[float, float]:
    """Tokens and bytes per second of the Triton kernels; an error if their answers are not those of the processor."""
    import torch

    from tagweave.chain.triton_kernels import forward_backward

    task = made_up(tokens, *case)
    given = [torch.from_numpy(part).to(CARD) for part in task]
    expected = with_tagweave(task, threads.thread_limit())()
    _, marginals, pairs = forward_backward(*given, case.token_wise)
    for mine, theirs, scale in zip((marginals, pairs.sum(0, dtype=torch.float64)), expected, (1, tokens), strict=True):
        np.testing.assert_allclose(mine.cpu().numpy() / scale, theirs / scale, rtol=0, atol=2e-4)
    seconds = seconds_on_card(lambda: forward_backward(*given, case.token_wise), repeats)
    # Evidence, alpha and marginals are read three times and written twice, matrices read twice and written once.
    matrices = 3 * task.transitions.size if case.token_wise else 2 * (len(task.offsets) - 1) * case.labels**2
    return len(task.evidence) / seconds, 4 * (5 * task.evidence.size + matrices) / seconds


def seconds_on_card(work: Callable[[], Any], repeats: int) -> float:
    """The least time of several runs, the first of which is not counted."""
    import torch

    seconds = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    return min(seconds[1:])


def cards(tokens: int, repeats: int) -> tuple[list[Claim], list[Table], list[str]]:
    """What the Triton kernels do on a graphics card, or that there is none."""
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device: the Triton kernels are left out")
        return [], [], [NO_CARD]
    source, room = (torch.empty(1 << 28, device=CARD) for _ in range(2))
    copied = 2 * source.nbytes / seconds_on_card(lambda: room.copy_(source), repeats)
    claims, rows = [], []
    for case in CASES:
        speed, moved = on_card(case, tokens if case.labels == 3 else tokens // 4, repeats)
        rows.append((case.labels, case.transitions, case.lengths, speed / 1e6, moved / 1e9, moved / copied))
        claims.append(Claim(f"Triton, {case}", speed / 1e6, "M tokens/s", peer=f"{moved / copied:.0%} of a copy"))
    columns = ("labels", "transitions", "lengths", "M tokens/s", "GB/s", "of a copy")
    title = f"The same in Triton on {torch.cuda.get_device_name()}, which copies {copied / 1e9:.0f} GB/s"
    return claims, [Table(title, columns, tuple(rows), (0, 0, 0, 1, 0, 2))], []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="little data: shows that it works")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=threads.thread_limit())
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    if (options := parser.parse_args()).small:
        options.tokens, options.repeats = 8000, 1
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    rows: list[Row] = []
    claims: list[Claim] = []
    for case in CASES:
        tokens = options.tokens if case.labels == 3 else options.tokens // 4
        task = made_up(tokens, *case)
        found = measured(task, options.tools, options.threads, options.repeats)
        ours = next((row.clock for row in found if row[:2] == ("tagweave", options.threads)), None)
        for row in found:
            ratio = ours / row.clock if row.clock and ours else None
            rows.append((case.labels, case.transitions, case.lengths, *row, ratio))
        if "tagweave" in options.tools:
            claims += claims_of(case, found, options.threads)
    columns = ("labels", "transitions", "lengths", "tool", "threads", "M tokens/s", "per processor", "ratio")
    table = Table("Forward-backward with expected counts", columns, tuple(rows), decimals=(0, 0, 0, 0, 0, 2, 2, 1))
    card_claims, card_tables, note = cards(8 * options.tokens, options.repeats)
    claims, tables = claims + card_claims, [table, *card_tables]
    record("chain", claims=claims, tables=tables, notes=[*NOTES, *note], keep=not options.small)


NO_CARD = (
    "No graphics card was at hand, so there are no figures for the Triton kernels. In Triton's interpreter, on the "
    "processor, their results are those of the compiled kernel, and they compile for cards."
)
NOTES = (
    "Sentences go side by side, in lanes, through recursions in double precision. Beside torch over all sentences at "
    "once the advantage is smaller than beside its batches: a batch of tens of thousands of sentences hides what each "
    "of torch's operations costs, but no model is trained in one.",
)


if __name__ == "__main__":
    main()

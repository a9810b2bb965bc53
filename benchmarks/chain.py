"""How fast chains are: forward-backward with expected counts, in tokens per second, beside other libraries.

    python benchmarks/chain.py                                                     # in full, a few minutes
    python benchmarks/chain.py --tokens 20000 --repeats 3 --tools tagweave torch   # a glance, seconds

Every tool gets the same float32 potentials, sentences of 20 tokens, with 3 or 9 labels, one matrix of transitions for
all tokens (shared) or one for each (token-wise), and gives the marginals of all tokens and the expected counts of
moves. Before it is timed, its marginals and counts are compared with tagweave's.

tagweave runs with one thread and with `--threads`; the others with as many as they take. `ratio` is tagweave's speed
with all threads over the speed of the row. Tools:

- torch: the recursion in log space over padded sentences, written below, and automatic differentiation;
- hmmlearn: one step of `fit` on log-likelihoods that are given, the scaled recursions; shared transitions only;
- dynamax: `hmm_smoother`, compiled for all sentences at once, which it can as they have the same length; in float32.

hmmlearn and dynamax are rows without numbers where they are not installed. They go best into an environment that is
thrown away: python -m venv peers && peers/bin/pip install . torch hmmlearn dynamax

The best of `--repeats` runs counts. The first speed is by the clock, the second by the seconds that all threads
together spent on processors: on a machine with other work the clock says little, and a tool that has its processors for
itself reaches at most the second speed times its threads. `ratio` is of the clock.

`--tokens` is the number of tokens with 3 labels; with 9 there are a quarter of them.
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

from tagweave.chain import posterior, threads
from tagweave.report import Table

LENGTH = 20
TARGETS = {(3, False): 20.0, (9, True): 5.0}
"""Millions of tokens per second with all threads, by labels and whether transitions are token-wise."""


class Task(NamedTuple):
    """Packed potentials, as logarithms of probabilities."""

    start: NDArray[np.float32]
    transitions: NDArray[np.float32]
    evidence: NDArray[np.float32]
    offsets: NDArray[np.int64]


Answer = tuple[Any, Any]
"""Marginals, and counts of moves: [labels, labels], or [tokens, labels, labels] where a tool gives no sums."""


def made_up(tokens: int, labels: int, token_wise: bool) -> Task:
    generator = np.random.default_rng(labels)
    tokens -= tokens % LENGTH
    start = generator.dirichlet(np.ones(labels))
    transitions = generator.dirichlet(np.ones(labels), (tokens, labels) if token_wise else labels)
    evidence = generator.random((tokens, labels))
    potentials = (np.log(part).astype(np.float32) for part in (start, transitions, evidence))
    return Task(*potentials, np.arange(0, tokens + 1, LENGTH))


def with_tagweave(task: Task, count: int) -> Callable[[], Answer]:
    def run() -> Answer:
        # What `tagweave.chain.forward_backward` does, with a given number of threads.
        potentials, offsets = posterior.prepare(*task)
        values, marginals, pairs = posterior.run(potentials, offsets, posterior.MODES["sum"], count)
        posterior.check_results(values, potentials, offsets)
        return marginals, pairs[0]

    return run


def with_torch(task: Task, count: int) -> Callable[[], Answer]:
    import torch

    torch.set_num_threads(count)
    labels = len(task.start)
    parts = [torch.from_numpy(part) for part in task[:3]]
    evidence = parts[2].view(-1, LENGTH, labels).requires_grad_()
    transitions = parts[1].view(-1, LENGTH, labels, labels) if parts[1].dim() == 3 else parts[1]
    transitions.requires_grad_()

    def run() -> Answer:
        row = parts[0] + evidence[:, 0]
        for t in range(1, LENGTH):
            moves = transitions[:, t] if transitions.dim() == 4 else transitions
            row = torch.logsumexp(row[:, :, None] + moves, 1) + evidence[:, t]
        marginals, counts = torch.autograd.grad(torch.logsumexp(row, 1).sum(), (evidence, transitions))
        return marginals.view(-1, labels), counts.sum((0, 1)) if counts.dim() == 4 else counts

    return run


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


def with_dynamax(task: Task, count: int) -> Callable[[], Answer]:
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
    "torch": with_torch,
    "hmmlearn": with_hmmlearn,
    "dynamax": with_dynamax,
}


def speeds(run: Callable[[], Answer], task: Task, repeats: int, expected: Answer) -> tuple[float, float]:
    """Millions of tokens per second by the clock and of processors, the best of several; an error if answers differ."""
    for mine, theirs, scale in zip(expected, run(), (1, len(task.evidence)), strict=True):
        np.testing.assert_allclose(np.asarray(theirs) / scale, mine / scale, rtol=0, atol=2e-4)
    clock, processors = np.inf, np.inf
    for _ in range(repeats):
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
        if find_spec(tool) is None:
            found.append(Measured(f"{tool} (not installed)"))
            continue
        chosen = tool in ("tagweave", "torch")
        for number in sorted({1, count}) if chosen else [count]:
            run = TOOLS[tool](task, number)
            if run is None:
                found.append(Measured(f"{tool} (cannot)"))
            else:
                found.append(Measured(tool, number if chosen else None, *speeds(run, task, repeats, expected)))
                print(*found[-1], file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=threads.thread_limit())
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    rows: list[Row] = []
    for labels, token_wise in ((3, False), (3, True), (9, False), (9, True)):
        task = made_up(options.tokens if labels == 3 else options.tokens // 4, labels, token_wise)
        found = measured(task, options.tools, options.threads, options.repeats)
        ours = next((row.clock for row in found if row[:2] == ("tagweave", options.threads)), None)
        for row in found:
            target = TARGETS.get((labels, token_wise)) if row[:2] == ("tagweave", options.threads) else None
            ratio = ours / row.clock if row.clock and ours else None
            rows.append((labels, "token-wise" if token_wise else "shared", *row, target, ratio))
    columns = ("labels", "transitions", "tool", "threads", "M tokens/s", "per processor", "target", "ratio")
    print(Table("", columns, tuple(rows), decimals=(0, 0, 0, 0, 2, 2, 0, 1)).text())


if __name__ == "__main__":
    main()

r"""Exact algorithms for a first-order chain of labels, in numpy.

A sentence of tokens \(t = 0 .. n-1\) with labels \(z_t\) has the score

\[ s(z) = \text{start}[z_0] + \sum_{t>0} \text{transitions}[t, z_{t-1}, z_t] + \sum_t \text{evidence}[t, z_t] \]

and \(p(z \mid x) = \exp(s(z)) / Z\). In a hidden Markov model the three are \(\log p(z_0)\),
\(\log p(z_t = j \mid z_{t-1} = i)\) at `transitions[t, i, j]`, and \(\log p(x_t \mid z_t)\); then \(\log Z\) is the
log-likelihood. This is eq. hmm.joint.prob and appendix A.1 of Li et al. (ACL 2021), but the first label is drawn from
`start`: there is no label before the first token. The numbers need not be normalised: a CRF works as well.

All functions take the same four arrays. Sentences lie end to end, without padding:

- `start`: [labels] shared by all sentences, or [sentences, labels];
- `transitions`: [labels, labels] (from, to) shared by all tokens, or [tokens, labels, labels], where entry `t` leads
  from token `t - 1` to token `t`, and the entry of a sentence's first token is not used;
- `evidence`: [tokens, labels];
- `offsets`: [sentences + 1]; sentence `s` has the tokens `offsets[s]` up to, not including, `offsets[s + 1]`. A
  sentence may be empty: its log-partition is 0.

Minus infinity forbids a label or a move. float32 is read as it is; all sums are made in float64.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tagweave.chain import decoding, kernels
from tagweave.chain.compiling import FloatArray, Potentials
from tagweave.chain.threads import blocks_of, run_blocks, thread_limit
from tagweave.errors import DataError

Pairs = Literal["none", "sum", "sentence", "token"]

MODES = {
    "none": kernels.NO_PAIRS,
    "sum": kernels.PAIRS_SUMMED,
    "sentence": kernels.PAIRS_BY_SENTENCE,
    "token": kernels.PAIRS_BY_TOKEN,
}


@dataclass(frozen=True, eq=False)
class Posterior:
    """What one forward-backward pass knows about the labels of every sentence."""

    log_partition: NDArray[np.float64]
    r"""\(\log Z\), [sentences]: the log-likelihood of a hidden Markov model."""

    marginals: NDArray[np.floating[Any]]
    r"""\(p(z_t = i \mid x)\), [tokens, labels]; rows sum to one; of the float type of the potentials."""

    pair_marginals: NDArray[np.floating[Any]] | None
    r"""\(p(z_{t-1} = i, z_t = j \mid x)\) as [.., i, j]: summed over all tokens, over each sentence, or one by one."""


def forward_backward(
    start: ArrayLike, transitions: ArrayLike, evidence: ArrayLike, offsets: ArrayLike, *, pairs: Pairs = "none"
) -> Posterior:
    r"""Log-partition, marginals and pair marginals of every sentence, in one pass.

    Args:
        start, transitions, evidence, offsets: see the module.
        pairs: which pair marginals (expected transition counts) to keep: `none`, their `sum` over all tokens
            [labels, labels], the sum of each `sentence` [sentences, labels, labels], or those of each `token`
            [tokens, labels, labels], zero at a sentence's first token. Sums are float64.

    Raises:
        DataError: shapes do not fit, a number is NaN or plus infinity, or a sentence has no possible path.

    Time is \(O(\text{tokens} \cdot \text{labels}^2)\). A sentence is computed alone: others change nothing about it.

    >>> import numpy as np
    >>> start, transitions = np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.1, 0.9]])
    >>> evidence = np.log([[0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])
    >>> posterior = forward_backward(start, transitions, evidence, [0, 2, 3], pairs="sum")
    >>> np.exp(posterior.log_partition).round(3)
    array([0.25, 0.5 ])
    >>> posterior.marginals.round(3)
    array([[0.8 , 0.2 ],
           [0.74, 0.26],
           [0.5 , 0.5 ]])
    >>> posterior.pair_marginals.round(3)
    array([[0.72, 0.08],
           [0.02, 0.18]])
    """
    potentials, places = prepare(start, transitions, evidence, offsets)
    if pairs not in get_args(Pairs):
        raise DataError(f"pairs is {pairs!r}; it must be one of {', '.join(get_args(Pairs))}")
    log_partition, marginals, pair_marginals = run(potentials, places, MODES[pairs], thread_limit())
    check_results(log_partition, potentials, places)
    if pairs == "none":
        return Posterior(log_partition, marginals, None)
    return Posterior(log_partition, marginals, pair_marginals[0] if pairs == "sum" else pair_marginals)


def log_partition(
    start: ArrayLike, transitions: ArrayLike, evidence: ArrayLike, offsets: ArrayLike
) -> NDArray[np.float64]:
    r"""\(\log Z\) of every sentence, [sentences]. Arguments and errors are those of `forward_backward`.

    >>> log_partition([0.0, 0.0], [[0.0, -np.inf], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [0, 2]).round(4)
    array([1.0986])
    """
    return forward_backward(start, transitions, evidence, offsets).log_partition


def entropy(start: ArrayLike, transitions: ArrayLike, evidence: ArrayLike, offsets: ArrayLike) -> NDArray[np.float64]:
    r"""How undecided the labels of every sentence are: \(-\sum_z p(z \mid x) \log p(z \mid x)\) in nats, [sentences].

    Arguments and errors are those of `forward_backward`. Memory grows with tokens times labels squared.

    >>> entropy([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [0, 2]).round(4)
    array([1.3863])
    """
    potentials, places = prepare(start, transitions, evidence, offsets)
    log_partition, marginals, pairs = run(potentials, places, kernels.PAIRS_BY_TOKEN, thread_limit())
    check_results(log_partition, potentials, places)
    return entropies(potentials, places, log_partition, marginals, pairs)


def entropies(
    potentials: Potentials,
    offsets: NDArray[np.int64],
    log_partition: NDArray[np.float64],
    marginals: FloatArray,
    pairs: FloatArray,
) -> NDArray[np.float64]:
    """Entropies from what `run` gives with pairs by token; zero for a sentence without any possible path."""
    expected = np.empty_like(log_partition)
    kernels.expected_scores(potentials, offsets, marginals, pairs, expected)
    return np.where(np.isneginf(log_partition), 0.0, np.maximum(log_partition - expected, 0.0))


def best_path(start: ArrayLike, transitions: ArrayLike, evidence: ArrayLike, offsets: ArrayLike) -> NDArray[np.int64]:
    """The label sequence with the highest score of every sentence (Viterbi), [tokens].

    Of several equally good paths the one with the lower label at the first token where they differ is taken.

    Arguments and errors are those of `forward_backward`.

    >>> best_path([0.0, 0.0], [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [0, 2, 3])
    array([0, 1, 0])
    """
    potentials, places = prepare(start, transitions, evidence, offsets)
    _check_tokens(potentials, places)
    path = np.zeros(len(potentials[2]), np.int64)
    impossible = decoding.best_path(potentials, places, path)
    if impossible >= 0:
        raise _no_path(impossible, places)
    return path


def run(
    potentials: Potentials, offsets: NDArray[np.int64], mode: int, threads: int
) -> tuple[NDArray[np.float64], FloatArray, FloatArray]:
    """Log-partitions, marginals and pair marginals of prepared potentials; impossible is no error.

    The number of threads changes nothing about the results.
    """
    start, transitions, evidence = potentials
    tokens, labels = evidence.shape
    sentences = len(offsets) - 1
    blocks = blocks_of(offsets)
    rows, kind = {
        kernels.NO_PAIRS: (0, evidence.dtype),
        kernels.PAIRS_SUMMED: (len(blocks) - 1, np.dtype(np.float64)),
        kernels.PAIRS_BY_SENTENCE: (sentences, np.dtype(np.float64)),
        kernels.PAIRS_BY_TOKEN: (tokens, evidence.dtype),
    }[mode]
    log_partitions = np.empty(sentences)
    marginals, pairs = np.empty((tokens, labels), evidence.dtype), np.zeros((rows, labels, labels), kind)

    def work(block: int) -> None:
        own = slice(blocks[block], blocks[block + 1])
        own_pairs = {kernels.PAIRS_SUMMED: pairs[block : block + 1], kernels.PAIRS_BY_SENTENCE: pairs[own]}
        kernels.forward_backward(
            (start if len(start) == 1 else start[own], transitions, evidence),
            offsets[own.start : own.stop + 1],
            mode,
            (log_partitions[own], marginals, own_pairs.get(mode, pairs)),
        )

    run_blocks(work, len(blocks) - 1, threads)
    if mode == kernels.PAIRS_SUMMED:
        pairs = pairs.sum(0, keepdims=True)
    return log_partitions, marginals, pairs


def prepare(
    start: ArrayLike, transitions: ArrayLike, evidence: ArrayLike, offsets: ArrayLike
) -> tuple[Potentials, NDArray[np.int64]]:
    """Arrays as the kernels take them: one float type, contiguous, shared ones with a first axis of one; or DataError.

    Nothing is copied that already is of the right kind. Potentials of tokens may still hold NaN or plus infinity.
    """
    arrays = [np.asarray(start), np.asarray(transitions), np.asarray(evidence)]
    kind = np.result_type(np.float32, *(array.dtype for array in arrays))
    if kind not in (np.float32, np.float64):
        raise DataError(f"the numbers of a chain must be float32 or float64, these are {kind}")
    places = np.ascontiguousarray(offsets, np.int64)
    check_shapes(arrays[0].shape, arrays[1].shape, arrays[2].shape, places)
    first, moves, scores = (np.ascontiguousarray(array, kind) for array in arrays)
    potentials = (
        first if first.ndim == 2 else first[np.newaxis],
        moves if moves.ndim == 3 else moves[np.newaxis],
        scores,
    )
    _check_numbers("start", potentials[0])
    if moves.ndim == 2:
        _check_numbers("transitions", potentials[1])
    return potentials, places


def check_shapes(
    start: tuple[int, ...], transitions: tuple[int, ...], evidence: tuple[int, ...], offsets: NDArray[np.int64]
) -> None:
    """Raise a DataError unless the shapes of the potentials and the offsets fit together."""
    if len(evidence) != 2 or evidence[1] == 0:
        raise DataError(f"evidence must be [tokens, labels] with at least one label, its shape is {list(evidence)}")
    tokens, labels = evidence
    fits = offsets.ndim == 1 and offsets.size > 0 and offsets[0] == 0 and offsets[-1] == tokens
    if not fits or np.any(offsets[1:] < offsets[:-1]):
        raise DataError(f"offsets must go up from 0 to the number of tokens, here {tokens}, and never down")
    sentences = len(offsets) - 1
    if start not in ((labels,), (sentences, labels)):
        raise DataError(f"start must be [{labels}] or [{sentences}, {labels}], its shape is {list(start)}")
    if transitions not in ((labels, labels), (tokens, labels, labels)):
        raise DataError(
            f"transitions must be [{labels}, {labels}] or [{tokens}, {labels}, {labels}] (from, to), "
            f"their shape is {list(transitions)}"
        )


def _check_numbers(name: str, values: FloatArray, unused: NDArray[np.int64] | None = None) -> None:
    """Raise a DataError where a potential is NaN or plus infinity, but in the unused rows."""
    good = values < np.inf
    if unused is not None:
        good[unused] = True
    if not good.all():
        entry = np.argwhere(~good)[0].tolist()
        raise DataError(f"{name}{entry} is {values[tuple(entry)]}; only finite numbers and minus infinity are allowed")


def _check_tokens(potentials: Potentials, offsets: NDArray[np.int64]) -> None:
    """Raise a DataError where a potential of a token is NaN or plus infinity."""
    if len(potentials[1]) > 1:
        _check_numbers("transitions", potentials[1], offsets[:-1][offsets[1:] > offsets[:-1]])
    _check_numbers("evidence", potentials[2])


def check_results(log_partition: NDArray[np.float64], potentials: Potentials, offsets: NDArray[np.int64]) -> None:
    """Raise a DataError for a potential that is no number, or for the first sentence without any possible path.

    Either makes a log-partition that is not finite, so the potentials are only searched where there is one.
    """
    if np.isfinite(log_partition).all():
        return
    _check_tokens(potentials, offsets)
    impossible = np.flatnonzero(np.isneginf(log_partition))
    if impossible.size:
        raise _no_path(int(impossible[0]), offsets)


def _no_path(sentence: int, offsets: NDArray[np.int64]) -> DataError:
    return DataError(
        f"sentence {sentence} (tokens {offsets[sentence]} to {offsets[sentence + 1] - 1}) has no possible label "
        "sequence: each one meets a start, transition or evidence of minus infinity. "
        "Allow one, for instance by giving every label a small probability"
    )

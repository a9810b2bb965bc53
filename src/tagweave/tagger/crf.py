r"""A linear-chain conditional random field on top of a classifier, learned from soft labels.

The classifier gives each word \(t\) a score \(e_t[l]\) for each label. The field adds what labels say of each other:

\[ s(z) = \text{start}[z_0] + \sum_t e_t[z_t] + \sum_{t>0} \text{transitions}[z_{t-1}, z_t] + \text{end}[z_{n-1}],
\qquad p(z \mid x) = \exp(s(z)) / Z \]

Soft labels say how probable each label of a word is, so what is learned from is a distribution \(q\) over sequences of
labels. The objective is the expected log-likelihood \(E_q[\log p(z \mid x)] = E_q[s(z)] - \log Z\) (Safranchik et al.,
AAAI 2020). The score is a sum over words and pairs of neighbours, so only the probabilities of labels and of pairs are
needed, and where \(q\) is certain this is the ordinary log-likelihood.

Illegal moves of BIO labels are impossible, in \(Z\) and in what is predicted; `legal_pairs` says what \(q\) is then.
Words that are not known are summed out. Words whose document goes on outside of the batch have no first or last label.
The published objective takes neighbours to be independent where their pairs are not given.

Use it when entities have several words. It costs words times labels squared, little beside the encoder.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor, nn

from tagweave.annotations import Annotations
from tagweave.chain import forward_backward
from tagweave.chain.differentiable import log_partition
from tagweave.errors import StorageError
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels
from tagweave.storage import tensors_in
from tagweave.tagger.reading import legal_scores, likeliest_entities
from tagweave.tagger.targets import digest

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

NAME = "crf."
"""What the names of its parameters start with in a tagger's model."""
RATE_FACTOR = 100.0
"""How much faster its few parameters learn than the encoder; at the encoder's rate they would stay near zero."""


def expected_log_likelihood(
    start: Tensor,
    transitions: Tensor,
    end: Tensor,
    emissions: Tensor,
    unaries: Tensor,
    offsets: Ints,
    pairs: Tensor | None = None,
    known: Mask | None = None,
) -> Tensor:
    r"""\(E_q[\log p(z_\text{known} \mid x)]\) of every sequence, with gradients for all scores.

    Labels of words that are not known are summed out of \(p\) (a fuzzy CRF). Between two known words with labels
    \(i\) and \(j\), the score of the words of a gap is the logarithm \(G_{ij}\) of the sum over their labels, which
    enters as \(\sum_{ij} q_i q_j G_{ij}\); so a sequence without a known word has likelihood 1.

    Args:
        start, end: scores of the first and of the last label, of shape [labels] or [sequences, labels].
        transitions: scores of shape [labels, labels] (from, to).
        emissions: scores of shape [words, labels]; sequences lie end to end.
        unaries: probabilities of labels, of shape [words, labels]; those of unknown words are not read.
        offsets: where sequences start, of shape [sequences + 1].
        pairs: probabilities of the labels of a word and the one before it, at `[word, before, label]`; those of the
            first word of a sequence, and next to an unknown word, are not read. None takes neighbours to be
            independent: the outer product of their unaries.
        known: of shape [words]; None if all are.

    Returns:
        Of shape [sequences]. Scores may be minus infinity, which forbids a label or pair; the result is minus infinity
        where what is forbidden has a probability above zero.

    >>> zeros = torch.zeros(2)
    >>> unaries = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    >>> emissions = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    >>> expected_log_likelihood(zeros, torch.zeros(2, 2), zeros, emissions, unaries, np.array([0, 2])).exp()
    tensor([0.4404])
    """
    labels = emissions.shape[1]
    lengths = np.diff(offsets)
    sequences, filled = len(lengths), np.flatnonzero(lengths)
    first, last = (torch.from_numpy(places[filled]).to(emissions.device) for places in (offsets[:-1], offsets[1:] - 1))
    sequence = torch.from_numpy(np.repeat(np.arange(sequences), lengths)).to(emissions.device)
    start, end = start.expand(sequences, labels), end.expand(sequences, labels)
    evidence = emissions.index_add(0, last, end[filled])
    seen = torch.ones(len(emissions), dtype=torch.bool) if known is None else torch.from_numpy(known)
    seen = seen.to(emissions.device)
    unaries = torch.where(seen[:, None], unaries, 0)
    joined = seen & seen.roll(1)
    joined[first] = False
    if pairs is None:
        pairs = unaries.roll(1, 0)[:, :, None] * unaries[:, None, :]
    pairs = torch.where(joined[:, None, None], pairs, 0)
    scores = _expected(unaries, evidence).sum(1) + _expected(pairs, transitions).sum((1, 2))
    scores = scores.index_add(0, first, _expected(unaries[first], start[filled]).sum(1))
    total = scores.new_zeros(sequences).index_add(0, sequence, scores)
    if known is not None and not known.all():
        total = total + _gaps(start, transitions, evidence, unaries, offsets, known)
    return total - log_partition(start, transitions, evidence, offsets)


def _expected(probabilities: Tensor, scores: Tensor) -> Tensor:
    """Products in which probability zero makes nothing of any score."""
    return probabilities * torch.where(probabilities > 0, scores, 0)


def _gaps(start: Tensor, transitions: Tensor, evidence: Tensor, unaries: Tensor, offsets: Ints, known: Mask) -> Tensor:
    """Expected scores of the runs of unknown words with the moves into and out of them, added up by sequence.

    Every run is a chain of its own for each pair of labels of the words at its sides; at the edge of a sequence there
    is no word, and label 0 stands for it.
    """
    labels = evidence.shape[1]
    edges = np.zeros(len(known) + 1, bool)
    edges[offsets] = True
    opens = np.flatnonzero(~known & (edges[:-1] | np.append(True, known[:-1])))
    closes = np.flatnonzero(~known & (edges[1:] | np.append(known[1:], True))) + 1
    sequence = np.searchsorted(offsets, opens, side="right") - 1
    at_start, at_end = (torch.from_numpy(edges[places]).to(evidence.device) for places in (opens, closes))
    nothing = torch.eye(labels, dtype=unaries.dtype, device=unaries.device)[0]
    before = torch.where(at_start[:, None], nothing, unaries[opens - 1])
    after = torch.where(at_end[:, None], nothing, unaries[np.minimum(closes, len(known) - 1)])
    into = torch.where(at_start[:, None, None], start[sequence][:, None, :], transitions)
    out_of = torch.where(at_end[:, None, None], 0, transitions.T)
    copies = labels * labels
    lengths = np.repeat(closes - opens, copies)
    places = np.append(0, np.cumsum(lengths))
    words = np.repeat(np.repeat(opens, copies) - places[:-1], lengths) + np.arange(places[-1])
    chains = evidence[words].index_add(
        0, torch.from_numpy(places[1:] - 1).to(evidence.device), out_of.repeat(1, labels, 1).flatten(0, 1)
    )
    values = log_partition(into.repeat_interleave(labels, 1).flatten(0, 1), transitions, chains, places)
    weights = before[:, :, None] * after[:, None, :]
    sums = _expected(weights, values.reshape(weights.shape)).sum((1, 2))
    return sums.new_zeros(len(offsets) - 1).index_add(0, torch.from_numpy(sequence).to(evidence.device), sums)


def legal_pairs(rows: Floats, offsets: Ints, opens: Mask, known: Mask) -> tuple[Floats, Floats]:
    r"""What soft BIO labels say of neighbours, if no entity continues that has not begun.

    Of all distributions over pairs that have the rows as marginals and give nothing to an illegal pair, this is the one
    of highest entropy: I-X continues the entities of type X that the word before may be in, and everything else is
    independent. Where a row gives I-X more than the row before gives to X, no such distribution exists; what is too
    much is read as B-X, as `lenient` decoding does. The rows of chain models never have that.

    Args:
        rows: probabilities of BIO labels, of shape [words, labels].
        offsets: where sequences start, of shape [sequences + 1].
        opens: sequences before which there is no word (rather than one that is not read), of shape [sequences].
        known: words whose rows say something, of shape [words].

    Returns:
        unaries of shape [words, labels], and pairs of shape [words, labels, labels] as `expected_log_likelihood` takes
        them.

    >>> rows = np.array([[0.5, 0.5, 0], [0.5, 0, 0.5]], np.float32)
    >>> legal_pairs(rows, np.array([0, 2]), np.array([True]), np.array([True, True]))[1][1].tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """
    filled = np.diff(offsets) > 0
    first, beginning = offsets[:-1][filled], opens[filled]
    by_type = rows[:, 1::2] + rows[:, 2::2]
    before = np.where(np.roll(known, 1)[:, None], np.roll(by_type, 1, 0), np.inf)
    before[first] = np.where(beginning, 0, np.inf)[:, None]
    stays = np.minimum(rows[:, 2::2], before)
    unaries = rows.copy()
    unaries[:, 1::2] += rows[:, 2::2] - stays
    unaries[:, 2::2] = stays
    share = np.divide(stays, before, out=np.zeros_like(stays), where=before > 0)
    opening = unaries.copy()
    opening[:, 2::2] = 0
    total = opening.sum(axis=1, keepdims=True)
    np.divide(opening, total, out=opening, where=total > 0)
    earlier = np.roll(unaries, 1, 0)
    rest = earlier.copy()
    rest[:, 1:] *= np.repeat(1 - share, 2, axis=1)
    pairs = rest[:, :, None] * opening[:, None, :]
    for inside in range(2, rows.shape[1], 2):
        pairs[:, inside - 1 : inside + 1, inside] = earlier[:, inside - 1 : inside + 1] * share[:, [inside // 2 - 1]]
    pairs[first] = 0
    return unaries, pairs


class Crf(nn.Module):
    """The scores of first, neighbouring and last labels; what is illegal is impossible. They start at zero."""

    def __init__(self, labels: LabelSet) -> None:
        super().__init__()
        self.labels = labels
        self.start = nn.Parameter(torch.zeros(len(labels)))
        self.transitions = nn.Parameter(torch.zeros(len(labels), len(labels)))
        self.end = nn.Parameter(torch.zeros(len(labels)))

    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Start [labels], transitions [labels, labels] and end [labels], minus infinity where they are illegal."""
        starts, moves = (torch.from_numpy(scores).to(self.start.device) for scores in legal_scores(self.labels))
        return self.start + starts, self.transitions + moves, self.end

    @torch.no_grad()
    def restore(self, folder: Path) -> None:
        """Take up the scores from the safetensors of a tagger.

        Raises:
            StorageError: they are not there, or of another shape.
        """
        path = folder / "model.safetensors"
        shapes = tensors_in(path)
        with safe_open(path, "pt") as file:
            for name, parameter in self.named_parameters():
                if shapes.get(f"{NAME}{name}") != tuple(parameter.shape):
                    raise StorageError(f"{path} has no scores of neighbouring labels {NAME}{name} of the right shape")
                parameter.copy_(file.get_tensor(f"{NAME}{name}"))

    @torch.no_grad()
    def read(self, offsets: Ints, emissions: Floats) -> tuple[SoftLabels, Annotations]:
        """Soft labels by forward-backward, and the entities of the likeliest sequence of labels of each document."""
        start, transitions, end = (part.cpu().numpy() for part in self.scores())
        evidence = emissions.copy()
        evidence[(offsets[1:] - 1)[np.diff(offsets) > 0]] += end
        marginals = forward_backward(start, transitions, evidence, offsets).marginals.astype(np.float32)
        soft_labels = SoftLabels(self.labels.types, offsets, marginals)
        return soft_labels, likeliest_entities(start, transitions, evidence, soft_labels)


@dataclass(eq=False)
class SoftSequences:
    """The expected log-likelihood of known words under a CRF.

    The words of a batch that follow each other in a document are one sequence, in whatever order windows come. Where
    the words before or after it are not in the batch, nothing is said of its first or last label.
    """

    rows: Floats
    """Label probabilities of shape [words, labels]."""
    known: Mask
    offsets: Ints
    """Where documents start, of shape [documents + 1]."""
    field: Callable[[], Crf]
    """What is trained."""

    @property
    def inside(self) -> Mask:
        """Words that are more likely in an entity than not."""
        inside: Mask = self.rows[:, 0] < 0.5
        return inside

    def loss(self, windows: Ints, words: Ints, outputs: Tensor) -> tuple[Tensor, float]:
        """See `Objective.loss`."""
        order = np.argsort(words)
        words, outputs = words[order], outputs[torch.from_numpy(order).to(outputs.device)]
        known = self.known[words]
        edges = np.isin(words, self.offsets)
        ends = np.isin(words + 1, self.offsets)
        starts = np.flatnonzero(edges | (np.diff(words, prepend=-2) != 1))
        offsets = np.append(starts, len(words))
        opens, closes = edges[starts], ends[offsets[1:] - 1]
        unaries, pairs = (outputs.new_tensor(part) for part in legal_pairs(self.rows[words], offsets, opens, known))
        start, transitions, end = self.field().scores()
        start = torch.where(outputs.new_tensor(opens).bool()[:, None], start, 0)
        end = outputs.new_tensor(closes)[:, None] * end
        values = expected_log_likelihood(start, transitions, end, outputs, unaries, offsets, pairs, known)
        return -values.sum(), float(known.sum())

    def after(self, step: int) -> None:
        """Nothing changes from step to step."""

    def fingerprint(self) -> bytes:
        """Targets and which of them are known."""
        return digest(self.rows, self.known)

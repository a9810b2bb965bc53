"""The conditional hidden Markov model: an HMM whose matrices depend on the embedding of each token."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.embeddings import embed
from tagweave.encoder import DEFAULT, require_bert
from tagweave.evaluation import evaluate
from tagweave.label_models.anchors import Counts, anchor_labels
from tagweave.label_models.base import LabelModel, not_fitted
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.hmm import HMM
from tagweave.label_models.inference import Decoder, Potentials, infer
from tagweave.label_models.tables import confusion_tables, transition_table
from tagweave.labels import StateSpace
from tagweave.observations import ABSTAIN, Observations, Probabilities, observe
from tagweave.progress import say, track
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels

_MISSED, _TRUST = (0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0), (0.25, 0.5, 1.0)
"""Values of `missed` and `trust` among which dev chooses."""

if TYPE_CHECKING:
    from tagweave.label_models.conditional_network import Batch, ConditionalNetwork


@dataclass(kw_only=True)
class ConditionalModel(LabelModel):
    """What the conditional HMM and its i.i.d. variant share; see `ConditionalHMM`.

    Attributes:
        encoder: name of the frozen encoder, see `tagweave.encoder.locate`.
        layers: its hidden layers that make an embedding, side by side; -1 is the last.
        context: neighbours on each side whose embeddings a token also sees.
        epochs: passes over the corpus; with dev the best of them is kept.
        learning_rate: highest rate of Adam, falling linearly to zero.
        batch_tokens: most tokens in a batch, or one longer document.
        pull: penalty on the squared weights that see embeddings; it holds every token near the shared matrices.
        missed: probability that all sources are silent on an entity: what an entity costs that nobody voted for,
            once for the whole of it. With dev it is chosen there, and this is the value in training. None reads the
            silence of all sources as votes for O.
        missed_taught: the same where a tagger is among the sources, which tells of entities that the others miss.
        trust: weight of what a source says that gives a probability for every label, chosen on dev in the same way.
        edge: probability that an entity goes on where the sources begin or cease to speak.
        sharpening: weight of the entropy of the label sequence in the objective, `log Z - sharpening * H`. 0 holds the
            posteriors fixed (generalised EM), 1 does not, as in the published code.
        by_move: whether a token moves each transition by itself, as in the paper, or only the label it leads to.
        emissions: `shared` keeps those that the `HMM` learns, `token` lets the embedding change them too.
        observation_smoothing: with `token` emissions, the paper's epsilon: a source that is silent where another
            speaks votes O with this weight, and all entity labels alike with the rest. None lets it abstain.
        strength, smoothing: of the HMM that gives the first matrices.
        probabilities: how a source is read that gives a probability for every label.
        decoding: entities from the best path or from the most probable label of each token.
        patience: with dev, epochs without gain after which it stops; None runs all.
    """

    chained: ClassVar[bool]

    state_space: StateSpace = "bio"
    encoder: str = DEFAULT
    layers: tuple[int, ...] = (2, 4, 6)
    context: int = 1
    epochs: int = 5
    learning_rate: float = 1e-3
    batch_tokens: int = 4096
    pull: float = 0.1
    missed: float | None = 0.3
    missed_taught: float = 0.1
    trust: float = 0.5
    edge: float = 0.02
    sharpening: float = 0.0
    by_move: bool = False
    emissions: Literal["shared", "token"] = "shared"
    observation_smoothing: float | None = None
    strength: float = 1.0
    smoothing: float = 1.0
    probabilities: Probabilities = "posteriors"
    decoding: Decoder = "viterbi"
    patience: int | None = None
    statistics_: Counts | None = field(default=None, init=False, repr=False)
    scale_: NDArray[np.float32] | None = field(default=None, init=False, repr=False)
    network_: Any = field(default=None, init=False, repr=False)

    def _features(self, corpus: Corpus) -> NDArray[np.float16]:
        return embed(corpus, self.encoder, layers=self.layers)

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        [corpus] = parts
        require_bert()
        from tagweave.training import LoopSettings, TrainingLoop

        hmm = HMM(
            state_space=self.state_space,
            silence=self.silence,
            strength=self.strength,
            smoothing=self.smoothing,
            probabilities=self.probabilities,
        ).fit(corpus)
        learned = hmm.learned()
        if not self.chained:
            frequencies = np.bincount(anchor_labels(corpus, self.state_space), minlength=len(hmm.labels)) + 1.0
            learned = replace(learned, start=frequencies / frequencies.sum())
        features = self._features(corpus)
        self._take(learned, _scale(features))
        self.network_.trust.fill_(self.trust)
        if self.missed is not None:
            self.network_.missed.fill_(self.missed_taught if _is_taught(corpus) else self.missed)
        network = self._network()
        data = _Data(self, corpus, features)
        best: tuple[float, dict[str, Any]] = (-1.0, {})
        settings = LoopSettings(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            warmup=0.0,
            weight_decay=0.0,
            clip=float("inf"),
            seed=self.seed,
        )
        loop = TrainingLoop(network, settings, data.batches, data.loss, data.describe)
        loss = weight = 0.0
        for step in track(loop, "conditional HMM", self.epochs * len(data.batches(0))):
            loss, weight = loss + step.loss * step.weight, weight + step.weight
            if not step.epoch_ends:
                continue
            record = {"epoch": step.epoch + 1, "loss": loss / max(weight, 1)}
            loss = weight = 0.0
            if dev is not None:
                record["f1"] = evaluate(dev, self.predict(dev), bootstrap=0).f1
                if record["f1"] > best[0]:
                    best = record["f1"], {name: value.clone() for name, value in network.state_dict().items()}
            self.history_.append(record)
            say(f"{self.name}: " + ", ".join(f"{name} {value:.4g}" for name, value in record.items()))
            if self._stops():
                break
        if best[1]:
            network.load_state_dict(best[1])
        if dev is not None:
            self._tune(dev)

    def _tune(self, dev: Corpus) -> None:
        """Take the `missed` and `trust` with the best F1 on dev, on a tie those nearest to the settings."""
        network, scores = self._network(), {}
        usual = [float(network.missed), float(network.trust)]
        for missed in _MISSED if self.missed is not None else (1.0,):
            for trust in _TRUST if _is_taught(dev) else (self.trust,):
                network.missed.fill_(missed)
                network.trust.fill_(trust)
                scores[missed, trust] = evaluate(dev, self.predict(dev), bootstrap=0).f1
        best = max(scores, key=lambda pair: (scores[pair], -float(np.abs(np.log(pair) - np.log(usual)).sum())))
        network.missed.fill_(best[0])
        network.trust.fill_(best[1])
        self.history_.append({"missed": best[0], "trust": best[1], "f1": scores[best]})
        say(f"{self.name}: f1 {scores[best]:.4g} on dev with missed {best[0]:g} and trust {best[1]:g}")

    def _stops(self) -> bool:
        """Whether the last epochs brought nothing on dev."""
        scores = [record["f1"] for record in self.history_ if "f1" in record]
        return self.patience is not None and bool(scores) and len(scores) - 1 - int(np.argmax(scores)) >= self.patience

    def _take(self, statistics: Counts, scale: NDArray[np.float32]) -> None:
        """Build the network on an anchor's statistics, and mean and inverse deviation of the embeddings."""
        from tagweave.label_models.conditional_network import ConditionalNetwork, Shape

        self.statistics_, self.scale_ = statistics, scale
        shape = Shape(
            width=scale.shape[1],
            context=self.context,
            chained=self.chained,
            by_move=self.by_move,
            token_emissions=self.emissions == "token",
            missed=self.missed,
            edge=self.edge,
        )
        self.network_ = ConditionalNetwork(shape, self.labels, statistics)

    def learned(self) -> Counts:
        """Start, transitions and emissions where the embedding says nothing; rows sum to one."""
        if self.statistics_ is None:
            raise not_fitted(self.name)
        return self.statistics_

    def _network(self) -> "ConditionalNetwork":
        self._fitted()
        network: ConditionalNetwork = self.network_
        return network

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        import torch

        rows = self._features(corpus) if features is None else features
        data, network = _Data(self, corpus, rows), self._network()
        parts = []
        with torch.no_grad():
            for documents in data.in_order():
                parts.append([tensor.double().numpy() for tensor in network(data.batch(documents))])
        empty = [np.zeros((0, *self._network().legal.shape[:axes])) for axes in (1, 2, 1)]
        joined = [np.concatenate(arrays) for arrays in (zip(*parts, strict=True) if parts else [[e] for e in empty])]
        return infer(Potentials(*joined), corpus, self.labels, self.decoding)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Statistics of the anchor, scale of the embeddings, weights of the network."""
        weights = {f"network.{name}": p.detach().numpy() for name, p in self._network().named_parameters()}
        weights.update(missed=self._network().missed.numpy(), trust=self._network().trust.numpy())
        weights["scale"] = np.asarray(self.scale_)
        return {**dict(zip(("start", "transitions", "emissions"), self.learned().arrays(), strict=True)), **weights}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        import torch

        self._take(Counts(*(parameters[n] for n in ("start", "transitions", "emissions"))), parameters["scale"])
        for name, weights in self._network().named_parameters():
            weights.data = torch.from_numpy(parameters[f"network.{name}"])
        for name in ("missed", "trust"):
            getattr(self._network(), name).copy_(torch.from_numpy(parameters[name]))

    def tables(self) -> list[Table]:
        """Confusion of each source and transitions where the embedding says nothing."""
        learned = self.learned()
        confusion = confusion_tables(self._fitted()[1], learned.emissions, self.labels)
        return [*confusion, transition_table(learned.start, learned.transitions, self.labels)]


@dataclass(kw_only=True)
class ConditionalHMM(ConditionalModel):
    r"""The conditional hidden Markov model of Li et al. (ACL 2021), section 4.2.

    A hidden Markov model whose matrices depend on the embedding \(e_t\) of each token:

    \[ p(z, x \mid e) = \prod_t p(z_t \mid z_{t-1}, e_t) \prod_t \prod_k \sum_j \Phi_{k z_t j}(e_t)\, x_{tkj},
       \qquad p(z_t = j \mid z_{t-1} = i, e_t) = \mathrm{softmax}_j (\log \Psi_{ij} + b_{ij} + w_j \cdot e_t) \]

    with \(z_0\) = O. \(\Psi\) and \(\Phi\) start as what an `HMM` learns from the same votes; weights start at
    zero. The gradient of \(\log Z\) comes from one forward-backward pass, which is generalised EM.

    Where the paper's model is free to drift this one is held: emissions are shared (`emissions="token"` frees them),
    the weights are pulled to zero, and the silence of all sources is neither a vote for O nor nothing, but has a
    probability of its own, `missed`. So the model learns from the embeddings where sources miss entities and where
    entities end. Settings near the paper's: `layers=(-1,), context=0, by_move=True, emissions="token", missed=None,
    observation_smoothing=0.01, sharpening=1`.

    Use it when there is text to learn from and sources miss much. It costs about a minute a million words and epoch,
    and the embeddings once.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "PER")], "c": [Span(3, 4, "LOC")]}
    >>> tokens = ["Ada", "Lovelace", "left", "Oslo"]
    >>> corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(9)])
    >>> [span[:3] for span in ConditionalHMM(epochs=1).fit(corpus).predict(corpus)[0].entities]
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """

    name: ClassVar[str] = "chmm"
    chained: ClassVar[bool] = True


@dataclass(kw_only=True)
class ConditionalIID(ConditionalModel):
    """The i.i.d. variant of `ConditionalHMM`: a label depends on the embedding of its token, not on the label before.

    Illegal moves (I-X after O, say) stay forbidden. Li et al. (2021) use it to show what transitions are worth.
    """

    name: ClassVar[str] = "chmm-iid"
    chained: ClassVar[bool] = False


class _Data:
    """Votes and embeddings of a corpus, cut into batches for a model."""

    def __init__(self, model: ConditionalModel, corpus: Corpus, features: NDArray[Any]) -> None:
        self._model, self._corpus, self._features = model, corpus, features
        corpus = without_crossings(corpus)
        observations = observe(corpus, model.state_space, model.silence, model.probabilities)
        self._silent = _all_silent(corpus, model.state_space)
        if model.missed is not None:
            votes = np.where(self._silent[:, None], ABSTAIN, observations.votes).astype(np.int8)
            observations = replace(observations, votes=votes)
        self._observations = observations
        self._smoothed = _smoothed(corpus, observations) if model.observation_smoothing is not None else None
        emissions = model.learned().emissions
        self._judged = _only_posteriors(observations).log_evidence(emissions)
        self._voted = observations.log_evidence(emissions) - self._judged
        if model.emissions == "token":
            self._voted[:] = 0

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """Documents in random order, cut into batches."""
        chance = np.random.default_rng([self._model.seed, epoch])
        return self._cut(chance.permutation(len(self._corpus)))

    def in_order(self) -> list[NDArray[np.int64]]:
        """Documents in their order, cut into batches."""
        return self._cut(np.arange(len(self._corpus)))

    def _cut(self, documents: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if not len(documents):
            return []
        lengths = np.diff(self._corpus.offsets)[documents]
        place = np.cumsum(lengths) - lengths
        return np.split(documents, np.flatnonzero(np.diff(place // self._model.batch_tokens)) + 1)

    def batch(self, documents: NDArray[np.int64]) -> "Batch":
        """Everything about some documents."""
        import torch

        from tagweave.label_models.conditional_network import Batch

        lengths = np.diff(self._corpus.offsets)[documents]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self._corpus.offsets[documents] - offsets[:-1], lengths) + np.arange(offsets[-1])
        mean, inverse = self._model.scale_  # type: ignore[misc]
        embeddings = (self._features[rows].astype(np.float32) - mean) * inverse
        return Batch(
            torch.from_numpy(embeddings),
            offsets,
            torch.from_numpy(self._voted[rows] + float(self._model.network_.trust) * self._judged[rows]).float(),
            torch.from_numpy(self._said(rows)).float(),
            torch.from_numpy(self._silent[rows]),
        )

    def _said(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Votes as distributions, of shape [rows, sources, labels]; empty where emissions are shared."""
        observations, size = self._observations, len(self._observations.labels)
        if self._model.emissions == "shared":
            return np.zeros((len(rows), 0, size))
        part = replace(observations, votes=observations.votes[rows], soft=observations.soft[rows])
        said = np.stack([part.source(k) for k in range(len(part.sources))], axis=1)
        if self._smoothed is not None:
            epsilon = self._model.observation_smoothing or 0.0
            spread = np.array([epsilon, *[(1 - epsilon) / size] * (size - 1)])
            said[self._smoothed[rows]] = spread / spread.sum()
        said[:, observations.posteriors] = 0
        return said

    def loss(self, documents: NDArray[np.int64]) -> "tuple[Any, float]":
        """The negative objective of some documents, summed, and their tokens."""
        from tagweave.chain.differentiable import entropy, log_partition

        batch, network = self.batch(documents), self._model._network()
        potentials = network.forward(batch)
        chain = (potentials.start, potentials.transitions, potentials.evidence, batch.offsets)
        objective = log_partition(*chain).sum()
        if self._model.sharpening:
            objective = objective - self._model.sharpening * entropy(*chain).sum()
        tokens = float(batch.offsets[-1])
        return self._model.pull * tokens * network.penalty() - objective, tokens

    def describe(self, documents: NDArray[np.int64]) -> str:
        """The ids of the documents in a batch."""
        return ", ".join(repr(self._corpus.ids[int(index)].as_py()) for index in documents)


def _is_taught(corpus: Corpus) -> bool:
    """Whether a source gives a probability for every label."""
    return any(isinstance(column, SoftLabels) for column in corpus.sources.values())


def _only_posteriors(observations: Observations) -> Observations:
    """The observations without all that is a vote."""
    votes = np.full_like(observations.votes, ABSTAIN)
    soft = observations.soft.copy()
    soft[:, ~np.isin(observations.soft_positions, observations.posteriors)] = 0
    return replace(observations, votes=votes, soft=soft)


def _all_silent(corpus: Corpus, state_space: StateSpace) -> NDArray[np.bool_]:
    """Tokens on which sources ran and none says anything, of shape [tokens]."""
    votes = observe(corpus, state_space, "always").votes
    ran = [column.ran for column in corpus.sources.values() if isinstance(column, Annotations)]
    somebody = np.any(ran, axis=0) if ran else np.zeros(len(corpus), bool)
    silent: NDArray[np.bool_] = np.repeat(somebody, np.diff(corpus.offsets)) & (votes == ABSTAIN).all(axis=1)
    return silent


def _smoothed(corpus: Corpus, observations: Observations) -> NDArray[np.bool_]:
    """Where a source abstains because another one speaks, of shape [tokens, sources]."""
    never = observe(corpus, observations.labels.state_space, "never")
    abstains = np.zeros((len(never.votes), len(never.sources)), bool)
    abstains[:, never.hard] = (observations.votes == ABSTAIN) & (never.votes != ABSTAIN)
    return abstains


def _scale(features: NDArray[Any], chunk: int = 1 << 14) -> NDArray[np.float32]:
    """Mean and inverse standard deviation of each column, of shape [2, width]."""
    total = np.zeros((2, features.shape[1]))
    for first in range(0, len(features), chunk):
        part = features[first : first + chunk].astype(np.float64)
        total += np.stack([part.sum(axis=0), np.square(part).sum(axis=0)])
    mean, square = total / max(len(features), 1)
    deviation = np.sqrt(np.maximum(square - np.square(mean), 0)) + 1e-3
    return np.stack([mean, 1 / deviation]).astype(np.float32)

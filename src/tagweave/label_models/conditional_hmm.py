"""The conditional hidden Markov model: an HMM whose matrices depend on the embedding of each token."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.encoder import DEFAULT, require_bert
from tagweave.encoder.embeddings import embed
from tagweave.label_models.anchors import Counts, anchor_labels
from tagweave.label_models.base import LabelModel, not_fitted
from tagweave.label_models.choosing import Group
from tagweave.label_models.conditional_data import ConditionalData
from tagweave.label_models.confusion import WEIGHT
from tagweave.label_models.hmm import HMM
from tagweave.label_models.inference import Decoder, Potentials, infer
from tagweave.label_models.restoring import Axis
from tagweave.label_models.tables import confusion_tables, transition_table
from tagweave.labels import StateSpace
from tagweave.observations import Silence
from tagweave.progress import say, track
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels

_MISSED = (0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
"""Values of `missed` among which dev chooses."""

if TYPE_CHECKING:
    from tagweave.label_models.conditional_network import ConditionalNetwork
    from tagweave.training import TrainingLoop


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
        trust: share of a source that gives a probability for every label in what is expected of a token before any
            vote; the network has the rest, as in `ConfusionModel`. Both have read the same text, so their opinions are
            pooled, not multiplied. With dev chosen there, together with `missed`.
        weight: weight of the votes of all other sources, as an exponent of their probability. Sources that repeat each
            other are no independent witnesses, and many of them outvote what the text says. None learns with 1; then
            dev chooses, or without dev it is one over the mean number of votes for an entity on the tokens that have
            any: all votes of a token together count as one.
        edge: probability that an entity goes on where the sources begin or cease to speak.
        sharpening: weight of the entropy of the label sequence in the objective, `log Z - sharpening * H`. 0 holds the
            posteriors fixed (generalised EM), 1 does not, as in the published code.
        by_move: whether a token moves each transition by itself, as in the paper, or only the label it leads to.
        emissions: `shared` keeps those that the `HMM` learns, `token` lets the embedding change them too.
        observation_smoothing: with `token` emissions, the paper's epsilon: a source that is silent where another
            speaks votes O with this weight, and all entity labels alike with the rest. None lets it abstain.
        strength, smoothing: of the HMM that gives the first matrices.
        decoding: entities from the best path or from the most probable label of each token.
        patience: with dev, epochs without gain after which it stops; None runs all.
    """

    tempers: ClassVar[bool] = False
    applied: ClassVar[tuple[str, ...]] = ("missed", "trust", "weight")
    default_silence: ClassVar[Silence] = "never"
    weighs_silence: ClassVar[bool] = True
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
    weight: float | None = None
    edge: float = 0.02
    sharpening: float = 0.0
    by_move: bool = False
    emissions: Literal["shared", "token"] = "shared"
    observation_smoothing: float | None = None
    strength: float = 1.0
    smoothing: float = 1.0
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
        hmm = HMM(
            state_space=self.state_space,
            silence=self.silence_,
            strength=self.strength,
            smoothing=self.smoothing,
            probabilities=self.probabilities,
            trust=self.trust,
        ).fit(corpus)
        learned = hmm.learned()
        if not self.chained:
            frequencies = np.bincount(anchor_labels(corpus, self.state_space), minlength=len(hmm.labels)) + 1.0
            learned = replace(learned, start=frequencies / frequencies.sum())
        features = self._features(corpus)
        self._take(learned, _scale(features))
        network = self._network()
        data = ConditionalData(self, corpus, features)
        f1 = None if dev is None else self._scorer(dev)
        best: tuple[float, dict[str, Any]] = (-1.0, {})
        loop = self._loop(data, self.epochs)
        loss = weight = 0.0
        for step in track(loop, "conditional HMM", self.epochs * len(data.batches(0))):
            loss, weight = loss + step.loss * step.weight, weight + step.weight
            if not step.epoch_ends:
                continue
            record = {"epoch": step.epoch + 1, "loss": loss / max(weight, 1)}
            loss = weight = 0.0
            if f1 is not None:
                record["f1"] = f1(self.chosen_)
                if record["f1"] > best[0]:
                    best = record["f1"], {name: value.clone() for name, value in network.state_dict().items()}
            self.history_.append(record)
            say(f"{self.name}: " + ", ".join(f"{name} {value:.4g}" for name, value in record.items()))
            if self._stops():
                break
        if best[1]:
            network.load_state_dict(best[1])
        if dev is None and self.weight is None:
            votes = data.mean_votes()
            self.chosen_["weight"] = 1 / votes
            say(f"{self.name}: {votes:.2g} votes a token where there are any, so each weighs {1 / votes:.2g}")

    def _given(self) -> dict[str, float]:
        return super()._given() | ({"weight": 1.0} if self.weight is None else {})

    def _choices(self, judged: bool) -> Iterator[Group]:
        missed: Group = {} if self.missed is None else {"missed": _MISSED}
        yield {**missed, **next(super()._choices(judged), {})}
        yield {"weight": WEIGHT}

    def _loop(self, data: ConditionalData, epochs: int) -> "TrainingLoop[NDArray[np.int64]]":
        from tagweave.training import LoopSettings, TrainingLoop

        settings = LoopSettings(
            epochs=epochs,
            learning_rate=self.learning_rate,
            warmup=0.0,
            weight_decay=0.0,
            clip=float("inf"),
            seed=self.seed,
        )
        return TrainingLoop(self._network(), settings, data.batches, data.loss, data.describe)

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
            edge=self.edge,
        )
        self.network_ = ConditionalNetwork(shape, self.labels, statistics, scale)

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
        data, network = ConditionalData(self, corpus, rows), self._network()
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
        weights["scale"] = np.asarray(self.scale_)
        return {**dict(zip(("start", "transitions", "emissions"), self.learned().arrays(), strict=True)), **weights}

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        sources, labels = len(self._fitted()[1]), len(self.labels)
        outputs = labels * labels if self.by_move and self.chained else labels
        shapes: dict[str, tuple[Axis, ...]] = {
            "start": ("labels",),
            "transitions": ("labels", "labels"),
            "emissions": ("sources", "labels", "labels"),
            "scale": (2, "width"),
            "network.bias": ("labels", "labels") if self.chained else ("labels",),
            "network.to_moves.weight": (outputs * (2 * self.context + 1), "width"),
        }
        if self.emissions == "token":
            shapes["network.to_emissions.weight"] = (sources * labels * labels, "width")
            shapes["network.to_emissions.bias"] = (sources * labels * labels,)
        return shapes

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        import torch

        self._take(Counts(*(parameters[n] for n in ("start", "transitions", "emissions"))), parameters["scale"])
        for name, weights in self._network().named_parameters():
            weights.data = torch.from_numpy(parameters[f"network.{name}"])

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

    Use it when there is text to learn from and sources miss much. It costs about three seconds a million words and
    epoch, and the embeddings once.

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


def _scale(features: NDArray[np.float16]) -> NDArray[np.float32]:
    """Mean and inverse standard deviation of each column, of shape [2, width]."""
    from tagweave.label_models.projection import moments

    mean, square = moments(features) / max(len(features), 1)
    deviation = np.sqrt(np.maximum(square - np.square(mean), 0)) + 1e-3
    return np.stack([mean, 1 / deviation]).astype(np.float32)

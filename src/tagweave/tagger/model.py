"""`Tagger`: a token classifier that learns from soft labels."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tagweave import __version__
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.encoder import DEFAULT, Encoder, Precision, WordPieces, device, require_bert
from tagweave.encoder.classifier import all_word_logits, softmax, states_of, word_logits
from tagweave.encoder.frozen import Cut, Kept, KeptStates, frozen_layers
from tagweave.encoder.model_folders import quiet
from tagweave.encoder.windows import Windows
from tagweave.errors import NotFittedError, StorageError, UsageError
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels
from tagweave.storage import as_saved, new_folder, read_config, records_in, types_in, write_json
from tagweave.tagger.card import CONFIG, model_card
from tagweave.tagger.reading import legal_scores, likeliest_entities
from tagweave.tagger.targets import Objective, SoftTargets, targets

if TYPE_CHECKING:
    import torch

KIND = "tagger"
_CONFIG_KEYS = {"kind", "tagger", "seed", "versions", "settings", "types", "history", "exported"}

Output = Literal["linear", "crf"]
"""What stands on top of the encoder: every word's label for itself, or a CRF over the labels of a document."""


class Epoch(NamedTuple):
    """One epoch of training."""

    epoch: int
    """From 1."""
    loss: float
    """Mean expected cross-entropy of a word, as it was while the epoch ran; with a CRF that of sequences by words."""
    learning_rate: float
    """At its last step."""
    f1: float | None = None
    """Strict entity F1 on dev, or None without dev."""
    entities: int | None = None
    """Entities predicted on dev."""
    entity_share: float | None = None
    """Share of the dev tokens in a predicted entity."""
    best: bool = True
    """Whether the weights after it are the best so far; the latest are, without dev."""
    stage: int = 1
    """Stage of the training that it belongs to; only some taggers have a second."""


@dataclass(kw_only=True)
class Tagger:
    """A BERT-like encoder with a linear head over BIO labels (Li et al., ACL 2021, section 4.4).

    It is trained on soft labels by KL divergence: on the first sub-word piece of each word, the loss is the expected
    cross-entropy `-sum_l y_l log p_l`. It differs from the divergence by a constant, and is the ordinary loss where the
    labels are certain. Entities are read from the likeliest sequence of labels in which an entity begins with B.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents([Document("d", ["Ada", "left", "Oslo"], entities=[Span(2, 3, "LOC")])])
    >>> tagger = Tagger(epochs=8, warmup=0).fit(corpus)
    >>> tagger.predict(corpus)[0].entities[0][:3]
    (2, 3, 'LOC')
    """

    name: ClassVar[str] = "bert"
    """What the command line calls it."""

    encoder: str = DEFAULT
    """Name of the encoder, see `tagweave.encoder.locate`."""
    output: Output = "linear"
    """`linear` takes every word's label for itself; `crf` puts a conditional random field on top. It learns scores of
    neighbouring labels with those of words, by the expected log-likelihood of whole sequences, and illegal moves (O to
    I-X) are impossible; see `tagweave.tagger.crf`."""
    epochs: int = 3
    """Passes over the corpus; with a dev set the best of them is kept."""
    learning_rate: float | None = None
    """Highest learning rate; None takes 4e-4 for encoders up to 384 wide and 1.5e-4 for wider ones."""
    warmup: float = 0.1
    """Share of the training in which the rate rises, before it falls to zero."""
    batch_windows: int = 16
    """Most windows (short documents, or parts of long ones) in a training batch."""
    batch_pieces: int = 4096
    """Most sub-word pieces in a training batch, padding counted."""
    whole_batch: bool = False
    """Sum the gradients of all batches and take one step an epoch."""
    window: int = 160
    """Most sub-word pieces in a window; the encoder's own limit where that is lower."""
    overlap: int = 32
    """Pieces that neighbouring windows of a long document share."""
    frozen_layers: int | None = None
    """How many of the encoder's lowest layers stay as they are (with the input embeddings): it saves time, and noisy
    labels spoil less. None takes half of them."""
    empty_share: float = 0.4
    """Share of the windows without an entity that an epoch reads, drawn anew each time; under 1 it saves time and helps
    where sources miss many entities."""
    dropout: float | None = None
    """In place of the encoder's own dropout; none is put on attention weights, which would double the time."""
    weight_decay: float = 0.01
    """Decay of weight matrices."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    outside_weight: float = 1.0
    """Weight of the label O in the loss; under 1 helps where sources miss many entities."""
    label_smoothing: float = 0.0
    """Share of each target that is spread over all labels."""
    patience: int | None = None
    """Stop after so many epochs without a better F1 on dev; None never stops early."""
    precision: Precision = "auto"
    """Number format of the encoder's arithmetic."""
    seed: int = 0
    """For the head, dropout and the order of documents; the same seed gives the same result on one machine."""
    types_: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    encoder_: Any = field(default=None, init=False, repr=False)
    model_: Any = field(default=None, init=False, repr=False)
    kept_: Kept | None = field(default=None, init=False, repr=False)
    cut_: Cut | None = field(default=None, init=False, repr=False)

    @property
    def labels(self) -> LabelSet:
        """The labels of a fitted tagger."""
        return LabelSet(self._fitted(), "bio")

    def settings(self) -> dict[str, Any]:
        """Settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def fit(
        self,
        corpus: Corpus,
        dev: Corpus | None = None,
        *,
        folder: Path | None = None,
        resume: bool = False,
        start_from: "Tagger | Path | None" = None,
    ) -> Self:
        """Train; the arguments are those of `fit_steps`."""
        for _ in self.fit_steps(corpus, dev, folder=folder, resume=resume, start_from=start_from):
            pass
        return self

    def fit_steps(
        self,
        corpus: Corpus,
        dev: Corpus | None = None,
        *,
        folder: Path | None = None,
        resume: bool = False,
        start_from: "Tagger | Path | None" = None,
    ) -> Iterator[Epoch]:
        """Train, and yield a record after each epoch. The tagger is fitted once all have been taken.

        Args:
            corpus: its soft labels are learned; without soft labels its entities, as certain labels.
            dev: documents with gold entities; the epoch with the best entity F1 on them is kept. Without dev the
                number of epochs is fixed.
            folder: keeps the best and the last state in `best` and `last`, so that a killed training can go on.
            resume: go on from `last` in the folder, if it is there; the result is that of an unbroken run.
            start_from: a fitted tagger, or its folder, whose weights are the start.

        Raises:
            DataError: there is nothing to learn from.
            StorageError: `folder` has too little space, or the state in it is of another training.
            TrainingError: a loss is not finite.
        """
        require_bert()
        from tagweave.tagger.fitting import Fitting

        yield from Fitting(self, corpus, dev, start_from).run(None if folder is None else Path(folder), resume)

    def predict_proba(self, corpus: Corpus) -> SoftLabels:
        """Label probabilities of every word; memory does not grow with the number of documents but by the result."""
        return self._predict(corpus)[0]

    def predict(self, corpus: Corpus) -> Corpus:
        """The corpus with the tagger's entities (in place of any that it has) and soft labels."""
        types = (*self._fitted(), *(name for name in corpus.types if name not in self._fitted()))
        soft_labels, entities = self._predict(corpus)
        return corpus.with_types(types).with_entities(entities, soft_labels.with_types(types))

    def _predict(self, corpus: Corpus) -> tuple[SoftLabels, Annotations]:
        types, done = self._fitted(), 0
        probabilities = np.empty((len(corpus.tokens), len(self.labels)), np.float32)
        entities = [Annotations.from_lists([], ("O", *types))]
        for part in [corpus] if self.cut_ is not None and self.cut_.open else corpus.batches():
            soft_labels, found = self._read(part.offsets, self._outputs_of(part))
            probabilities[done : done + len(part.tokens)] = soft_labels.probabilities
            entities.append(found)
            done += len(part.tokens)
        return SoftLabels(types, corpus.offsets, probabilities), Annotations.concatenate(entities)

    def _outputs(self) -> tuple[str, ...]:
        """Names of what the classifier says of each word."""
        return tuple(self.labels.names)

    def _extend_model(self) -> None:
        """Give a new `model_` what the encoder's classifier lacks."""
        if self.output == "crf":
            from tagweave.tagger.crf import Crf

            self.model_.add_module("crf", Crf(self.labels))

    def _companion(self) -> "torch.nn.Module | None":
        """A model that is not trained, but belongs to the state of a training."""
        return None

    def _objective(self, corpus: Corpus) -> Objective:
        """What is learned from a corpus with just the types of the tagger."""
        rows, known = targets(corpus, self.label_smoothing)
        if self.output != "crf":
            return SoftTargets(rows, known, self.outside_weight)
        if self.outside_weight != 1:
            raise UsageError(
                f"outside_weight is {self.outside_weight:g}, but a CRF learns whole sequences and cannot weigh one "
                "label: leave it at 1, or take the output 'linear'"
            )
        from tagweave.tagger.crf import SoftSequences

        return SoftSequences(rows, known, corpus.offsets, lambda: self.model_.crf)

    def _read(self, offsets: NDArray[np.int64], outputs: NDArray[np.float32]) -> tuple[SoftLabels, Annotations]:
        """Soft labels and entities.

        Args:
            offsets: where each document starts, of shape [documents + 1].
            outputs: what the classifier says of each word, of shape [words, outputs].
        """
        if self.output == "crf":
            return self.model_.crf.read(offsets, outputs)  # type: ignore[no-any-return]
        soft_labels = SoftLabels(self._fitted(), offsets, softmax(outputs))
        return soft_labels, likeliest_entities(*legal_scores(self.labels), outputs, soft_labels)

    def _outputs_of(self, corpus: Corpus) -> NDArray[np.float32]:
        """What the classifier says of each word, of shape [words, outputs]."""
        return all_word_logits(
            self.encoder_,
            self.model_,
            corpus.tokens,
            corpus.offsets,
            window=self.window,
            overlap=self.overlap,
            number_format=self.precision,
            cut=self.cut_,
        )

    def keep(self, kept: Kept | None) -> None:
        """Keep what the frozen layers of a fitted tagger say of all documents that it reads; None ends it.

        Costs memory or space on disk, 4 bytes for each number: 1.5 kB a sub-word piece for an encoder 384 wide.
        """
        self.kept_ = kept
        self.cut_ = None if kept is None else Cut.of(self.model_, frozen_layers(self.model_, self.frozen_layers), kept)

    def _states(self, pieces: WordPieces, windows: Windows) -> KeptStates | None:
        return states_of(self.cut_, self.encoder_, pieces, windows, self.precision)

    def _windows(self, pieces: WordPieces, offsets: NDArray[np.int64]) -> Windows:
        return Windows.cut(pieces.counts, offsets, min(self.window, self.encoder_.limit), self.overlap)

    def _logits(
        self, pieces: WordPieces, windows: Windows, chosen: NDArray[np.int64], kept: KeptStates | None = None
    ) -> "tuple[NDArray[np.int64], torch.Tensor]":
        """The words that belong to some windows, and the scores of their labels, float32 of shape [words, labels]."""
        return word_logits(self.encoder_, self.model_, pieces, windows, chosen, self.precision, kept)

    def save(self, folder: Path) -> None:
        """Write a Hugging Face folder: configuration with label names, weights, tokenizer, a model card.

        `transformers.pipeline("token-classification", model=folder, aggregation_strategy="first")` reads it.
        """
        self.check_whole("saved")
        with new_folder(Path(folder)) as work:
            with quiet():
                self.model_.save_pretrained(work)
            self.describe(work)

    def describe(self, work: Path, exported: Mapping[str, Any] | None = None) -> None:
        """Write all but the model into a folder: tokenizer, model card, settings, and what was exported."""
        with quiet():
            self.encoder_.tokenizer.save_pretrained(work)
        for path in work.iterdir():
            path.chmod(0o644)
        (work / "README.md").write_text(self._card(), encoding="utf-8", newline="\n")
        config = {
            "kind": KIND,
            "tagger": self.name,
            "seed": self.seed,
            "versions": _versions(),
            "settings": self.settings(),
            "types": self._fitted(),
            "history": self.history_,
        }
        write_json(work / CONFIG, config if exported is None else {**config, "exported": exported})

    def check_whole(self, use: str) -> None:
        """Check that the tagger has been fitted, and has weights that can be changed and saved.

        Raises:
            UsageError: it was exported.
        """
        self._fitted()
        if not hasattr(self.model_, "save_pretrained"):
            raise UsageError(f"an exported tagger only predicts, and cannot be {use}: give the folder it was made from")

    def _card(self) -> str:
        """What the saved folder says of itself."""
        return model_card(self._fitted(), self.output == "crf")

    @staticmethod
    def load(folder: Path) -> "Tagger":
        """A saved tagger of any kind.

        Raises:
            StorageError: the folder is missing, incomplete, changed, or holds something else.
        """
        from tagweave.config import create
        from tagweave.tagger import TAGGERS

        require_bert()
        folder = Path(folder)
        config = read_config(folder / CONFIG, KIND)
        with as_saved(folder):
            if config["tagger"] not in TAGGERS:
                raise StorageError(f"{folder} holds a {config['tagger']!r} tagger, which this version does not know")
            if unknown := sorted(set(config) - _CONFIG_KEYS):
                raise StorageError(f"{folder}: unknown in its {CONFIG}: {', '.join(unknown)}")
            tagger = create(TAGGERS[config["tagger"]], config["settings"])
            tagger.types_, tagger.history_ = types_in(config), records_in(config, "history")
            if "exported" in config:
                from tagweave.tagger import exporting

                exporting.load(tagger, folder, config["exported"])
            else:
                tagger.encoder_ = Encoder.load(str(folder.absolute()))
                tagger.model_ = tagger.encoder_.classifier(tagger._outputs(), seed=None)
            tagger._restore(folder)
        tagger.model_.to(device())
        return tagger

    def _restore(self, folder: Path) -> None:
        """Take up what `save_pretrained` wrote and the encoder's classifier does not read."""
        if self.output == "crf":
            self._extend_model()
            self.model_.crf.restore(folder)

    def _fitted(self) -> tuple[str, ...]:
        if self.types_ is None:
            raise NotFittedError("this tagger has not been fitted: call fit(corpus) or load(folder) first")
        return self.types_


def _versions() -> dict[str, str]:
    names = ("tagweave", "torch", "transformers", "tokenizers", "numpy")
    found = {name: __version__ if name == "tagweave" else version(name) for name in names}
    return {"python": platform.python_version(), **found}

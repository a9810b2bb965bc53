"""Alternate training: a label model and a tagger teach each other (Li et al., ACL 2021, section 4.1).

Phase I fits the label model on the votes of K sources and trains the tagger on its soft labels. In each round of phase
II the tagger's probabilities are source K + 1: the label model is fitted anew on K + 1 sources, and the tagger learns
from its new labels.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from tagweave.corpus import Corpus
from tagweave.encoder import Encoder
from tagweave.errors import DataError, StorageError
from tagweave.evaluation import evaluate
from tagweave.frozen import Kept
from tagweave.label_models import LabelModel
from tagweave.progress import say
from tagweave.storage import as_json, as_saved, check_no_links, read_json, run_in, write_json
from tagweave.tagger import Tagger
from tagweave.team import Parcel, send_folder, team

Output = Literal["label-model", "tagger"]
"""The two outputs of a round: the label model on the sources and the tagger together, and the tagger alone."""

TAGGER_SOURCE = "tagger"
"""What the tagger is called among the sources."""

_ROUNDS, _PLAN, _ROUND, _RESULT = "rounds", "alternate.json", "round.json", "result.json"
_LABEL_MODEL, _TAGGER, _TEACHER, _TRAINING = "label-model", "tagger", "teacher", "training"


@dataclass(frozen=True)
class Outcome:
    """How a round went: number 0 is phase I, all later ones are phase II.

    Attributes:
        number: from 0.
        f1: strict entity F1 of each output on dev; empty without dev.
        agreement: F1 between the label model's entities in this round and in the one before; None in round 0.
    """

    number: int
    f1: dict[str, float] = field(default_factory=dict)
    agreement: float | None = None

    @property
    def best_f1(self) -> float:
        """The better output's F1 on dev; 0 without dev."""
        return max(self.f1.values(), default=0.0)


@dataclass(frozen=True, kw_only=True)
class Round(Outcome):
    """One round with its models.

    Attributes:
        label_model: fitted on the sources, and from round 1 on the teacher's probabilities.
        teacher: the tagger of the round before, which is a source of `label_model`; None in round 0.
        tagger: trained on the labels of `label_model`.
    """

    label_model: LabelModel
    teacher: Tagger | None
    tagger: Tagger

    def predict(self, corpus: Corpus, output: Output = "tagger") -> Corpus:
        """The corpus with the entities and soft labels of one of the two outputs.

        The label model needs the votes of its sources in `corpus`, the tagger needs none.
        """
        if output == "tagger":
            return self.tagger.predict(corpus)
        voted = corpus if self.teacher is None else _taught(corpus, self.teacher)
        return self.label_model.predict(voted)


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


@dataclass(kw_only=True)
class AlternateTraining:
    """Alternate training of any label model and any tagger.

    `run` yields one `Round` after the other. With dev it stops when no output of the last `patience` rounds was better
    than before; without dev when the label model's entities hardly change any more. The best round is chosen by the
    better output's F1 on dev; without dev it is the last.

    Attributes:
        label_model: settings of the label model; it is fitted anew in every round.
        tagger: settings of the tagger in phase I.
        rounds: most rounds of phase II.
        patience: rounds without gain on dev before it stops.
        settled: without dev, the agreement of two rounds' entities (F1) at which it stops.
        continued: whether the tagger goes on from its last weights in phase II, or starts afresh each round.
        refine_epochs: epochs of the tagger in a round of phase II; None takes those of phase I.
        refine_learning_rate: learning rate there; None takes half of that of phase I, or all of it when afresh.
        refine_whole_batch: sum the gradients of all batches there and take one step an epoch, as the paper does.
    """

    label_model: LabelModel
    tagger: Tagger
    rounds: int = 10
    patience: int = 5
    settled: float = 0.99
    continued: bool = True
    refine_epochs: int | None = 1
    refine_learning_rate: float | None = None
    refine_whole_batch: bool = False

    def settings(self) -> dict[str, Any]:
        """All settings, with those of the label model and the tagger."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("label_model", "tagger")}
        return {
            **own,
            "label_model": {"kind": self.label_model.name, **self.label_model.settings()},
            "tagger": {"kind": self.tagger.name, **self.tagger.settings()},
        }

    def run(
        self, train: Corpus, dev: Corpus | None = None, *, folder: Path | None = None, resume: bool = False
    ) -> Iterator[Round]:
        """Train, and yield each round when it is finished.

        Args:
            train: documents with votes; their gold is not looked at.
            dev: documents with votes and gold.
            folder: keeps every finished step, so that a killed run can go on; at the end it holds the best round,
                which `load_round` reads. Without it a temporary folder is used and removed.
            resume: go on from the last finished step in `folder`, with the result of an unbroken run. Of the rounds
                that were finished before, the best and the last are yielded again.

        Raises:
            DataError: a source has the name that the tagger gets, or dev has no gold.
            StorageError: `folder` holds another run, or is damaged.
            UsageError: another process is at the run in `folder`, or it cannot be written.
        """
        for corpus in (train, dev):
            if corpus is not None and TAGGER_SOURCE in corpus.sources:
                raise DataError(f"a source is called {TAGGER_SOURCE!r}, which is the tagger's own name: rename it")
        if dev is not None and dev.entities is None:
            raise DataError("the dev documents have no gold entities, so no round can be chosen by them")
        if folder is None or not team().first:
            with tempfile.TemporaryDirectory() as temporary:
                yield from _Run(self, train.with_entities(None), dev, Path(temporary)).rounds(resume)
        else:
            with run_in(Path(folder)):
                yield from _Run(self, train.with_entities(None), dev, Path(folder)).rounds(resume)

    def fit(self, train: Corpus, dev: Corpus | None = None, **places: Any) -> Round:  # noqa: ANN401
        """Run to the end and give the best round; the arguments are those of `run`."""
        rounds = self.run(train, dev, **places)
        best = next(rounds)
        for finished in rounds:
            best = best_round([best, finished])
        return best


def best_round(rounds: Sequence[AnyOutcome]) -> AnyOutcome:
    """The first round with the best F1 on dev, or the last round without dev."""
    return max(rounds, key=lambda r: (r.best_f1, -r.number)) if rounds[0].f1 else rounds[-1]


def is_alternate(folder: Path) -> bool:
    """Whether a folder is that of an alternate training, finished or not."""
    return (Path(folder) / _PLAN).is_file()


def load_round(folder: Path) -> tuple[Round, Output]:
    """The best round of a finished run, and which of its outputs was better on dev (the tagger, without dev).

    Raises:
        StorageError: the folder holds no finished run, or is incomplete or changed.
    """
    folder = Path(folder)
    if not (folder / _RESULT).is_file():
        raise StorageError(f"{folder} holds no finished alternate training: {_RESULT} is missing")
    result = read_json(folder / _RESULT)
    with as_saved(folder):
        if result["output"] not in get_args(Output) or not isinstance(result["number"], int):
            raise ValueError(f"{_RESULT} names no round and output")
        found = Round(
            result["number"],
            dict(result["f1"].items()),
            result["agreement"],
            label_model=LabelModel.load(folder / _LABEL_MODEL),
            teacher=Tagger.load(folder / _TEACHER) if result["number"] else None,
            tagger=Tagger.load(folder / _TAGGER),
        )
    return found, result["output"]


class _Run:
    """One run in a folder: `rounds/N/{label-model,tagger,round.json}` for each round, then a copy of the best.

    Only the best round and the last are held in memory. Of several processes that train together, the first fits label
    models and scores outputs; each has a folder of its own, and gets what is in the first one's.
    """

    def __init__(self, plan: AlternateTraining, train: Corpus, dev: Corpus | None, folder: Path) -> None:
        self._plan, self._train, self._dev, self._folder = plan, train, dev, folder
        self._team = team()
        self._kept = Kept()
        self._outcomes: list[Outcome] = []
        self._best: Round | None = None
        self._entities: Corpus | None = None
        """What the label model of the last round found."""

    def rounds(self, resume: bool) -> Iterator[Round]:
        with self._kept:
            yield from self._rounds(resume)

    def _rounds(self, resume: bool) -> Iterator[Round]:
        self._open(resume)
        last: Round | None = None
        for found in self._finished():
            self._outcomes.append(found)
            self._remove_weights()
        for number in sorted({best_round(self._outcomes).number, len(self._outcomes) - 1} if self._outcomes else ()):
            last = self._load(self._outcomes[number])
            yield self._taken(last)
        while last is None or not self._settled():
            last = self._round(len(self._outcomes), last)
            self._outcomes.append(Outcome(last.number, last.f1, last.agreement))
            self._report(last)
            yield self._taken(last)
            self._remove_weights()
        self._conclude()

    def _finished(self) -> Iterator[Outcome]:
        """The rounds that were finished before."""
        number = 0
        while (self._place(number) / _ROUND).exists():
            with _made_anew(self._place(number)):
                found = read_json(self._place(number) / _ROUND)
            with as_saved(self._place(number)):
                outcome = Outcome(number, dict(found["f1"].items()), found["agreement"])
            yield outcome
            number += 1

    def _load(self, outcome: Outcome) -> Round:
        """A round that was finished before, from its folder and that of its teacher."""
        place, before = self._place(outcome.number), self._place(outcome.number - 1)
        with _made_anew(before):
            teacher = self._tagger(before) if outcome.number else None
        with _made_anew(place):
            label_model, tagger = LabelModel.load(place / _LABEL_MODEL), self._tagger(place)
        return Round(**vars(outcome), label_model=label_model, teacher=teacher, tagger=tagger)

    def _taken(self, finished: Round) -> Round:
        if best_round(self._outcomes).number == finished.number:
            self._best = finished
        return finished

    def _open(self, resume: bool) -> None:
        """Start the folder, or check that it holds this very run."""
        plan = {**self._plan.settings(), "data": _fingerprint(self._train), "dev": _fingerprint(self._dev)}
        plan["encoder"] = Encoder.load(self._plan.tagger.encoder).identity
        self._team.check_same("documents or settings", plan)
        self._team.on_first(lambda: self._prepare(plan, resume))
        send_folder(self._team, self._folder / _ROUNDS)

    def _prepare(self, plan: dict[str, Any], resume: bool) -> None:
        check_no_links(self._folder)
        path = self._folder / _PLAN
        if not resume:
            if path.exists():
                raise StorageError(f"{self._folder} holds a run already: resume it, or choose another folder")
        elif path.exists():
            found = {"encoder": plan["encoder"], **read_json(path)}  # older versions did not write it
            changed = sorted(name for name, value in as_json(plan).items() if found.get(name) != value)
            if changed:
                raise StorageError(
                    f"{self._folder} holds a run with other {', '.join(changed)}: give the same again, or choose "
                    "another folder"
                )
        if not path.exists() and (self._folder / _ROUNDS).exists():
            raise StorageError(f"{path} is missing, so nobody knows what {self._folder} holds: choose another folder")
        write_json(path, plan, sealed=True)

    def _place(self, number: int) -> Path:
        return self._folder / _ROUNDS / str(number)

    def _round(self, number: int, last: Round | None) -> Round:
        teacher = None if last is None else last.tagger
        if last is not None and self._entities is None:
            self._keep_entities(last.predict(self._train, "label-model"))
        train, dev = self._train, self._dev
        if teacher is not None:
            train, dev = _taught(train, teacher), None if dev is None else _taught(dev, teacher)
        say(f"round {number}: label model on {len(train.sources)} sources")
        label_model = self._fit_label_model(self._place(number), train, dev)
        labelled = label_model.predict(train)
        agreement = None if self._entities is None else evaluate(self._entities, labelled, bootstrap=0).f1
        self._keep_entities(labelled)
        say(f"round {number}: tagger")
        tagger = self._fit_tagger(number, labelled, teacher)
        outputs: dict[str, LabelModel | Tagger] = {"label-model": label_model, "tagger": tagger}
        scores = self._team.from_first(lambda: Parcel({"f1": _f1(outputs, dev), "agreement": agreement})).facts
        write_json(self._place(number) / _ROUND, {"number": number, **scores}, sealed=True)
        return Round(number, **scores, label_model=label_model, teacher=teacher, tagger=tagger)

    def _keep_entities(self, labelled: Corpus) -> None:
        self._entities = labelled.select_sources([]).with_entities(labelled.entities)

    def _fit_label_model(self, place: Path, train: Corpus, dev: Corpus | None) -> LabelModel:
        place = place / _LABEL_MODEL
        if place.exists():
            with _made_anew(place):
                return LabelModel.load(place)
        label_model = replace(self._plan.label_model)
        self._team.on_first(lambda: label_model.fit(train, dev).save(place))
        send_folder(self._team, place)
        return label_model if self._team.first else LabelModel.load(place)

    def _fit_tagger(self, number: int, labelled: Corpus, teacher: Tagger | None) -> Tagger:
        place = self._place(number)
        if (place / _TAGGER).exists():
            shutil.rmtree(place / _TRAINING, ignore_errors=True)
            with _made_anew(place / _TAGGER):
                return self._tagger(place)
        tagger = self._plan.tagger if number == 0 else self._refined()
        tagger = replace(tagger, seed=tagger.seed + number)
        tagger.kept_ = self._kept
        tagger.fit(
            labelled,
            self._dev,
            folder=place / _TRAINING,
            resume=True,
            start_from=teacher if self._plan.continued else None,
        )
        tagger.save(place / _TAGGER)
        shutil.rmtree(place / _TRAINING, ignore_errors=True)
        return tagger

    def _tagger(self, place: Path) -> Tagger:
        tagger = Tagger.load(place / _TAGGER)
        tagger.keep(self._kept)
        return tagger

    def _refined(self) -> Tagger:
        """The tagger's settings in phase II."""
        plan = self._plan
        rate = plan.refine_learning_rate
        if rate is None and plan.continued and plan.tagger.learning_rate is not None:
            rate = plan.tagger.learning_rate / 2
        return replace(
            plan.tagger,
            epochs=plan.tagger.epochs if plan.refine_epochs is None else plan.refine_epochs,
            learning_rate=plan.tagger.learning_rate if rate is None else rate,
            whole_batch=plan.refine_whole_batch,
        )

    def _report(self, finished: Round) -> None:
        parts = [f"{name} F1 {100 * f1:.2f}" for name, f1 in finished.f1.items()]
        if finished.agreement is not None:
            parts.append(f"entities agree with the last round's to {100 * finished.agreement:.1f} %")
        if parts:
            say(f"round {finished.number}: {', '.join(parts)}")

    def _settled(self) -> bool:
        last = self._outcomes[-1]
        if last.number >= self._plan.rounds:
            return True
        if last.f1:
            return last.number - best_round(self._outcomes).number >= self._plan.patience
        return last.agreement is not None and last.agreement >= self._plan.settled

    def _remove_weights(self) -> None:
        """Keep the taggers of the best and the last round and their teachers; the others only fill the disk."""
        best, last = best_round(self._outcomes).number, self._outcomes[-1].number
        for number in range(last):
            if number not in (best - 1, best, last - 1, last):
                shutil.rmtree(self._place(number) / _TAGGER, ignore_errors=True)

    def _conclude(self) -> None:
        best = self._best
        if best is None:
            raise AssertionError
        best.label_model.save(self._folder / _LABEL_MODEL)
        best.tagger.save(self._folder / _TAGGER)
        if best.teacher is not None:
            best.teacher.save(self._folder / _TEACHER)
        output = max(best.f1, key=lambda name: best.f1[name]) if best.f1 else "tagger"
        history = [{"number": r.number, "f1": r.f1, "agreement": r.agreement} for r in self._outcomes]
        result = {"number": best.number, "output": output, "f1": best.f1, "agreement": best.agreement}
        write_json(self._folder / _RESULT, {**result, "rounds": history}, sealed=True)


@contextmanager
def _made_anew(place: Path) -> Iterator[None]:
    """Where a step is damaged, the error says how to have it made anew.

    Raises:
        StorageError: it is damaged.
    """
    try:
        yield
    except StorageError as error:
        raise StorageError(f"{error}. Remove {place} and resume: it is then made anew") from None


def _taught(corpus: Corpus, teacher: Tagger) -> Corpus:
    """The corpus with a tagger among its sources."""
    soft_labels = teacher.predict_proba(corpus)
    types = (*soft_labels.types, *(name for name in corpus.types if name not in soft_labels.types))
    return corpus.with_types(types).with_source(TAGGER_SOURCE, soft_labels.with_types(types))


def _f1(outputs: Mapping[str, LabelModel | Tagger], dev: Corpus | None) -> dict[str, float]:
    """F1 of each output on dev; nothing without dev."""
    if dev is None:
        return {}
    return {name: evaluate(dev, model.predict(dev), bootstrap=0).f1 for name, model in outputs.items()}


def _fingerprint(corpus: Corpus | None) -> str:
    """A digest of documents and votes."""
    digest = hashlib.sha256()
    if corpus is not None:
        names = (corpus.types, dict(corpus.coarse), list(corpus.sources), list(corpus.links))
        digest.update(repr((corpus.id_list, *names)).encode())
        digest.update("\n".join(corpus.tokens.to_pylist()).encode(errors="surrogatepass"))
        columns = [corpus.entities, *corpus.sources.values(), *corpus.links.values()]
        for column in columns:
            for array in asdict(column).values() if column is not None else ():
                digest.update(np.ascontiguousarray(array).tobytes() if isinstance(array, np.ndarray) else b"")
    return digest.hexdigest()

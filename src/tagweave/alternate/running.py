"""A run of alternate training in its folder: steps that are finished stay, and a broken run goes on after them."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tagweave.alternate.rounds import OUTPUTS, Outcome, Output, Round, best_round, taught
from tagweave.corpus import Corpus
from tagweave.encoder import Encoder
from tagweave.encoder.frozen import Kept
from tagweave.errors import StorageError
from tagweave.evaluation import evaluate
from tagweave.label_models import LabelModel
from tagweave.progress import say
from tagweave.storage import as_json, as_saved, check_no_links, read_json, write_json
from tagweave.tagger import Tagger
from tagweave.team import Parcel, send_folder, team

if TYPE_CHECKING:
    from tagweave.alternate.training import AlternateTraining

_ROUNDS, _PLAN, _ROUND, _RESULT = "rounds", "alternate.json", "round.json", "result.json"
_LABEL_MODEL, _TAGGER, _TEACHER, _TRAINING = "label-model", "tagger", "teacher", "training"


def is_alternate(folder: Path) -> bool:
    """Whether a folder is that of an alternate training, finished or not."""
    return (Path(folder) / _PLAN).is_file()


def load_round(folder: Path) -> tuple[Round, Output]:
    """The best round of a finished run, and which of its outputs is the better one, see `Outcome.output`.

    Raises:
        StorageError: the folder holds no finished run, or is incomplete or changed.
    """
    folder = Path(folder)
    if not (folder / _RESULT).is_file():
        raise StorageError(f"{folder} holds no finished alternate training: {_RESULT} is missing")
    result = read_json(folder / _RESULT)
    with as_saved(folder):
        if result["output"] not in OUTPUTS or not isinstance(result["number"], int):
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


class Run:
    """One run in a folder: `rounds/N/{label-model,tagger,round.json}` for each round, then a copy of the best.

    Only the best round and the last are held in memory. Of several processes that train together, the first fits label
    models and scores outputs; each has a folder of its own, and gets what is in the first one's.
    """

    def __init__(self, plan: "AlternateTraining", train: Corpus, dev: Corpus | None, folder: Path) -> None:
        self._plan, self._train, self._dev, self._folder = plan, train, dev, folder
        self._team = team()
        self._kept = Kept()
        self._outcomes: list[Outcome] = []
        self._best: Round | None = None
        self._entities: Corpus | None = None
        """What the label model of the last round found."""

    def rounds(self, resume: bool) -> Iterator[Round]:
        """See `AlternateTraining.run`."""
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
            train, dev = taught(train, teacher), None if dev is None else taught(dev, teacher)
        say(f"round {number}: label model on {len(train.sources)} sources")
        settings = self._plan.label_model if last is None else last.label_model.as_chosen()
        label_model = self._fit_label_model(self._place(number) / _LABEL_MODEL, settings, train, dev)
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

    def _fit_label_model(self, place: Path, model: LabelModel, train: Corpus, dev: Corpus | None) -> LabelModel:
        if place.exists():
            with _made_anew(place):
                return LabelModel.load(place)
        label_model = replace(model)
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
        history = [{"number": r.number, "f1": r.f1, "agreement": r.agreement} for r in self._outcomes]
        result = {"number": best.number, "output": best.output, "f1": best.f1, "agreement": best.agreement}
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

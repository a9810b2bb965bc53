"""What `test_distributed.py` starts in several processes: each case writes what it found to a folder."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tagweave.errors import TagweaveError
from tagweave.team import Parcel, Team, join, send_folder
from tagweave.training import LoopSettings, TrainingLoop, seeded

WORDS = [1, 9, 2, 4, 7, 1, 3, 1, 5]
"""Words of each document: shares of a batch weigh very different amounts."""


class Model(nn.Module):
    """A model with a frozen, an unused, and a rarely used parameter."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        with seeded(1):
            self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(2, 2))
        self.rare = nn.Parameter(torch.zeros(1))

    def forward(self, rows: Tensor, document: int) -> Tensor:
        scores: Tensor = self.body(rows)[:, 0] * self.frozen
        return scores + self.rare if document == 4 else scores


def batches(epoch: int) -> list[list[int]]:
    """Nine documents in batches of four, four and one: the last leaves a process with nothing."""
    order = np.random.default_rng([5, epoch]).permutation(len(WORDS)).tolist()
    return [order[:4], order[4:8], order[8:]]


def loop_of(model: Model, poison: int | None = None, **settings: Any) -> TrainingLoop[list[int]]:  # noqa: ANN401
    """A training of documents of random words."""

    def loss(batch: Sequence[int]) -> tuple[Tensor, float]:
        total, words = torch.zeros(()), 0
        for document in batch:
            with seeded(9, document):
                rows = torch.randn(WORDS[document], 3)
            error = (model(rows, document) - rows.sum(1)).square().sum()
            total, words = total + error * (float("nan") if document == poison else 1), words + len(rows)
        return total, float(words)

    given = LoopSettings(**{"epochs": 4, "learning_rate": 0.05, "clip": 0.5, **settings})
    return TrainingLoop(model, given, batches, loss, share=lambda batch, rank, size: batch[rank::size])


def trained(dropout: float = 0.0, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
    """Losses, norms and weights of a training."""
    model = Model(dropout)
    steps = [[s.loss, s.weight, s.gradient_norm] for s in loop_of(model, **settings)]
    return {"steps": steps, "weights": {name: value.flatten().tolist() for name, value in model.named_parameters()}}


def case_loops(team: Team, folder: Path) -> dict[str, Any]:
    plain = {"plain": trained(), "whole": trained(whole_batch=True)}
    return {**plain, "dropout": trained(0.5), "again": trained(0.5)}


def case_resume(team: Team, folder: Path) -> dict[str, Any]:
    """Stopped in the middle of an epoch; the state lies where only the first process can see it."""
    own = folder / f"state-{team.rank}"
    first = loop_of(Model(0.0))
    for step in first:
        if step.step == 4:
            break
    first.save(own, {"note": 1})
    model = Model(0.0)
    nn.init.ones_(model.rare)
    second = loop_of(model)
    notes = second.restore(own)
    losses = [step.loss for step in second]
    return {"notes": notes, "losses": losses, "there": own.exists()}


def case_errors(team: Team, folder: Path) -> dict[str, Any]:
    """What every process raises when one cannot go on."""

    def refuse() -> Parcel:
        raise TagweaveError("the first cannot")

    found = {}
    for name, action in {
        "poison": lambda: list(loop_of(Model(0.0), poison=1)),
        "differ": lambda: team.check_same("settings", {"rank": team.rank}),
        "refuse": lambda: team.from_first(refuse),
    }.items():
        try:
            action()
            found[name] = "nothing"
        except TagweaveError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return {**found, "said": [team.says("once"), team.says("once"), team.says(f"by {team.rank}")]}


def case_parcels(team: Team, folder: Path) -> dict[str, Any]:
    sent = Parcel({"rank": team.rank, "text": "é"}, {"numbers": np.arange(team.rank + 2)})
    own = folder / f"own-{team.rank}"
    if team.first:
        (own / "deep").mkdir(parents=True)
        (own / "deep" / "file").write_bytes(b"abc")
        (own / "empty").touch()
    target = folder / f"target-{team.rank}"
    if team.first:
        target = own
    send_folder(team, target)
    return {
        "all": [[p.facts, p.arrays["numbers"].tolist()] for p in team.gather(sent)],
        "first": team.from_first(lambda: sent).facts,
        "files": sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()),
        "part": team.part(np.array([0, 1, 2, 30, 31])),
    }


def case_taggers(team: Team, folder: Path) -> dict[str, Any]:
    from tagging_together import fitted

    return fitted(folder, folder / "training")


def case_commands(team: Team, folder: Path) -> dict[str, Any]:
    from tagging_together import commands

    return commands(folder, team)


def endless(team: Team, folder: Path) -> Iterator[None]:
    """Trains until the process is ended from outside."""
    for step in loop_of(Model(0.0), epochs=10**9):
        if step.step == 20:
            (folder / f"pid-{team.rank}").write_text(str(os.getpid()))
        yield


def last_words(team: Team, folder: Path, how: str) -> None:
    """Process 1 ends or stops in the middle of a training."""
    for number, _ in enumerate(endless(team, folder)):
        if number == 30 and team.rank == 1 and how != "forever":
            os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGSTOP)


def main() -> None:
    folder, *names = sys.argv[1:]
    with join(timeout=3 if names == ["stopped"] else 60) as team:
        if names[0] in ("killed", "stopped", "forever"):
            last_words(team, Path(folder), names[0])
        found = {name: globals()[f"case_{name}"](team, Path(folder)) for name in names}
        (Path(folder) / f"{team.rank}-of-{team.size}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

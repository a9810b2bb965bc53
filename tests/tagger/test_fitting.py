"""How a training says by what it is done, and that threads leave results alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import tagging_together
from tagweave import progress
from tagweave.encoder import device
from tagweave.stored import StoredCorpus
from tagweave.tagger import Tagger, create_tagger

ROOT = Path(__file__).parents[2]
PRINT = "import torch; from tagweave.chain.threads import thread_limit as t; print(torch.get_num_threads(), t())"


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


def learned(encoder: str) -> tuple[torch.Tensor, np.ndarray]:
    corpus = tagging_together.sentences(15).select_sources([])
    tagger = Tagger(encoder=encoder, epochs=2, learning_rate=2e-3, batch_windows=4, frozen_layers=0).fit(corpus)
    weights = torch.cat([p.detach().flatten() for p in tagger.model_.parameters()])
    return weights, tagger.predict_proba(corpus).probabilities


@pytest.mark.skipif(device().type != "cpu", reason="threads count on a processor")
def test_threads_are_told_and_do_not_matter(
    tmp_path: Path, threads: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tagging_together.prepare(tmp_path)
    monkeypatch.setattr(progress, "_shown", True)
    found = {}
    for count in (1, 2):
        torch.set_num_threads(count)
        first, again = learned(str(tmp_path / "tiny")), learned(str(tmp_path / "tiny"))
        assert torch.equal(first[0], again[0])
        found[count] = first[1]
        assert f"training with {count} thread{'s' * (count > 1)} on cpu, in " in capsys.readouterr().err
    assert np.abs(found[1] - found[2]).max() < 0.02


@pytest.mark.parametrize("count", [None, 1, 2])
def test_the_environment_sets_the_threads(count: int | None) -> None:
    others = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    asked = {} if count is None else {"OMP_NUM_THREADS": str(count)}
    command = [sys.executable, "-c", PRINT]
    done = subprocess.run(
        command, env={**others, **asked, "PYTHONPATH": str(ROOT / "src")}, check=True, capture_output=True, text=True
    )
    for_tagger, for_chain = map(int, done.stdout.split())
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert for_chain == (available if count is None else min(count, available))
    assert for_tagger == count if count is not None else 1 <= for_tagger <= (os.cpu_count() or 1)


@pytest.mark.parametrize("kind", ["bert", "autoner"])
def test_documents_on_disk_teach_what_they_teach_in_memory(tmp_path: Path, kind: str) -> None:
    tagging_together.prepare(tmp_path)
    corpus = tagging_together.sentences(15)
    parts = StoredCorpus(corpus.subset(range(first, min(first + 4, 15))) for first in range(0, 15, 4))
    learned = []
    for taught in (corpus, parts.whole()):
        tagger = create_tagger(kind, {"encoder": str(tmp_path / "tiny"), "epochs": 1, "batch_windows": 4})
        learned.append(tagger.fit(taught).predict_proba(corpus).probabilities)
    np.testing.assert_array_equal(learned[0], learned[1])

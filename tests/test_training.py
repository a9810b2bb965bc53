"""The training loop: schedules, steps, errors, exact resuming."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tagweave.errors import StorageError, TrainingError
from tagweave.training import LoopSettings, Step, TrainingLoop, seeded

DATA = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))


def small_model(seed: int = 0, width: int = 3) -> nn.Sequential:
    with seeded(seed):
        return nn.Sequential(nn.Linear(3, width), nn.Dropout(0.5), nn.LayerNorm(width), nn.Linear(width, 1))


def batches(epoch: int) -> list[list[int]]:
    order = np.random.default_rng([3, epoch]).permutation(12)
    return [order[first : first + 4].tolist() for first in range(0, 12, 4)]


def loss_of(model: nn.Module) -> Callable[[Sequence[int]], tuple[Tensor, float]]:
    def loss(batch: Sequence[int]) -> tuple[Tensor, float]:
        rows = DATA[list(batch)]
        return (model(rows)[:, 0] - rows.sum(dim=1)).square().sum(), float(len(rows))

    return loss


def loop_of(model: nn.Module, **settings: Any) -> TrainingLoop[list[int]]:  # noqa: ANN401
    return TrainingLoop(model, LoopSettings(**{"epochs": 4, **settings}), batches, loss_of(model))


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def test_the_same_seed_gives_the_same_run_whatever_is_drawn_outside() -> None:
    runs = []
    for disturbance, seed in ((0, 7), (5, 7), (0, 8)):
        model = small_model()
        steps = []
        for step in loop_of(model, seed=seed):
            torch.rand(disturbance)
            steps.append(step)
        runs.append((steps, weights(model)))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    assert torch.equal(runs[0][1], runs[1][1])


def test_the_loop_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    list(loop_of(small_model()))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("whole_batch", [False, True])
def test_a_killed_run_goes_on_exactly(tmp_path: Path, whole_batch: bool) -> None:
    model = small_model()
    unbroken = list(loop_of(model, whole_batch=whole_batch))
    for stop in range(len(unbroken)):
        first = loop_of(small_model(), whole_batch=whole_batch)
        for step in first:
            if step.step == stop:
                break
        first.save(tmp_path / "state", {"note": [1, "two"]})
        other = small_model(seed=9)
        second = loop_of(other, whole_batch=whole_batch)
        assert second.restore(tmp_path / "state") == {"note": [1, "two"]}
        assert list(second) == unbroken[stop + 1 :]
        assert torch.equal(weights(other), weights(model))


def test_a_companion_is_kept_and_not_trained(tmp_path: Path) -> None:
    model, companion = small_model(), small_model(seed=5)
    before = weights(companion)
    loop = TrainingLoop(model, LoopSettings(epochs=2), batches, loss_of(model), companion=companion)
    next(iter(loop))
    loop.save(tmp_path / "state")
    assert torch.equal(weights(companion), before)
    other, taken = small_model(), small_model(seed=6)
    TrainingLoop(other, LoopSettings(epochs=2), batches, loss_of(other), companion=taken).restore(tmp_path / "state")
    assert torch.equal(weights(taken), before)
    assert torch.equal(weights(other), weights(model))
    with pytest.raises(StorageError, match="another model"):
        TrainingLoop(other, LoopSettings(epochs=2), batches, loss_of(other)).restore(tmp_path / "state")


def test_a_state_of_another_model_or_a_torn_one_is_refused(tmp_path: Path) -> None:
    loop = loop_of(small_model())
    next(iter(loop))
    loop.save(tmp_path / "state")
    with pytest.raises(StorageError, match="another model"):
        loop_of(small_model(width=5)).restore(tmp_path / "state")
    weights_file = tmp_path / "state" / "parameters.safetensors"
    weights_file.write_bytes(weights_file.read_bytes()[:-1])
    with pytest.raises(StorageError, match="changed"):
        loop_of(small_model()).restore(tmp_path / "state")


def test_the_rate_rises_and_falls() -> None:
    rates = [step.learning_rate for step in loop_of(small_model(), epochs=10, warmup=0.2, learning_rate=1.0)]
    assert rates[:6] == pytest.approx([(i + 0.5) / 6 for i in range(6)])
    assert rates[6:] == pytest.approx([1 - (i + 0.5) / 24 for i in range(24)])
    constant = [step.learning_rate for step in loop_of(small_model(), warmup=0, decay="constant", learning_rate=0.5)]
    assert constant == [0.5] * 12


def test_whole_batch_steps_are_those_of_one_big_batch() -> None:
    runs = []
    for whole in (True, False):
        model = nn.Linear(3, 1)
        nn.init.ones_(model.weight)
        nn.init.zeros_(model.bias)
        loop = TrainingLoop(
            model,
            LoopSettings(epochs=5, whole_batch=whole, learning_rate=0.1),
            batches if whole else lambda epoch: [list(range(12))],
            loss_of(model),
        )
        steps = list(loop)
        assert len(steps) == 5
        assert all(step.epoch_ends for step in steps)
        runs.append((steps, weights(model)))
    assert [s.loss for s in runs[0][0]] == pytest.approx([s.loss for s in runs[1][0]], rel=1e-5)
    torch.testing.assert_close(runs[0][1], runs[1][1])


def test_a_batch_that_weighs_nothing_changes_nothing() -> None:
    model = small_model()
    before = weights(model)
    settings = LoopSettings(epochs=2, weight_decay=0.5)
    steps = list(TrainingLoop(model, settings, lambda epoch: [0, 1], lambda batch: (torch.zeros(()), 0.0)))
    assert [(step.loss, step.weight) for step in steps] == [(0.0, 0.0)] * 4
    assert torch.equal(weights(model), before)


@pytest.mark.parametrize("whole_batch", [False, True])
def test_a_loss_that_is_not_finite_names_the_batch(whole_batch: bool) -> None:
    model = nn.Linear(1, 1)

    def loss(batch: str) -> tuple[Tensor, float]:
        return model(torch.ones(1)).sum() * (math.nan if batch == "d7" else 1.0), 1.0

    settings = LoopSettings(whole_batch=whole_batch)
    loop = TrainingLoop(model, settings, lambda epoch: ["d1", "d7"], loss, lambda batch: f"document {batch}")
    with pytest.raises(TrainingError, match=r"loss is nan.*document d7"):
        list(loop)
    assert torch.isfinite(weights(model)).all()


def test_weight_decay_leaves_biases_and_norms_alone() -> None:
    model = small_model()
    groups = loop_of(model, weight_decay=0.3)._optimizer.param_groups
    decayed = {id(p) for p in groups[0]["params"]}
    assert groups[0]["weight_decay"] == 0.3
    assert groups[1]["weight_decay"] == 0.0
    assert {name for name, p in model.named_parameters() if id(p) in decayed} == {"0.weight", "3.weight"}


def test_some_parameters_learn_faster() -> None:
    plain, fast = (small_model() for _ in range(2))
    before = weights(plain)
    next(iter(loop_of(plain, warmup=0, weight_decay=0)))
    next(iter(loop_of(fast, warmup=0, weight_decay=0, rate_factors={"3.": 10.0})))
    ratio = (weights(fast) - before) / (weights(plain) - before)
    last = sum(p.numel() for p in plain[3].parameters())
    assert ratio[-last:].tolist() == pytest.approx([10.0] * last, rel=1e-3)
    assert ratio[:-last].nan_to_num(1).tolist() == pytest.approx([1.0] * (len(ratio) - last), rel=1e-3)


def test_frozen_parameters_stay() -> None:
    model = small_model()
    first = model[0]
    first.requires_grad_(False)
    before = first.weight.clone()
    list(loop_of(model))
    assert torch.equal(first.weight, before)


def test_epochs_without_batches_end() -> None:
    model = small_model()
    assert list(TrainingLoop(model, LoopSettings(epochs=3), lambda epoch: [], loss_of(model))) == []


def test_a_step_tells_what_happened() -> None:
    steps = list(loop_of(small_model(), epochs=2))
    assert [(step.epoch, step.step, step.epoch_ends) for step in steps] == [
        (0, 0, False), (0, 1, False), (0, 2, True), (1, 3, False), (1, 4, False), (1, 5, True),
    ]  # fmt: skip
    assert all(isinstance(step, Step) and step.gradient_norm > 0 and step.weight == 4 for step in steps)

"""The torch face of the chain: gradients against finite differences, numpy and a list of all label sequences."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from chain.enumeration import all_sequences, enumerate_sentences
from chain.examples import Chain, chain_of, chains
from tagweave.chain import differentiable, forward_backward
from tagweave.chain import entropy as entropy_in_numpy
from tagweave.errors import DataError

SOME = settings(max_examples=60, deadline=None)
SMALL = {"labels": 3, "lengths": [3, 0, 1, 4]}
KINDS = pytest.mark.parametrize(("token_wise", "own_start"), [(False, False), (True, True)])
FUNCTIONS = pytest.mark.parametrize("function", [differentiable.log_partition, differentiable.entropy])
Function = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tensors_of(chain: Chain, kind: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Potentials that want gradients, and offsets."""
    start, transitions, evidence = (torch.tensor(part, dtype=kind, requires_grad=True) for part in list(chain)[:3])
    return start, transitions, evidence, torch.as_tensor(chain.offsets)


def detached(chain: Chain) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    start, transitions, evidence, offsets = tensors_of(chain)
    return (start.detach(), transitions.detach(), evidence.detach()), offsets


@pytest.fixture
def on_padded_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the functions as on a device that the compiled kernels do not reach."""
    monkeypatch.setattr(differentiable, "log_partition_on_cpu", differentiable.log_partition_padded)
    monkeypatch.setattr(differentiable, "entropy_on_cpu", differentiable.entropy_padded)


@FUNCTIONS
@KINDS
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_gradients_agree_with_finite_differences(
    function: Function, token_wise: bool, own_start: bool, forbidden: float
) -> None:
    chain = chain_of(11, **SMALL, token_wise=token_wise, own_start=own_start, forbidden=forbidden)
    assert torch.autograd.gradcheck(function, tensors_of(chain))


@FUNCTIONS
@KINDS
@pytest.mark.usefixtures("on_padded_path")
def test_gradients_of_the_padded_path(function: Function, token_wise: bool, own_start: bool) -> None:
    chain = chain_of(12, **SMALL, token_wise=token_wise, own_start=own_start, forbidden=0.3)
    assert torch.autograd.gradcheck(function, tensors_of(chain))


@SOME
@given(chains(widest=100.0))
def test_both_paths_agree(chain: Chain) -> None:
    potentials, offsets = detached(chain)
    for compiled, padded in (
        (differentiable.log_partition_on_cpu, differentiable.log_partition_padded),
        (differentiable.entropy_on_cpu, differentiable.entropy_padded),
    ):
        for one, other in zip(compiled(potentials, offsets, True), padded(potentials, offsets, True), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)
        one, other = compiled(potentials, offsets, False)[0], padded(potentials, offsets, False)[0]
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


@SOME
@given(chains(longest=5, most_labels=4, widest=10.0))
def test_values_agree_with_enumeration(chain: Chain) -> None:
    exact = enumerate_sentences(*chain)
    tensors = tensors_of(chain)
    values = differentiable.log_partition(*tensors).detach().numpy()
    np.testing.assert_allclose(values, [e.log_partition for e in exact], rtol=0, atol=1e-10)
    values = differentiable.entropy(*tensors).detach().numpy()
    np.testing.assert_allclose(values, [e.entropy for e in exact], rtol=0, atol=1e-10)


@KINDS
def test_the_gradient_is_the_posterior(token_wise: bool, own_start: bool) -> None:
    chain = chain_of(13, 4, [6, 1, 9], token_wise=token_wise, own_start=own_start, forbidden=0.2)
    start, transitions, evidence, offsets = tensors_of(chain)
    differentiable.log_partition(start, transitions, evidence, offsets).sum().backward()
    posterior = forward_backward(*chain, pairs="token" if token_wise else "sum")
    first = posterior.marginals[chain.offsets[:-1]]
    assert start.grad is not None and transitions.grad is not None and evidence.grad is not None
    np.testing.assert_allclose(start.grad.numpy(), first if own_start else first.sum(0), atol=1e-12)
    np.testing.assert_allclose(transitions.grad.numpy(), posterior.pair_marginals, atol=1e-12)
    np.testing.assert_allclose(evidence.grad.numpy(), posterior.marginals, atol=1e-12)


def test_log_partition_less_entropy_is_the_expected_score_with_its_full_gradient() -> None:
    chain = chain_of(14, 3, [5])
    mine = tensors_of(chain)
    value = differentiable.log_partition(*mine) - differentiable.entropy(*mine)
    gradients = torch.autograd.grad(value.sum(), mine[:3])
    start, transitions, evidence, _ = tensors_of(chain)
    sequences = torch.as_tensor(all_sequences(5, 3))
    scores = start[sequences[:, 0]] + evidence[torch.arange(5), sequences].sum(1)
    scores = scores + transitions[sequences[:, :-1], sequences[:, 1:]].sum(1)
    expected = (scores.softmax(0) * scores).sum()
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    for one, other in zip(gradients, torch.autograd.grad(expected, (start, transitions, evidence)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@FUNCTIONS
def test_each_sentence_keeps_its_own_weight(function: Function) -> None:
    chain = chain_of(15, 3, [4, 0, 1, 7])
    weights = torch.tensor([1.0, 5.0, -2.0, 0.5], dtype=torch.float64)
    tensors = tensors_of(chain)
    gradients = torch.autograd.grad(function(*tensors) @ weights, tensors[:3])
    sums = [torch.zeros_like(part) for part in tensors[:3]]
    for s, weight in enumerate(weights):
        for total, part in zip(sums, torch.autograd.grad(function(*tensors)[s], tensors[:3]), strict=True):
            total += weight * part
    for one, other in zip(gradients, sums, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@FUNCTIONS
@pytest.mark.parametrize("path", ["compiled", "padded"])
def test_a_sentence_without_a_path_gives_no_gradient(
    function: Function, path: str, request: pytest.FixtureRequest
) -> None:
    if path == "padded":
        request.getfixturevalue("on_padded_path")
    chain = chain_of(16, 2, [2, 3])
    chain.evidence[1] = -np.inf
    start, transitions, evidence, offsets = tensors_of(chain)
    values = function(start, transitions, evidence, offsets)
    assert values[0].item() == (-np.inf if function is differentiable.log_partition else 0.0)
    assert torch.isfinite(values[1])
    values[1].backward()
    assert evidence.grad is not None and transitions.grad is not None
    assert (
        not evidence.grad[:2].any() and torch.isfinite(evidence.grad).all() and torch.isfinite(transitions.grad).all()
    )


@FUNCTIONS
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_lower_precision(function: Function, kind: torch.dtype) -> None:
    chain = chain_of(17, 4, [12, 3], token_wise=True, forbidden=0.2)
    low = tensors_of(chain, kind)
    high = [part.detach().to(torch.float64).requires_grad_() for part in low[:3]]
    value, exact = function(*low), function(high[0], high[1], high[2], low[3])
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, exact.float(), rtol=1e-5, atol=1e-5)
    tolerance = 1e-5 if kind == torch.float32 else 2e-2
    pairs = zip(torch.autograd.grad(value.sum(), low[:3]), torch.autograd.grad(exact.sum(), high), strict=True)
    for one, other in pairs:
        assert one.dtype == kind
        torch.testing.assert_close(one, other.to(kind), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_long_sentence(kind: torch.dtype) -> None:
    start, transitions, evidence, offsets = tensors_of(chain_of(18, 3, [1_000_000], spread=2.0), kind)
    differentiable.log_partition(start, transitions, evidence, offsets).sum().backward()
    assert evidence.grad is not None
    assert (evidence.grad.sum(1) - 1).abs().max() < 1e-6
    (slope,) = torch.autograd.grad(differentiable.entropy(start, transitions, evidence, offsets).sum(), evidence)
    # Adding the same to all labels of a token changes nothing about the posterior.
    assert torch.isfinite(slope).all() and slope.sum(1).abs().max() < (1e-9 if kind == torch.float64 else 1e-4)


def test_no_work_for_gradients_that_nobody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = tensors_of(chain_of(19, 3, [4, 2]))
    with torch.no_grad():
        value = differentiable.entropy(*tensors)
    assert not value.requires_grad
    start, transitions, evidence = (part.detach().numpy() for part in tensors[:3])
    np.testing.assert_allclose(value, entropy_in_numpy(start, transitions, evidence, tensors[3].numpy()), atol=1e-12)
    assert not differentiable.log_partition(
        tensors[0].detach(), tensors[1].detach(), tensors[2].detach(), tensors[3]
    ).requires_grad


@FUNCTIONS
@pytest.mark.parametrize("path", ["compiled", "padded"])
def test_nothing_at_all(function: Function, path: str, request: pytest.FixtureRequest) -> None:
    if path == "padded":
        request.getfixturevalue("on_padded_path")
    start, transitions, evidence = torch.zeros(2), torch.zeros(2, 2), torch.zeros(0, 2, requires_grad=True)
    value = function(start, transitions, evidence, torch.tensor([0, 0]))
    assert value.tolist() == [0.0]
    value.sum().backward()


@FUNCTIONS
def test_shapes_that_do_not_fit(function: Function) -> None:
    with pytest.raises(DataError, match="start must be"):
        function(torch.zeros(3), torch.zeros(2, 2), torch.zeros(4, 2), torch.tensor([0, 4]))


def test_each_device_has_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def way(device: str, triton: bool, capability: tuple[int, int]) -> str:
        monkeypatch.setattr(differentiable, "find_spec", lambda name: name if triton else None)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        return differentiable._way(torch.device(device))

    assert way("cpu", True, (9, 0)) == "compiled"
    assert way("cuda:1", True, (7, 5)) == "triton"
    assert way("cuda", True, (6, 1)) == way("cuda", False, (9, 0)) == way("mps", True, (9, 0)) == "padded"

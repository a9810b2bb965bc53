"""The kernels for CUDA against a list of all label sequences and the processor's kernel, in Triton's interpreter."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from chain import interpreted
from chain.enumeration import enumerate_sentences
from chain.examples import Chain, chain_of
from tagweave.chain import differentiable, forward_backward

INTERPRETED = Path(__file__).with_name("interpreted.py")
with_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed; it is made for Linux")
with_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")

CHAINS = {
    "one label": chain_of(1, 1, [2, 0, 3]),
    "two labels": chain_of(2, 2, [3, 0, 1, 5], forbidden=0.2),
    "three labels token-wise": chain_of(3, 3, [4, 1, 0, 5, 2], token_wise=True, own_start=True, forbidden=0.3),
    "many sentences": chain_of(5, 5, [4, 1, 3, 0, 2, 4, 3, 1, 0, 2], own_start=True, forbidden=0.4),
    "nine labels": chain_of(9, 9, [3, 1]),
    "nine labels token-wise": chain_of(10, 9, [1, 3], token_wise=True, forbidden=0.5),
    "far apart": chain_of(6, 4, [5, 3, 1], spread=300.0),
    "far apart token-wise": chain_of(7, 3, [4, 5], token_wise=True, forbidden=0.3, spread=300.0),
}
Arrays = dict[str, NDArray[Any]]


def without_a_path() -> Chain:
    chain = chain_of(16, 2, [2, 3])
    chain.evidence[1] = -np.inf
    return chain


SPECIAL = {
    "without a path": without_a_path(),
    "no tokens": chain_of(17, 2, [0, 0]),
    "no sentences": chain_of(18, 2, []),
}


def stored(chains: dict[str, Chain], kind: type[np.floating[Any]]) -> Arrays:
    """Chains as `interpreted.py` takes them."""
    arrays: Arrays = {}
    for name, chain in chains.items():
        for part in interpreted.PARTS:
            arrays[f"{name}/{part}"] = getattr(chain, part).astype(kind)
        arrays[f"{name}/offsets"] = np.asarray(chain.offsets, np.int64)
    return arrays


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Arrays:
    """What the kernels make of all chains in float32, and of some in float64."""
    folder = tmp_path_factory.mktemp("interpreted")
    chains = stored(CHAINS | SPECIAL, np.float32)
    few = {f"{name} in float64": CHAINS[name] for name in ("two labels", "three labels token-wise")}
    np.savez(folder / "chains.npz", **chains, **stored(few, np.float64))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(differentiable.__file__).parents[2]), *sys.path])
    command = [sys.executable, INTERPRETED, folder / "chains.npz", folder / "results.npz"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return dict(np.load(folder / "results.npz"))


def compare(solved: Arrays, name: str, chain: Chain, tolerance: float) -> None:
    """All results of the kernels against the processor's kernel, in double precision."""
    for by in ("sentence", "token"):
        posterior = forward_backward(*chain, pairs=by)
        np.testing.assert_allclose(solved[f"{name}/pairs by {by}"], posterior.pair_marginals, rtol=0, atol=tolerance)
    posterior = forward_backward(*chain)
    scale = np.maximum(1.0, np.abs(posterior.log_partition))
    for values in ("values", "values alone"):
        np.testing.assert_allclose(solved[f"{name}/{values}"] / scale, posterior.log_partition / scale, atol=tolerance)
    np.testing.assert_allclose(solved[f"{name}/marginals"], posterior.marginals, rtol=0, atol=tolerance)


@with_triton
@pytest.mark.parametrize("name", CHAINS)
def test_results_are_those_of_the_kernel_of_the_processor(name: str, solved: Arrays) -> None:
    far = "far" in name
    compare(solved, name, CHAINS[name].rounded(), 1e-3 if far else 5e-6)
    assert solved[f"{name}/marginals"].dtype == np.float32
    assert solved[f"{name}/pairs by sentence"].dtype == np.float64


@with_triton
@pytest.mark.parametrize("name", ["two labels", "three labels token-wise"])
def test_results_in_double_precision(name: str, solved: Arrays) -> None:
    compare(solved, f"{name} in float64", CHAINS[name], 1e-12)


@with_triton
@pytest.mark.parametrize("name", [name for name in CHAINS if "far" not in name])
def test_results_are_those_of_a_list_of_all_label_sequences(name: str, solved: Arrays) -> None:
    exact = enumerate_sentences(*CHAINS[name].rounded())
    values = [sentence.log_partition for sentence in exact]
    np.testing.assert_allclose(solved[f"{name}/values"], values, rtol=0, atol=5e-6)
    marginals = np.concatenate([sentence.marginals for sentence in exact])
    np.testing.assert_allclose(solved[f"{name}/marginals"], marginals, rtol=0, atol=5e-6)
    pairs = np.concatenate([sentence.pairs for sentence in exact])
    np.testing.assert_allclose(solved[f"{name}/pairs by token"], pairs, rtol=0, atol=5e-6)
    sums = [sentence.pairs.sum(0) for sentence in exact]
    np.testing.assert_allclose(solved[f"{name}/pairs by sentence"], sums, rtol=0, atol=5e-6)


@with_triton
def test_a_sentence_without_a_path_gives_zeros(solved: Arrays) -> None:
    chain = SPECIAL["without a path"]
    rest = Chain(chain.start, chain.transitions, chain.evidence[2:], np.array([0, 3])).rounded()
    posterior = forward_backward(*rest, pairs="token")
    name = "without a path"
    assert solved[f"{name}/values"][0] == -np.inf
    assert not solved[f"{name}/marginals"][:2].any()
    assert not solved[f"{name}/pairs by token"][:3].any() and not solved[f"{name}/pairs by sentence"][0].any()
    np.testing.assert_allclose(solved[f"{name}/values"][1], posterior.log_partition[0], atol=5e-6)
    np.testing.assert_allclose(solved[f"{name}/marginals"][2:], posterior.marginals, atol=5e-6)
    np.testing.assert_allclose(solved[f"{name}/pairs by token"][3:], posterior.pair_marginals[1:], atol=5e-6)


@with_triton
def test_nothing_at_all(solved: Arrays) -> None:
    assert solved["no tokens/values"].tolist() == [0.0, 0.0]
    assert solved["no tokens/pairs by sentence"].tolist() == np.zeros((2, 2, 2)).tolist()
    assert solved["no sentences/values"].shape == (0,)
    assert solved["no tokens/marginals"].shape == solved["no sentences/marginals"].shape == (0, 2)


def gradients(chain: Chain, function: Any, device: str, kind: torch.dtype) -> Arrays:  # noqa: ANN401
    """Values of a torch function, and gradients with other weights for each sentence."""
    leaves = [torch.tensor(part, dtype=kind, device=device, requires_grad=True) for part in list(chain)[:3]]
    values = function(*leaves, torch.as_tensor(chain.offsets))
    values.backward(torch.arange(1.0, len(chain.offsets), dtype=kind, device=device))
    found = {"": values.detach()} | {
        f"/{name}": leaf.grad for name, leaf in zip(interpreted.PARTS, leaves, strict=True)
    }
    return {name: tensor.cpu().numpy() for name, tensor in found.items()}


@with_triton
@pytest.mark.parametrize("name", [name for name in CHAINS if "far" not in name])
@pytest.mark.parametrize("function", interpreted.FUNCTIONS)
def test_gradients_are_those_of_the_processor(name: str, function: str, solved: Arrays) -> None:
    exact = gradients(CHAINS[name].rounded(), getattr(differentiable, function), "cpu", torch.float64)
    for part, expected in exact.items():
        np.testing.assert_allclose(solved[f"{name}/{function}{part}"], expected, rtol=5e-6, atol=5e-5)


def compile_for_a_card(kernel: Any, constants: dict[str, int | bool], number: str) -> Any:  # noqa: ANN401
    """Machine code of a kernel for a card that need not be here."""
    import triton
    from triton.backends.compiler import GPUTarget

    types = {"start_step": "i32", "sentences": "i32", "offsets": "*i64", "order": "*i64", "log_partitions": "*fp64"}
    types["pairs"] = number if constants.get("keep_pairs", True) else "*fp64"
    signature = {name: types.get(name, number) for name in kernel.arg_names} | dict.fromkeys(constants, "constexpr")
    source = triton.compiler.ASTSource(kernel, signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 1}).asm["cubin"]


@with_triton
@pytest.mark.parametrize("by_token", [False, True])
def test_kernels_compile_for_a_card(by_token: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The interpreter takes more than the compiler does.
    from tagweave.chain import triton_covariances, triton_kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    constants = {"labels": 9, "width": 16, "block": 1, "by_token": by_token}
    assert compile_for_a_card(triton_kernels._forward, constants, "*fp32")
    assert compile_for_a_card(triton_kernels._backward, constants | {"keep_pairs": by_token}, "*fp32")
    assert compile_for_a_card(triton_covariances._centre_past, constants, "*fp64")
    assert compile_for_a_card(triton_covariances._covariances, constants, "*fp64")


@with_triton
@with_cuda
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("function", interpreted.FUNCTIONS)
def test_results_on_a_graphics_card(name: str, function: str) -> None:
    exact = gradients(CHAINS[name].rounded(), getattr(differentiable, function), "cpu", torch.float64)
    found = gradients(CHAINS[name].rounded(), getattr(differentiable, function), "cuda", torch.float32)
    for part, expected in exact.items():
        np.testing.assert_allclose(found[part], expected, rtol=1e-5, atol=1e-2 if "far" in name else 1e-4)

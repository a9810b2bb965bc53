import numpy as np
import pytest
import torch

from tagweave.encoder import Encoder, Precision, device
from tagweave.encoder.classifier import word_logits
from tagweave.encoder.windows import Windows

LABELS = ["O", "B-LOC", "I-LOC"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.load("default")


def _logits(encoder: Encoder, model: torch.nn.Module, number_format: Precision) -> torch.Tensor:
    words, offsets = "The Rhine runs from Switzerland to Rotterdam . Ada left".split(), np.array([0, 8, 10])
    pieces = encoder.pieces(words)
    windows = Windows.cut(pieces.counts, offsets, 160, 32)
    numbers, logits = word_logits(encoder, model, pieces, windows, np.arange(2), number_format)
    return logits[np.argsort(numbers)]


@pytest.mark.parametrize(("number_format", "tolerance"), [("float32", 1e-5), ("bfloat16", 3e-2)])
def test_attention_that_learns_says_the_same_and_has_the_same_gradients(
    encoder: Encoder, number_format: Precision, tolerance: float
) -> None:
    model = encoder.classifier(LABELS, seed=0).eval()
    with torch.no_grad():
        fused = _logits(encoder, model, "float32")
    learning = _logits(encoder, model, number_format)
    assert torch.allclose(learning, fused, rtol=tolerance, atol=tolerance)
    weight = next(p for name, p in model.named_parameters() if name.endswith("query.weight"))
    (found,) = torch.autograd.grad(learning.square().sum(), weight)
    (expected,) = torch.autograd.grad(_logits(encoder, model, "float32").square().sum(), weight)
    assert (found - expected).norm() <= 4 * tolerance * expected.norm()


@pytest.mark.skipif(device().type != "cpu", reason="the kernel is left out on CPUs alone")
@pytest.mark.parametrize("learns", [True, False])
def test_bfloat16_that_learns_on_a_cpu_leaves_out_the_fused_kernel(encoder: Encoder, learns: bool) -> None:
    model = encoder.classifier(LABELS, seed=0).eval()
    with torch.profiler.profile() as profile, torch.set_grad_enabled(learns):
        _logits(encoder, model, "bfloat16")
    fused = any("flash_attention" in event.key for event in profile.key_averages())
    assert fused is not learns


def test_the_flags_of_torch_are_as_before_even_after_an_error(encoder: Encoder) -> None:
    model = encoder.classifier(LABELS, seed=0)

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    model.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="no"):
        _logits(encoder, model, "bfloat16")
    assert not torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    assert torch.backends.cuda.flash_sdp_enabled()

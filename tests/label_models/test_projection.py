"""Products of half-precision rows are those of a matrix product, also at the odd sizes."""

import numpy as np
import pytest
import torch

from tagweave.label_models.projection import BLOCK, moments, project


@pytest.mark.parametrize(("rows", "outputs", "width"), [(0, 2, 4), (1, 1, 1), (9, 4, 33), (BLOCK + 5, 6, 7)])
def test_products_and_gradient_are_those_of_a_matrix_product(rows: int, outputs: int, width: int) -> None:
    chance = np.random.default_rng(rows)
    features = chance.normal(size=(50, width)).astype(np.float16)
    chosen = chance.integers(0, 50, rows)
    weights = torch.from_numpy(chance.normal(size=(outputs, width))).requires_grad_()
    slopes = torch.from_numpy(chance.normal(size=(rows, outputs)))
    found = project(features, chosen, weights)
    dense = torch.from_numpy(features[chosen].astype(np.float64)) @ weights.T
    (gradient,) = torch.autograd.grad(found, weights, slopes)
    (expected,) = torch.autograd.grad(dense, weights, slopes)
    torch.testing.assert_close(found, dense)
    torch.testing.assert_close(gradient, expected)


def test_every_half_precision_number_is_read_exactly() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 1)
    features = bits.view(np.float16)
    found = project(features, np.arange(len(bits)), torch.ones(1, 1)).numpy()
    finite = np.isfinite(features)
    np.testing.assert_array_equal(found[finite], features[finite].astype(np.float32))
    assert np.isnan(found[~finite]).all()


def test_results_are_the_same_for_any_number_of_threads() -> None:
    chance = np.random.default_rng(0)
    features, chosen = chance.normal(size=(100, 24)).astype(np.float16), chance.integers(0, 100, 3 * BLOCK)
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        weights = torch.ones(3, 24, requires_grad=True)
        products = project(features, chosen, weights)
        products.square().sum().backward()
        found.append((products.detach().numpy(), np.asarray(weights.grad)))
    torch.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_moments_are_sums_and_sums_of_squares() -> None:
    features = np.random.default_rng(3).normal(2.0, 3.0, (2 * BLOCK + 3, 5)).astype(np.float16)
    wide = features.astype(np.float64)
    np.testing.assert_allclose(moments(features), [wide.sum(axis=0), np.square(wide).sum(axis=0)])
    assert moments(features[:0]).tolist() == [[0.0] * 5] * 2
